//! The signals that end a program: at once during its start, afterwards by a graceful [shutdown](super::shutdown).

use std::{
    future::pending,
    io, process,
    sync::{Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
    sync::Notify,
};

use crate::log::writer::write_final_line;

/// Notified when a graceful shutdown has become possible.
static CAN_STOP: Notify = Notify::const_new();

/// The thread that ends the process at a signal until then.
static START: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

/// Until there are [`StopSignals`], SIGTERM and SIGINT end the process at once, whatever it waits for: a program with exit
/// code 0, a command with 1. Call it before anything that waits.
///
/// The kernel withholds signals without a handler from process 1 of a container. A command that is another process needs
/// none. SIGHUP does nothing meanwhile.
///
/// # Errors
///
/// The system does not allow it.
pub fn end_at_signals(is_command: bool) -> io::Result<()> {
    if is_command && process::id() != 1 {
        return Ok(());
    }
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let (mut terminate, mut interrupt) = {
        let _entered = runtime.enter();
        // Dropping the stream leaves the signal's handler installed.
        drop(signal(SignalKind::hangup())?);
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        (signal(terminate)?, signal(interrupt)?)
    };
    let end = async move {
        tokio::select! {
            // Signals first: `StopSignals` does not receive one that arrived before it listened.
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = CAN_STOP.notified() => return,
        }
        write_final_line("ended by a signal".to_owned());
        process::exit(is_command.into());
    };
    let thread = thread::Builder::new().name("start-signals".to_owned());
    let started = thread.spawn(move || runtime.block_on(end))?;
    *START.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
    Ok(())
}

/// Listener for SIGTERM and SIGINT.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Installs handlers for both signals: once this returns, they no longer end the process.
    ///
    /// # Errors
    ///
    /// The system does not allow it.
    pub fn listen() -> io::Result<Self> {
        let signals = Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        };
        // After both handlers, so that a signal always has one. The permit is kept until the other thread waits.
        CAN_STOP.notify_one();
        // Until it has ended, it would end the process at a signal that is for this listener: a busy machine delays it.
        let start = START.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(start) = start {
            // It panics nowhere.
            let _ = start.join();
        }
        Ok(signals)
    }

    /// Waits for the next of either signal.
    pub async fn next(&mut self) {
        let received = tokio::select! {
            received = self.terminate.recv() => received,
            received = self.interrupt.recv() => received,
        };
        // No further signal can arrive, which must not count as one.
        if received.is_none() {
            pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        env, fs, hint,
        process::Command,
        sync::atomic::{AtomicBool, Ordering},
    };

    use rustix::process::{Signal as Number, getpid, kill_process};

    use super::*;

    static CAN_END: AtomicBool = AtomicBool::new(false);
    /// Set in the process that gets the signal.
    const CHILD: &str = "SIGNPOST_TEST_SIGNALLED";

    /// Whether this process has a thread with this name.
    fn has_thread(name: &str) -> bool {
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
        let mut names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.any(|other| other.trim_end() == name)
    }

    #[tokio::test]
    async fn nothing_ends_the_process_once_a_stop_is_possible() {
        if env::var_os(CHILD).is_some() {
            end_at_signals(false).unwrap();
            // A busy machine delays the thread.
            for _ in 0..32 {
                thread::spawn(|| {
                    while !CAN_END.load(Ordering::Relaxed) {
                        hint::spin_loop();
                    }
                });
            }
            let mut signals = StopSignals::listen().unwrap();
            kill_process(getpid(), Number::TERM).unwrap();
            signals.next().await;
            CAN_END.store(true, Ordering::Relaxed);
            while has_thread("start-signals") {
                thread::yield_now();
            }
            println!("it stops");
            return;
        }
        let name = "server::signals::tests::nothing_ends_the_process_once_a_stop_is_possible";
        for _ in 0..20 {
            let mut child = Command::new(env::current_exe().unwrap());
            child.args(["--exact", name, "--nocapture"]).env(CHILD, "");
            let output = child.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("it stops"), "{output:?}");
        }
    }
}

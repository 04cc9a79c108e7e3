//! The signals that end a program: at once during its start, afterwards by a graceful [shutdown](super::shutdown).

use std::{future::pending, io, process, thread};

use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
    sync::Notify,
};

use crate::log::writer::write_final_line;

/// Notified when a graceful shutdown has become possible.
static CAN_STOP: Notify = Notify::const_new();

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
    thread.spawn(move || runtime.block_on(end)).map(drop)
}

/// Listener for SIGTERM and SIGINT.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Installs handlers for both signals: from here on they no longer end the process.
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

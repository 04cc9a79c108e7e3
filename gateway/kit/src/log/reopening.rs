//! Log files are reopened on SIGUSR1, as logrotate asks for.

use std::{io, thread};

use rustix::process::Signal as SignalNumber;
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{Signal, SignalKind, signal},
};

use crate::log::writer::LogWriter;

/// Listener for SIGUSR1.
#[derive(Debug)]
pub struct ReopenSignals {
    runtime: Runtime,
    signal: Signal,
}

impl ReopenSignals {
    /// Installs a handler: from here on the signal no longer ends the process. Every program does this first, so that a
    /// rotation can meet it at its start.
    ///
    /// Nor does SIGXFSZ, from here on: if a file reaches the process' limit (`ulimit -f`), writing to it fails, as on a
    /// full disk.
    ///
    /// # Errors
    ///
    /// The system does not allow it.
    pub fn listen() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let signal = {
            let _entered = runtime.enter();
            // Dropping the stream leaves the signal's handler installed.
            drop(signal(SignalKind::from_raw(SignalNumber::XFSZ.as_raw()))?);
            signal(SignalKind::user_defined1())?
        };
        Ok(Self { runtime, signal })
    }

    /// Starts the thread that has the files reopened. It waits for nothing else, so a slow reload delays no rotation.
    pub(super) fn start(mut self, writer: LogWriter) -> io::Result<()> {
        let reopen = move || {
            let signals = async {
                while self.signal.recv().await.is_some() {
                    writer.reopen();
                }
            };
            self.runtime.block_on(signals);
        };
        let thread = thread::Builder::new().name("log-reopening".to_owned());
        thread.spawn(reopen).map(drop)
    }
}

//! Reloading the configuration of a running program.
//!
//! A reload is triggered by SIGHUP, by the program's `reload` command ([`control`]), by another part of the program through
//! a [`ReloadHandle`], or by a change of a watched file (`watch`). Reloads run one after the other. An invalid file changes
//! nothing. Keys that need a new process keep their old values, and each reload lists them.
//!
//! | what | limit |
//! | --- | --- |
//! | signals during a reload | one further reload |
//! | concurrent `reload` commands | one runs, others wait in the socket's backlog |
//! | concurrent calls of a [`ReloadHandle`] | one runs, others wait |
//! | reading a command, writing its reply | 5 s each |
//! | commands being read | 8 |
//! | reading the files | 30 s |

pub mod control;
mod handle;
pub(crate) mod last_reload;
mod report;
mod watch;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::anyhow;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, watch::Sender},
    time::timeout,
};

use self::{
    control::{Command, Verb},
    handle::Call,
    watch::FileWatch,
};
pub use self::{
    handle::{ReloadError, ReloadHandle},
    last_reload::LastReload,
    report::Report,
};
use crate::{
    clock::{Clock, SystemClock},
    config::{ConfigError, Loaded, Settings},
    server::health::HealthAddress,
};

/// Timeout for reading the files: one may be on a server that does not answer.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// A program whose configuration can be reloaded.
pub trait Reload: Send + Sync + 'static {
    /// The program's configuration.
    type Config: Send + Sync + 'static;

    /// Reads the configuration in `file`. Blocks.
    ///
    /// # Errors
    ///
    /// The configuration is invalid.
    fn load(&self, file: &Path) -> Result<Loaded<Self::Config>, ConfigError>;

    /// Whether a changed key needs a new process; `changed` lists all changed keys.
    fn needs_restart(&self, key: &str, changed: &[&str]) -> bool;

    /// What an operator should know of a valid configuration: what `check` prints.
    fn warnings(&self, _config: &Self::Config) -> impl Future<Output = Vec<String>> + Send {
        async { Vec::new() }
    }

    /// What applies such keys, and what that loses; precedes their list. `file` is the program's.
    fn new_process(&self, file: &Path) -> String;

    /// Applies a configuration, except for keys that need a new process. Must change nothing if it fails.
    fn apply(&self, config: Self::Config) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Called after a reload was applied, unless a [`ReloadHandle`] triggered it. The next reload waits for it.
    fn reloaded(&self, _by: Trigger, _report: &Report) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Hands over to a new process. Returns what to tell the operator; this process then stops by itself.
    ///
    /// # Errors
    ///
    /// The program cannot do this, or the new process failed: this one goes on.
    fn upgrade(&self) -> impl Future<Output = anyhow::Result<String>> + Send {
        async {
            Err(anyhow!(
                "this program cannot be upgraded while it runs: restart it"
            ))
        }
    }

    /// The program's state, for its own commands; at most 1 MiB. `differs` is whether its file would change it.
    ///
    /// # Errors
    ///
    /// The program reports none.
    fn status(&self, _differs: bool) -> anyhow::Result<String> {
        Err(anyhow!("this program reports no state"))
    }

    /// Where the program serves `/readyz`.
    fn health_address(&self) -> HealthAddress;
}

/// What has triggered a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The `reload` command of a user of the system.
    Command {
        /// User ID of the process that sent the command.
        user: u32,
    },
    /// SIGHUP.
    Signal,
    /// A change of a watched file.
    Watch,
}

/// Listener for SIGHUP, which triggers a reload.
#[derive(Debug)]
pub struct ReloadSignals(Signal);

impl ReloadSignals {
    /// Installs a handler: from here on the signal no longer ends the process. Needs a runtime.
    ///
    /// # Errors
    ///
    /// The system does not allow it.
    pub fn listen() -> io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }
}

/// Reloads a program's configuration on signals, commands, calls and file changes.
pub struct Reloader<R: Reload> {
    program: Arc<R>,
    file: PathBuf,
    /// The settings in effect.
    running: Sender<Settings>,
    hangups: ReloadSignals,
    commands: mpsc::Receiver<Command>,
    calls: mpsc::Receiver<Call>,
    /// For further handles; so the queue of calls never ends.
    handle: ReloadHandle,
    watch: FileWatch,
    last: Arc<LastReload>,
}

impl<R: Reload> Reloader<R> {
    /// Creates a reloader for the program running with the settings of `file`. Signals that `hangups` received already
    /// trigger a reload. `last` is what the metrics show of them. Needs a runtime.
    pub fn new(
        program: R,
        file: PathBuf,
        running: Settings,
        hangups: ReloadSignals,
        last: Arc<LastReload>,
    ) -> Self {
        last.succeed(SystemClock.now());
        let watch = FileWatch::new(running.is_watched, running.files.clone());
        let running = Sender::new(running);
        let (handle, calls) = ReloadHandle::new(running.subscribe());
        Self {
            last,
            hangups,
            commands: control::commands(&file),
            calls,
            handle,
            watch,
            program: Arc::new(program),
            file,
            running,
        }
    }

    /// A handle for this process.
    #[must_use]
    pub fn handle(&self) -> ReloadHandle {
        self.handle.clone()
    }

    /// Handles signals, commands, calls and file changes. Returns once the program has handed over to a new process.
    pub async fn run(mut self) {
        loop {
            tokio::select! {
                // Each branch can be dropped half-way: the watch and the channels keep what has happened.
                Some(()) = self.hangups.0.recv() => drop(self.reload_by(Trigger::Signal).await),
                () = self.watch.changed() => drop(self.reload_by(Trigger::Watch).await),
                Some(call) = self.calls.recv() => self.answer(call).await,
                Some(command) = self.commands.recv() => {
                    let reply = self.execute(&command).await;
                    if command.verb == Verb::Upgrade && reply.is_ok() {
                        self.commands.close();
                        // Their clients need not wait for the successor.
                        while self.commands.try_recv().is_ok() {}
                        // The next command reaches the new process.
                        control::wait_for_successor(&self.file).await;
                        return command.reply(reply).await;
                    }
                    command.reply(reply).await;
                }
            }
        }
    }

    async fn answer(&mut self, call: Call) {
        let report = if call.is_reload {
            self.reload().await
        } else {
            self.compare().await
        };
        // The caller may have given up.
        drop(call.reply.send(report));
    }

    async fn execute(&mut self, command: &Command) -> anyhow::Result<String> {
        let user = command.user;
        let report = match command.verb {
            Verb::Reload => self.reload_by(Trigger::Command { user }).await,
            Verb::Diff => self.compare().await,
            Verb::Upgrade => return self.program.upgrade().await,
            Verb::Status => {
                // An invalid file differs, too.
                let report = self.compare().await;
                return self
                    .program
                    .status(!report.is_ok_and(|report| report.is_empty()));
            }
            Verb::HealthAddress => return Ok(self.program.health_address().to_string()),
        };
        report
            .map(|report| report.to_string())
            .map_err(|error| anyhow!("{error}\nnot reloaded: the old configuration stays"))
    }

    async fn reload_by(&mut self, trigger: Trigger) -> Result<Report, ConfigError> {
        let report = self.reload().await?;
        self.program.reloaded(trigger, &report).await;
        Ok(report)
    }

    async fn reload(&mut self) -> Result<Report, ConfigError> {
        let loaded = self.load().await;
        // Also after a failure the watch continues from what was read: the same content is not tried again.
        let files = match &loaded {
            Ok(loaded) => loaded.settings.files.clone(),
            Err(error) => error.files.clone(),
        };
        let report = match loaded {
            Ok(loaded) => self.apply(loaded).await,
            Err(error) => Err(error),
        };
        // Nothing was read after a timeout or a panic: the watch compares with what it knew before.
        if !files.is_empty() {
            self.watch = FileWatch::new(self.running.borrow().is_watched, files);
        }
        match &report {
            Ok(report) => {
                self.last.succeed(SystemClock.now());
                report.log();
            }
            Err(error) => {
                self.last.fail();
                let file = self.file.display();
                for problem in error.lines() {
                    tracing::error!(%file, problem, "configuration not reloaded");
                }
            }
        }
        report
    }

    async fn compare(&self) -> Result<Report, ConfigError> {
        let loaded = self.load().await?;
        Ok(self.report(&loaded, false).await)
    }

    async fn load(&self) -> Result<Loaded<R::Config>, ConfigError> {
        let (program, file) = (Arc::clone(&self.program), self.file.clone());
        let loading = tokio::task::spawn_blocking(move || program.load(&file));
        let failed = |text| Err(ConfigError::new(&self.file, text, Vec::new()));
        // After the timeout its thread goes on reading, since no thread can be cancelled; its result is dropped.
        match timeout(LOAD_TIMEOUT, loading).await {
            Ok(Ok(loaded)) => loaded,
            // A panic while reading: the running configuration stays.
            Ok(Err(cause)) => failed(cause.to_string()),
            Err(_) => {
                let seconds = LOAD_TIMEOUT.as_secs();
                failed(format!("a file cannot be read within {seconds} s"))
            }
        }
    }

    async fn apply(&mut self, loaded: Loaded<R::Config>) -> Result<Report, ConfigError> {
        let report = self.report(&loaded, true).await;
        let applied = self.program.apply(loaded.config).await;
        applied.map_err(|error| ConfigError::new(&self.file, format!("{error:#}"), Vec::new()))?;
        let kept = &report.needing_restart;
        let is_kept = |key: &str| kept.iter().any(|change| change.key == key);
        // Keys that wait for a new process keep their old values here, so that every later reload lists them again.
        let running = loaded
            .settings
            .with_kept_keys(&self.running.borrow(), is_kept);
        self.running.send_replace(running);
        Ok(report)
    }

    async fn report(&self, new: &Loaded<R::Config>, is_applied: bool) -> Report {
        let warnings = self.program.warnings(&new.config).await;
        let all = self.running.borrow().changes(&new.settings);
        let keys: Vec<_> = all.iter().map(|change| change.key.as_str()).collect();
        let (needing_restart, changed) = all
            .iter()
            .cloned()
            .partition(|change| self.program.needs_restart(&change.key, &keys));
        Report {
            file: self.file.clone(),
            is_applied,
            warnings,
            changed,
            needing_restart,
            new_process: self.program.new_process(&self.file),
        }
    }
}

#[cfg(test)]
mod tests;

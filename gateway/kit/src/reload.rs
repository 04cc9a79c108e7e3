//! Reloading the configuration of a running program.
//!
//! A reload is triggered by SIGHUP, by the program's `reload` command ([`control`]), or by a change of a watched file
//! (`watch`). Reloads run one after the other. An invalid file changes nothing. Keys that need a new process keep their
//! old values, and each reload lists them.
//!
//! | what | limit |
//! | --- | --- |
//! | signals during a reload | one further reload |
//! | concurrent `reload` commands | one runs, others wait in the socket's backlog |
//! | reading a command, writing its reply | 5 s each |
//! | commands being read | 8 |
//! | reading the files | 30 s |

pub mod control;
mod last_reload;
mod watch;

use std::{
    fmt, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::anyhow;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    time::timeout,
};

pub use self::last_reload::LastReload;
use self::{
    control::{Command, Verb},
    watch::FileWatch,
};
use crate::{
    clock::{Clock, SystemClock},
    config::{Change, ConfigError, Loaded, Settings},
};

/// Timeout for reading the files: one may be on a server that does not answer.
const LOAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Limit of the keys in a line of the log.
const MAX_LOGGED_KEYS: usize = 20;

/// A program whose configuration can be reloaded.
pub trait Reload: Send + Sync + 'static {
    /// The program's configuration.
    type Config: Send + 'static;

    /// Reads the configuration in `file`. Blocks.
    ///
    /// # Errors
    ///
    /// The configuration is invalid.
    fn load(&self, file: &Path) -> Result<Loaded<Self::Config>, ConfigError>;

    /// Whether a changed key needs a new process; `changed` lists all changed keys.
    fn needs_restart(&self, key: &str, changed: &[&str]) -> bool;

    /// What applies such keys, and what that loses; precedes their list. `file` is the program's.
    fn new_process(&self, file: &Path) -> String;

    /// Applies a configuration, except for keys that need a new process. Must change nothing if it fails.
    fn apply(&self, config: Self::Config) -> impl Future<Output = anyhow::Result<()>> + Send;

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

    /// The address on which the program serves `/readyz`.
    fn health_address(&self) -> SocketAddr;
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

/// What a reload changed, or would change. `Display` is the output of the commands.
#[derive(Debug)]
struct Report {
    file: PathBuf,
    /// Otherwise it was only compared.
    is_applied: bool,
    changed: Vec<Change>,
    needing_restart: Vec<Change>,
    /// What applies these.
    new_process: String,
}

/// Reloads a program's configuration on signals, commands and file changes.
pub struct Reloader<R: Reload> {
    program: Arc<R>,
    file: PathBuf,
    /// The settings in effect.
    running: Settings,
    hangups: ReloadSignals,
    commands: mpsc::Receiver<Command>,
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
        Self {
            last,
            hangups,
            commands: control::commands(&file),
            watch: FileWatch::new(running.is_watched, running.files.clone()),
            program: Arc::new(program),
            file,
            running,
        }
    }

    /// Handles signals, commands and file changes. Returns once the program has handed over to a new process.
    pub async fn run(mut self) {
        loop {
            tokio::select! {
                Some(()) = self.hangups.0.recv() => drop(self.reload().await),
                () = self.watch.changed() => drop(self.reload().await),
                Some(command) = self.commands.recv() => {
                    let reply = self.execute(command.verb).await;
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

    async fn execute(&mut self, verb: Verb) -> anyhow::Result<String> {
        let report = match verb {
            Verb::Reload => self.reload().await,
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

    async fn reload(&mut self) -> Result<Report, ConfigError> {
        let loaded = self.load().await;
        // Also after a failure the watch continues from what was read: the same content is not tried again.
        let read = match &loaded {
            Ok(loaded) => loaded.settings.files.clone(),
            Err(error) => error.files.clone(),
        };
        let report = match loaded {
            Ok(loaded) => self.apply(loaded).await,
            Err(error) => Err(error),
        };
        if !read.is_empty() {
            self.watch = FileWatch::new(self.running.is_watched, read);
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
        Ok(self.report(&loaded.settings, false))
    }

    async fn load(&self) -> Result<Loaded<R::Config>, ConfigError> {
        let (program, file) = (Arc::clone(&self.program), self.file.clone());
        let loading = tokio::task::spawn_blocking(move || program.load(&file));
        let failed = |text| Err(ConfigError::new(&self.file, text, Vec::new()));
        match timeout(LOAD_TIMEOUT, loading).await {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(cause)) => failed(cause.to_string()),
            Err(_) => {
                let seconds = LOAD_TIMEOUT.as_secs();
                failed(format!("a file cannot be read within {seconds} s"))
            }
        }
    }

    async fn apply(&mut self, loaded: Loaded<R::Config>) -> Result<Report, ConfigError> {
        let report = self.report(&loaded.settings, true);
        let applied = self.program.apply(loaded.config).await;
        applied.map_err(|error| ConfigError::new(&self.file, format!("{error:#}"), Vec::new()))?;
        let kept = &report.needing_restart;
        let is_kept = |key: &str| kept.iter().any(|change| change.key == key);
        self.running = loaded.settings.with_kept_keys(&self.running, is_kept);
        Ok(report)
    }

    fn report(&self, new: &Settings, is_applied: bool) -> Report {
        let all = self.running.changes(new);
        let keys: Vec<_> = all.iter().map(|change| change.key.as_str()).collect();
        let (needing_restart, changed) = all
            .iter()
            .cloned()
            .partition(|change| self.program.needs_restart(&change.key, &keys));
        Report {
            file: self.file.clone(),
            is_applied,
            changed,
            needing_restart,
            new_process: self.program.new_process(&self.file),
        }
    }
}

impl Report {
    const fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.needing_restart.is_empty()
    }

    fn log(&self) {
        let file = self.file.display();
        let changed = match keys(&self.changed) {
            none if none.is_empty() => "nothing changed".to_owned(),
            changed => changed,
        };
        tracing::info!(%file, changed, "configuration reloaded");
        if !self.needing_restart.is_empty() {
            let keys = keys(&self.needing_restart);
            tracing::warn!(%file, keys, "keys keep their values: {}", self.new_process);
        }
    }
}

/// The keys of changes, for the log; of many, the first ones and how many there are more. The commands list all.
fn keys(changes: &[Change]) -> String {
    let (shown, further) = changes.split_at(changes.len().min(MAX_LOGGED_KEYS));
    let keys: Vec<_> = shown.iter().map(|change| change.key.as_str()).collect();
    let keys = keys.join(", ");
    match further.len() {
        0 => keys,
        more => format!("{keys} and {more} more"),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = match (self.is_applied, self.changed.is_empty()) {
            (true, false) => "reloaded",
            (true, true) => "reloaded, nothing changed",
            (false, false) => "OK, a reload would change:",
            (false, true) => "OK, a reload would change nothing",
        };
        write!(formatter, "{}: {title}", self.file.display())?;
        for change in &self.changed {
            write!(formatter, "\n  {change}")?;
        }
        if !self.needing_restart.is_empty() {
            write!(formatter, "\n{}:", self.new_process)?;
        }
        for change in &self.needing_restart {
            write!(formatter, "\n  {change}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Reloading the configuration of a running program.
//!
//! A reload is triggered by SIGHUP, by the program's `reload` command ([`control`]), or by a change of a watched file
//! (`watch`). Reloads run one after the other. An invalid file changes nothing. Keys that need a restart keep their old
//! values, and each reload lists them.
//!
//! | what | limit |
//! | --- | --- |
//! | signals during a reload | one further reload |
//! | concurrent `reload` commands | one runs, others wait in the socket's backlog |
//! | reading a command, writing its reply | 5 s each |
//! | commands being read | 8 |
//! | reading the files | 30 s |

pub mod control;
mod counts;
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

pub use self::counts::ReloadCounts;
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

    /// Whether a changed key needs a restart; `changed` lists all changed keys.
    fn needs_restart(&self, key: &str, changed: &[&str]) -> bool;

    /// Applies a configuration, except for keys that need a restart. Must change nothing if it fails.
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

/// The outcome of a reload, or of a comparison. `Display` is the output of the `reload` command.
#[derive(Debug)]
pub struct Report {
    file: PathBuf,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    /// The configuration was reloaded.
    Applied(Differences),
    /// What a reload would change.
    Compared(Differences),
    /// The file is invalid: the old configuration stays in effect.
    Invalid(ConfigError),
    /// The file could not be read in time, or not be applied: the old configuration stays in effect.
    Failed(anyhow::Error),
}

#[derive(Debug)]
struct Differences {
    changed: Vec<Change>,
    needing_restart: Vec<Change>,
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
    counts: Arc<ReloadCounts>,
}

impl<R: Reload> Reloader<R> {
    /// Creates a reloader for the program running with the settings of `file`. Signals that `hangups` received already
    /// trigger a reload. `counts` is what the metrics show of them. Needs a runtime.
    pub fn new(
        program: R,
        file: PathBuf,
        running: Settings,
        hangups: ReloadSignals,
        counts: Arc<ReloadCounts>,
    ) -> Self {
        counts.start(SystemClock.now());
        Self {
            counts,
            hangups,
            commands: control::commands(&file),
            watch: FileWatch::new(running.is_watched(), running.files().to_vec()),
            program: Arc::new(program),
            file,
            running,
        }
    }

    /// Handles signals, commands and file changes. Returns once the program has handed over to a new process.
    pub async fn run(mut self) {
        loop {
            tokio::select! {
                Some(()) = self.hangups.0.recv() => {
                    self.reload().await;
                }
                Some(command) = self.commands.recv() => {
                    let report = match command.verb() {
                        Verb::Reload => self.reload().await,
                        Verb::Diff => self.compare().await,
                        Verb::Upgrade => {
                            match self.program.upgrade().await {
                                Ok(text) => {
                                    drop(self.commands);
                                    // The next command reaches the new process.
                                    control::wait_for_successor(&self.file).await;
                                    return command.reply(true, &text).await;
                                }
                                Err(error) => command.reply(false, &format!("{error:#}")).await,
                            }
                            continue;
                        }
                        Verb::Status => {
                            let differs = self.compare().await.differs();
                            match self.program.status(differs) {
                                Ok(text) => command.reply(true, &text).await,
                                Err(error) => command.reply(false, &format!("{error:#}")).await,
                            }
                            continue;
                        }
                        Verb::HealthAddress => {
                            let address = self.program.health_address();
                            command.reply(true, &address.to_string()).await;
                            continue;
                        }
                    };
                    command.reply(report.is_success(), &report.to_string()).await;
                }
                () = self.watch.changed() => {
                    self.reload().await;
                }
            }
        }
    }

    async fn reload(&mut self) -> Report {
        let loaded = self.load().await;
        // Also after a failure the watch continues from what was read: the same content is not tried again.
        let read = match &loaded {
            Ok(loaded) => Some(loaded.settings.files().to_vec()),
            Err(Outcome::Invalid(error)) => Some(error.files()),
            Err(_) => None,
        };
        let outcome = match loaded {
            Ok(loaded) => self.apply(loaded).await,
            Err(outcome) => outcome,
        };
        if let Some(read) = read {
            self.watch = FileWatch::new(self.running.is_watched(), read);
        }
        let report = Report {
            file: self.file.clone(),
            outcome,
        };
        if report.is_success() {
            self.counts.succeed(SystemClock.now());
        } else {
            self.counts.fail();
        }
        report.log();
        report
    }

    async fn compare(&self) -> Report {
        let outcome = match self.load().await {
            Ok(loaded) => Outcome::Compared(self.differences(&loaded.settings)),
            Err(outcome) => outcome,
        };
        Report {
            file: self.file.clone(),
            outcome,
        }
    }

    async fn load(&self) -> Result<Loaded<R::Config>, Outcome> {
        let (program, file) = (Arc::clone(&self.program), self.file.clone());
        let loading = tokio::task::spawn_blocking(move || program.load(&file));
        match timeout(LOAD_TIMEOUT, loading).await {
            Ok(Ok(loaded)) => loaded.map_err(Outcome::Invalid),
            Ok(Err(cause)) => Err(Outcome::Failed(cause.into())),
            Err(_) => Err(Outcome::Failed(anyhow!(
                "a file cannot be read within {} s",
                LOAD_TIMEOUT.as_secs()
            ))),
        }
    }

    async fn apply(&mut self, loaded: Loaded<R::Config>) -> Outcome {
        let differences = self.differences(&loaded.settings);
        if let Err(error) = self.program.apply(loaded.config).await {
            return Outcome::Failed(error);
        }
        let kept = &differences.needing_restart;
        let is_kept = |key: &str| kept.iter().any(|change| change.key == key);
        self.running = loaded.settings.with_kept_keys(&self.running, is_kept);
        Outcome::Applied(differences)
    }

    fn differences(&self, new: &Settings) -> Differences {
        let all = self.running.changes(new);
        let keys: Vec<_> = all.iter().map(|change| change.key.as_str()).collect();
        let needs_restart: Vec<_> = keys
            .iter()
            .map(|key| self.program.needs_restart(key, &keys))
            .collect();
        let (needing_restart, changed): (Vec<_>, Vec<_>) = all
            .into_iter()
            .zip(needs_restart)
            .partition(|(_, needs_restart)| *needs_restart);
        let changes = |pairs: Vec<(Change, bool)>| pairs.into_iter().map(|(change, _)| change);
        Differences {
            changed: changes(changed).collect(),
            needing_restart: changes(needing_restart).collect(),
        }
    }
}

impl Report {
    /// Whether the file is invalid, or a reload or restart would change something.
    const fn differs(&self) -> bool {
        match &self.outcome {
            Outcome::Applied(found) | Outcome::Compared(found) => {
                !found.changed.is_empty() || !found.needing_restart.is_empty()
            }
            Outcome::Invalid(_) | Outcome::Failed(_) => true,
        }
    }

    /// Whether the file is valid, and was applied if that was requested.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self.outcome, Outcome::Applied(_) | Outcome::Compared(_))
    }

    fn log(&self) {
        let file = self.file.display();
        match &self.outcome {
            Outcome::Applied(differences) => {
                let changed = keys(&differences.changed);
                let changed = or_nothing(&changed);
                tracing::info!(%file, changed, "configuration reloaded");
                if !differences.needing_restart.is_empty() {
                    let keys = keys(&differences.needing_restart);
                    tracing::warn!(%file, keys, "a restart is needed for some keys: the old values stay until then");
                }
            }
            Outcome::Compared(_) => {}
            Outcome::Invalid(error) => {
                for problem in error.lines() {
                    tracing::error!(%file, problem, "configuration not reloaded");
                }
            }
            Outcome::Failed(error) => {
                let problem = format!("{error:#}");
                tracing::error!(%file, problem, "configuration not reloaded");
            }
        }
    }
}

fn keys(changes: &[Change]) -> String {
    let keys: Vec<_> = changes.iter().map(|change| change.key.as_str()).collect();
    keys.join(", ")
}

fn or_nothing(changed: &str) -> &str {
    if changed.is_empty() {
        "nothing changed"
    } else {
        changed
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        let (differences, title, nothing) = match &self.outcome {
            Outcome::Applied(differences) => (differences, "reloaded", "reloaded, nothing changed"),
            Outcome::Compared(differences) => (
                differences,
                "OK, a reload would change:",
                "OK, a reload would change nothing",
            ),
            Outcome::Invalid(error) => {
                return write!(
                    formatter,
                    "{error}\nnot reloaded: the old configuration stays"
                );
            }
            Outcome::Failed(error) => {
                return write!(
                    formatter,
                    "{file}: {error:#}\nnot reloaded: the old configuration stays"
                );
            }
        };
        let is_empty = differences.changed.is_empty();
        write!(
            formatter,
            "{file}: {}",
            if is_empty { nothing } else { title }
        )?;
        for change in &differences.changed {
            write!(formatter, "\n  {change}")?;
        }
        if !differences.needing_restart.is_empty() {
            formatter.write_str("\na restart is needed for:")?;
        }
        for change in &differences.needing_restart {
            write!(formatter, "\n  {change}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

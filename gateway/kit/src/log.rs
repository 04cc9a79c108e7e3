//! Log setup of all programs: one line per event, as plain text or JSON, to standard output or to a file. A separate thread
//! writes, so that logging never blocks.
//!
//! Format, filter and output can change while the program runs.
//!
//! | module | subject |
//! | --- | --- |
//! | `lines` | the lines in both formats |
//! | `writer` | the queue and the thread that writes |
//! | `reopening` | files are reopened on SIGUSR1 |
//! | [`once_a_minute`] | lines limited to one a minute |

mod lines;
pub mod once_a_minute;
mod reopening;
pub mod writer;

use std::{
    cell::Cell,
    error::Error,
    io::IsTerminal,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Chain, Context, anyhow};
use tracing::Subscriber;
use tracing_log::LogTracer;
use tracing_subscriber::{EnvFilter, Registry, layer::SubscriberExt, reload};

pub use self::reopening::ReopenSignals;
use self::writer::{CANNOT_OPEN, LogWriter, Output, USABLE, log_panics};
use crate::config::{
    ConfigError, Settings,
    shared_keys::{Log, LogFormat, LogOutput},
};

/// The tracing target of access lines, which filters can name.
pub const ACCESS_TARGET: &str = "signpost::access";

/// Levels below which these libraries log little of use. rustls warns of each client's illegal server name, of up to
/// 64 KiB; h2 warns of frames that a client can send in any number; the verifier reports each certificate that is not valid,
/// which the caller's own line does, too. The configured filter can lower them.
const LIBRARY_LEVELS: &str = "pingora_core=warn,pingora_load_balancing=error,deadpool=error,rustls=error,h2=error,\
    rustls_platform_verifier=off";

/// Timeout of a reload for opening files: one may be on a server that does not answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Logs the warnings about a valid configuration.
pub fn log_warnings(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

/// Checks that a start or a reload with the configuration in `file` could open its log. Creates nothing, but blocks.
///
/// # Errors
///
/// The output cannot be opened.
pub fn check_output(log: &Log, file: &Path) -> Result<(), ConfigError> {
    let output = &log.output;
    writer::check(output).map_err(|cause| {
        let text = format!("found {output}, which {CANNOT_OPEN} ({cause}); allowed: {USABLE}");
        ConfigError::of_key(file, "log.output", text)
    })
}

/// The text of an error and of all that caused it, separated by colons.
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes: Vec<_> = Chain::new(error).map(ToString::to_string).collect();
    causes.join(": ")
}

/// The running log. Clones share its state.
#[derive(Clone)]
pub struct Logging {
    writer: LogWriter,
    filter: reload::Handle<EnvFilter, Registry>,
    style: Arc<Style>,
}

/// A changed configuration of the log whose file is open.
pub struct PreparedLog<'l> {
    logging: &'l Logging,
    log: Log,
    output: Arc<Output>,
}

/// How lines look.
#[derive(Debug, Default)]
struct Style {
    is_json: AtomicBool,
    /// For a terminal.
    is_coloured: AtomicBool,
}

/// Prints errors into a test's own output: the test of a version shows why its handler failed.
#[doc(hidden)]
pub fn show_errors_in_test() {
    let errors = tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR);
    // An error means that another test has done so.
    let _ = errors.with_test_writer().without_time().try_init();
}

impl Logging {
    /// Starts the log for the whole process, including libraries that use the `log` crate. On the signals of `reopen` it
    /// opens its file again.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, the process has a logger already, or cannot get another descriptor or thread.
    pub fn start(log: &Log, reopen: ReopenSignals) -> anyhow::Result<Self> {
        // Below `info`, libraries log whole requests, responses and statements, with credentials, codes and tickets.
        // The cap is here so that no configured filter can enable that.
        let bridge = LogTracer::builder().with_max_level(tracing_log::log::LevelFilter::Info);
        bridge.init().context("cannot bridge log to tracing")?;
        let (logging, subscriber) = Self::with_subscriber(log)?;
        tracing::subscriber::set_global_default(subscriber).context("cannot start logging")?;
        log_panics();
        reopen
            .start(logging.writer.clone())
            .context("cannot start the thread that reopens log files")?;
        Ok(logging)
    }

    fn with_subscriber(log: &Log) -> anyhow::Result<(Self, Box<dyn Subscriber + Send + Sync>)> {
        let writer = LogWriter::open(log)?;
        let (filtering, filter) = reload::Layer::new(filter(&log.filter)?);
        let style = Arc::<Style>::default();
        style.set(log);
        let lines = lines::layer(&style, &writer);
        let layered = tracing_subscriber::registry().with(filtering).with(lines);
        let logging = Self {
            writer,
            filter,
            style,
        };
        Ok((logging, Box::new(layered)))
    }

    /// A log without output, for tests.
    ///
    /// # Panics
    ///
    /// The process cannot get another descriptor or thread.
    #[doc(hidden)]
    #[must_use]
    pub fn unused() -> Self {
        let log = Log {
            format: LogFormat::Human,
            filter: "info".to_owned(),
            output: LogOutput::Stdout,
            access_sample: 1,
        };
        let started = Self::with_subscriber(&log);
        started.expect("a test has a standard output").0
    }

    /// The writer of the lines.
    #[must_use]
    pub const fn writer(&self) -> &LogWriter {
        &self.writer
    }

    /// As [`check_output`], if the configuration that was loaded from `file` has another output than the running log.
    ///
    /// # Errors
    ///
    /// The output cannot be opened.
    pub fn check_changed_output(
        &self,
        log: &Log,
        file: &Path,
        settings: &Settings,
    ) -> Result<(), ConfigError> {
        if *self.writer.output().destination() == log.output {
            return Ok(());
        }
        check_output(log, file).map_err(|mut error| {
            error.files.clone_from(&settings.files);
            error
        })
    }

    /// Opens the file of another configuration. Nothing changes until [`PreparedLog::apply`].
    ///
    /// # Errors
    ///
    /// The file cannot be opened; the error names its key and path.
    pub async fn prepare(&self, log: &Log) -> anyhow::Result<PreparedLog<'_>> {
        let (writer, of_thread) = (self.writer.clone(), log.clone());
        let opening = tokio::task::spawn_blocking(move || writer.prepare(&of_thread));
        let opened = tokio::time::timeout(OPEN_TIMEOUT, opening).await;
        let seconds = OPEN_TIMEOUT.as_secs();
        let opened = opened
            .map_err(|_| anyhow!("log.output: the file cannot be opened within {seconds} s"))?;
        Ok(PreparedLog {
            logging: self,
            log: log.clone(),
            output: opened??,
        })
    }
}

impl PreparedLog<'_> {
    /// Changes format, filter and output, from the next line on.
    pub fn apply(self) {
        let logging = self.logging;
        logging.writer.replace(self.output);
        logging.style.set(&self.log);
        match filter(&self.log.filter) {
            // Fails only if the subscriber was dropped, which never happens.
            Ok(filter) => drop(logging.filter.reload(filter)),
            // Unexpected: the filter was checked when it was read.
            Err(cause) => {
                tracing::error!(%cause, "invalid log.filter: the old one stays in effect");
            }
        }
    }
}

impl Style {
    fn set(&self, log: &Log) {
        let is_json = log.format == LogFormat::Json;
        let is_seen = log.output == LogOutput::Stdout && std::io::stdout().is_terminal();
        // A line that another thread formats meanwhile may still have the old style; nothing depends on the order.
        self.is_json.store(is_json, Ordering::Relaxed);
        self.is_coloured.store(is_seen, Ordering::Relaxed);
    }
}

fn filter(configured: &str) -> anyhow::Result<EnvFilter> {
    // The configured directives come last: of two for the same target, the later one counts.
    EnvFilter::try_new(format!("{LIBRARY_LEVELS},{configured}")).context("log.filter")
}

thread_local! {
    /// Successes of this thread since the last one that was logged.
    static SKIPPED: Cell<u32> = const { Cell::new(0) };
}

/// Whether a request has an access line, by `log.access_sample`: each failure, and one success in `one_in`. 0: none has.
#[must_use]
pub fn has_access_line(one_in: u32, is_failure: bool) -> bool {
    one_in > 0 && (is_failure || is_sampled(one_in))
}

/// Whether a success gets its access line, if one in `one_in` does: the first success of each thread, and then every
/// `one_in`th. Costs a few instructions, and no thread waits for another. Failures are always logged, and are not
/// counted here.
fn is_sampled(one_in: u32) -> bool {
    if one_in <= 1 {
        return true;
    }
    SKIPPED.with(|skipped| {
        let before = skipped.get();
        skipped.set(if before + 1 >= one_in { 0 } else { before + 1 });
        before == 0
    })
}

/// A subscriber that writes plain lines, for the tests of the writer.
#[cfg(test)]
pub(crate) fn test_subscriber(writer: &LogWriter) -> impl Subscriber + Send + Sync + use<> {
    tracing_subscriber::registry().with(lines::layer(&Arc::default(), writer))
}

#[cfg(test)]
mod tests;

//! Log setup of all programs: one line per event, as plain text or JSON, to standard output. A separate thread writes,
//! so that logging never blocks.
//!
//! Format and filter can change while the program runs.

use std::{
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context;
use tracing::Subscriber;
use tracing_log::LogTracer;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::dynamic_filter_fn,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    registry::LookupSpan,
    reload,
};

use crate::{
    config::shared_keys::{Log, LogFormat},
    log_writer::{LogWriter, log_panics},
};

/// Levels below which these libraries log little of use. The configured filter can lower them.
const LIBRARY_LEVELS: &str = "pingora_core=warn,pingora_load_balancing=error,deadpool=error";

/// Logs the warnings about a valid configuration.
pub fn log_warnings(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

/// The running log. Clones share its state.
#[derive(Clone)]
pub struct Logging {
    writer: LogWriter,
    filter: reload::Handle<EnvFilter, Registry>,
    format: Arc<Format>,
}

/// The current one of the two formats.
#[derive(Debug)]
struct Format {
    is_json: AtomicBool,
}

impl Logging {
    /// Starts the log for the whole process, including libraries that use the `log` crate.
    ///
    /// # Errors
    ///
    /// The process has a logger already, or cannot get another descriptor or thread.
    pub fn start(log: &Log) -> anyhow::Result<Self> {
        // Below `info`, libraries log whole requests, responses and statements, with credentials, codes and tickets.
        // The cap is here so that no configured filter can enable that.
        let bridge = LogTracer::builder()
            .with_max_level(tracing_log::log::LevelFilter::Info)
            // Logs every start in detail, with or without migrations.
            .ignore_crate("refinery_core");
        bridge.init().context("cannot bridge log to tracing")?;
        let writer = LogWriter::to_stdout().context("cannot write to standard output")?;
        let is_terminal = std::io::stdout().is_terminal();
        let (subscriber, filter, format) = subscriber(log, writer.clone(), is_terminal)?;
        tracing::subscriber::set_global_default(subscriber).context("cannot start logging")?;
        log_panics();
        Ok(Self {
            writer,
            filter,
            format,
        })
    }

    /// A log without output, for tests.
    ///
    /// # Panics
    ///
    /// The process cannot get another descriptor or thread.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn unused() -> Self {
        let log = Log {
            format: LogFormat::Human,
            filter: "info".to_owned(),
            access: true,
        };
        let writer = LogWriter::to_stdout().expect("a test has a standard output");
        let (_, filter, format) =
            subscriber(&log, writer.clone(), false).expect("the filter is valid");
        Self {
            writer,
            filter,
            format,
        }
    }

    /// The writer of the lines.
    #[must_use]
    pub const fn writer(&self) -> &LogWriter {
        &self.writer
    }

    /// Changes format and filter, from the next line on.
    pub fn apply(&self, log: &Log) {
        self.format.set(log.format);
        match filter(&log.filter) {
            // Fails only if the subscriber was dropped, which never happens.
            Ok(filter) => drop(self.filter.reload(filter)),
            // Unexpected: the filter was checked when it was read.
            Err(cause) => {
                tracing::error!(%cause, "invalid log.filter: the old one stays in effect")
            }
        }
    }
}

impl Format {
    fn set(&self, format: LogFormat) {
        let is_json = format == LogFormat::Json;
        self.is_json.store(is_json, Ordering::Relaxed);
    }
}

type Parts = (
    Box<dyn Subscriber + Send + Sync>,
    reload::Handle<EnvFilter, Registry>,
    Arc<Format>,
);

fn subscriber<W>(log: &Log, writer: W, is_terminal: bool) -> anyhow::Result<Parts>
where
    W: for<'w> MakeWriter<'w> + Clone + Send + Sync + 'static,
{
    let (filter, filter_handle) = reload::Layer::new(filter(&log.filter)?);
    let format = Arc::new(Format {
        is_json: AtomicBool::new(false),
    });
    format.set(log.format);
    // Both layers always exist. A line, and the fields of its spans, go only to the one of the current format.
    let human = fmt::layer()
        .with_target(false)
        .with_ansi(is_terminal)
        .with_writer(writer.clone());
    // One flat object a line: the event's fields beside those of the request's span.
    let json = fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false)
        .with_writer(writer);
    let layered = tracing_subscriber::registry()
        .with(filter)
        .with(enabled_for(human, &format, false))
        .with(enabled_for(json, &format, true));
    Ok((Box::new(layered), filter_handle, format))
}

/// Enables a layer only while its format is the current one.
fn enabled_for<S>(layer: impl Layer<S>, format: &Arc<Format>, is_json: bool) -> impl Layer<S>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    let format = Arc::clone(format);
    layer.with_filter(dynamic_filter_fn(move |_, _| {
        format.is_json.load(Ordering::Relaxed) == is_json
    }))
}

fn filter(configured: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(format!("{LIBRARY_LEVELS},{configured}")).context("log.filter")
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Seek},
        sync::Arc,
    };

    use tracing::Level;
    use tracing_log::log::{self, Log as _, Record};

    use super::*;

    fn log(filter: &str, format: LogFormat) -> Log {
        Log {
            format,
            filter: filter.to_owned(),
            access: true,
        }
    }

    /// The lines written while `work` runs; it may change the log.
    fn written(log: &Log, work: impl FnOnce(&Logging)) -> String {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let (subscriber, filter, format) = subscriber(log, Arc::clone(&file), false).unwrap();
        let logging = Logging {
            writer: LogWriter::to_stdout().unwrap(),
            filter,
            format,
        };
        tracing::subscriber::with_default(subscriber, || work(&logging));
        let mut lines = String::new();
        let mut file = &*file;
        file.rewind().unwrap();
        file.read_to_string(&mut lines).unwrap();
        lines
    }

    fn log_from_library(target: &str, level: log::Level) {
        let line = format_args!("said");
        let mut record = Record::builder();
        LogTracer::new().log(&record.target(target).level(level).args(line).build());
    }

    #[test]
    fn libraries_are_quiet_unless_the_filter_names_them() {
        let of = |filter: &str, target: &str, level| {
            written(&log(filter, LogFormat::Human), |_| {
                log_from_library(target, level)
            })
        };
        for (target, quiet, loud) in [
            ("pingora_core::server", log::Level::Info, log::Level::Warn),
            (
                "pingora_load_balancing",
                log::Level::Warn,
                log::Level::Error,
            ),
            ("deadpool.postgres", log::Level::Warn, log::Level::Error),
        ] {
            assert_eq!(of("debug", target, quiet), "", "{target}");
            assert!(of("info", target, loud).contains("said"), "{target}");
        }
        assert!(of("info,deadpool=info", "deadpool.postgres", log::Level::Info).contains("said"));
        assert!(of("info", "tokio_postgres::query", log::Level::Info).contains("said"));
        assert_eq!(of("warn", "tokio_postgres::query", log::Level::Info), "");
    }

    #[test]
    fn format_and_filter_can_change_within_a_request() {
        let lines = written(&log("info", LogFormat::Human), |logging| {
            let span = tracing::span!(Level::INFO, "request", request.id = "r-1");
            let _entered = span.enter();
            tracing::debug!("filtered out");
            tracing::info!("first");
            logging.apply(&log("debug", LogFormat::Json));
            tracing::debug!("second");
            let span = tracing::span!(Level::INFO, "request", request.id = "r-2");
            span.in_scope(|| tracing::info!("third"));
            logging.apply(&log("warn", LogFormat::Human));
            tracing::info!("filtered out");
            tracing::warn!("fourth");
        });
        let lines: Vec<_> = lines.lines().collect();
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[0].contains("first") && lines[0].contains("r-1"));
        let json = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        assert_eq!(json(lines[1])["message"], "second");
        assert_eq!(json(lines[2])["span"]["request.id"], "r-2");
        assert!(lines[3].contains("fourth") && lines[3].contains("r-1"));
    }

    #[test]
    fn an_invalid_filter_is_rejected() {
        filter("info,login=debug").unwrap();
        filter("login=loud").unwrap_err();
    }
}

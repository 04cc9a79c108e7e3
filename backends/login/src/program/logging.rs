//! The log: one line per event, for people or as JSON, to standard output, by a thread of its own: no line blocks the
//! thread that logs.

use std::io::IsTerminal;

use anyhow::Context;
use signpost_kit::log_writer::{LogWriter, log_panics};
use tracing_log::{AsLog, LogTracer};
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
};

use crate::config::{LogConfig, LogFormat};

/// Libraries that the store is spoken to by: in detail they tell what is stored, hashes and people's names among it. What
/// is said of a failure they say at `info` or above; only the pool's warnings tell nothing that ours do not.
const STORE_LIBRARIES: [(&str, LevelFilter); 4] = [
    ("tokio_postgres", LevelFilter::INFO),
    ("postgres", LevelFilter::INFO),
    ("rusqlite", LevelFilter::INFO),
    ("deadpool", LevelFilter::ERROR),
];

/// Installs the log for the whole process, for libraries that speak `log` too.
pub(super) fn start(config: LogConfig) -> anyhow::Result<LogWriter> {
    let writer = LogWriter::to_stdout().context("cannot write to standard output")?;
    let format: Box<dyn Layer<Registry> + Send + Sync> = match config.format {
        LogFormat::Human => fmt::layer()
            .with_target(false)
            .with_ansi(std::io::stdout().is_terminal())
            .with_writer(writer.clone())
            .boxed(),
        // One flat object a line: the event's fields beside those of the request's span.
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .with_writer(writer.clone())
            .boxed(),
    };
    let layered = tracing_subscriber::registry().with(format.with_filter(levels(config.level)));
    // An error says that a log is installed already; then that one is used.
    let _ = tracing::subscriber::set_global_default(layered);
    let _ = LogTracer::builder()
        .with_max_level(config.level.as_log())
        // Narrates every start, migrations or not.
        .ignore_crate("refinery_core")
        .init();
    log_panics();
    Ok(writer)
}

/// What is written at `level`: of the store's libraries so much at most, whoever is hunting for whatever.
fn levels(level: LevelFilter) -> Targets {
    let capped = STORE_LIBRARIES.map(|(library, most)| (library, level.min(most)));
    Targets::new().with_default(level).with_targets(capped)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Seek},
        sync::Arc,
    };

    use tracing::Level;
    use tracing_log::log::{self, Log, Record};

    use super::*;

    /// What is written at `level` of a line that a library says by `log`.
    fn written(level: LevelFilter, target: &str, said_at: log::Level) -> String {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let layer = fmt::layer().with_writer(Arc::clone(&file));
        let layered = tracing_subscriber::registry().with(layer.with_filter(levels(level)));
        tracing::subscriber::with_default(layered, || {
            let line = format_args!("with parameters: [secret]");
            let mut record = Record::builder();
            let record = record.target(target).level(said_at).args(line).build();
            LogTracer::new().log(&record);
        });
        let mut lines = String::new();
        let mut file = &*file;
        file.rewind().unwrap();
        file.read_to_string(&mut lines).unwrap();
        lines
    }

    #[test]
    fn what_is_stored_is_not_written_at_any_level() {
        for target in [
            "tokio_postgres::query",
            "tokio_postgres",
            "deadpool.postgres",
        ] {
            for said_at in [log::Level::Debug, log::Level::Trace] {
                assert_eq!(written(LevelFilter::TRACE, target, said_at), "", "{target}");
            }
            let told = written(LevelFilter::TRACE, target, log::Level::Error);
            assert!(told.contains("secret"), "{target}");
            assert_eq!(
                written(LevelFilter::WARN, target, log::Level::Info),
                "",
                "{target}"
            );
        }
    }

    #[test]
    fn all_others_are_written_at_the_level_asked_for() {
        let told = written(LevelFilter::TRACE, "login::flow", log::Level::Trace);
        assert!(told.contains("secret"));
        assert_eq!(
            written(LevelFilter::INFO, "login::flow", log::Level::Debug),
            ""
        );
        assert!(levels(LevelFilter::DEBUG).would_enable("login", &Level::DEBUG));
        assert!(!levels(LevelFilter::DEBUG).would_enable("login", &Level::TRACE));
    }
}

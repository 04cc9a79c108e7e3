//! The log: one line per event, for people or as JSON, to standard output.

use std::io::IsTerminal;

use tracing_log::{AsLog, LogTracer};
use tracing_subscriber::{Layer, Registry, fmt, layer::SubscriberExt};

use crate::config::{LogConfig, LogFormat};

/// Installs the log for the whole process, for libraries that speak `log` too.
pub(super) fn start(config: LogConfig) {
    let format: Box<dyn Layer<Registry> + Send + Sync> = match config.format {
        LogFormat::Human => fmt::layer()
            .with_target(false)
            .with_ansi(std::io::stdout().is_terminal())
            .boxed(),
        // One flat object a line: the event's fields beside those of the request's span.
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed(),
    };
    let layered = tracing_subscriber::registry().with(format.with_filter(config.level));
    // An error says that a log is installed already; then that one is used.
    let _ = tracing::subscriber::set_global_default(layered);
    let _ = LogTracer::builder()
        .with_max_level(config.level.as_log())
        // Narrates every start, migrations or not.
        .ignore_crate("refinery_core")
        .init();
}

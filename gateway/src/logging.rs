//! How the log is written: set up once, for our own lines and for pingora's.

use std::io::IsTerminal;

use anyhow::Context;
use signpost_kit::log_writer::{LogWriter, log_panics};
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{Log, LogFormat};

/// Starts logging to standard error, by a thread of its own: no line blocks the thread that logs.
///
/// # Errors
///
/// Something else in the process already does, or there is no thread left.
pub fn start(log: &Log) -> anyhow::Result<LogWriter> {
    // pingora speaks `log`: one bridge for all of its lines. What it tells below `info` are whole requests and
    // answers, with credentials, codes and tickets in them: no filter brings that back.
    let bridge = tracing_log::LogTracer::builder()
        .with_max_level(log::LevelFilter::Info)
        // Narrates every start, migrations or not.
        .ignore_crate("refinery_core");
    bridge.init().context("cannot bridge log to tracing")?;
    let filter = EnvFilter::try_new(&log.filter).context("log.filter")?;
    let is_watched = std::io::stderr().is_terminal();
    let writer = LogWriter::to_stderr().context("cannot write to standard error")?;
    let lines = fmt()
        .with_env_filter(filter)
        .with_writer(writer.clone())
        .with_ansi(is_watched);
    let started = match log.format {
        LogFormat::Human => {
            tracing::subscriber::set_global_default(lines.with_target(false).finish())
        }
        LogFormat::Json => {
            tracing::subscriber::set_global_default(lines.json().flatten_event(true).finish())
        }
    };
    started.context("cannot start logging")?;
    log_panics();
    Ok(writer)
}

//! How the log is written.

use tracing_subscriber::filter::LevelFilter;

use super::{problems::Problems, raw::RawLog};

/// Format and level of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// For people or for programs; default for people.
    pub format: LogFormat,
    /// The least urgent level that is written; default `info`.
    pub level: LevelFilter,
}

/// What a log line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// A line to read.
    Human,
    /// One JSON object a line.
    Json,
}

impl LogConfig {
    pub(super) fn read(raw: RawLog, problems: &mut Problems) -> Self {
        let format = match raw.format.as_deref() {
            None | Some("human") => LogFormat::Human,
            Some("json") => LogFormat::Json,
            Some(other) => {
                problems.add("log.format", &format!("{other:?}"), "\"human\" or \"json\"");
                LogFormat::Human
            }
        };
        let level = raw.level.as_deref().unwrap_or("info");
        let allowed = "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"";
        let level = problems
            .parse("log.level", level, allowed)
            .unwrap_or(LevelFilter::INFO);
        Self { format, level }
    }
}

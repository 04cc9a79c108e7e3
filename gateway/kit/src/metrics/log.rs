//! Metrics of the log.

use std::fmt;

use super::{Family, Scrape, Source};
use crate::log::writer::{DroppedLines, LogKind};

const DROPPED: Family = Family {
    name: "signpost_log_lines_dropped",
    help: "Log lines that were lost: the reader or disk was too slow or full",
};

/// The number of dropped lines.
#[derive(Debug)]
pub struct LogMetrics(DroppedLines);

impl LogMetrics {
    /// `dropped` is the log's, see [`LogWriter::dropped_lines`](crate::log::writer::LogWriter::dropped_lines).
    #[must_use]
    pub const fn new(dropped: DroppedLines) -> Self {
        Self(dropped)
    }
}

impl Source for LogMetrics {
    fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        scrape.counter(DROPPED, |add| {
            for kind in LogKind::ALL {
                add(&[("log", kind.as_str())], self.0.value(kind))?;
            }
            Ok(())
        })
    }
}

//! Counts the connections that requests take, for the metrics.

use signpost_kit::{label_enum, metrics::cells::Counters};

label_enum! {
    /// Where the connection for an attempt comes from: the label `result`.
    pub(crate) enum Taken {
        /// From the thread's pool.
        Reused = "reused",
        /// It was established.
        New = "new",
        /// It could not be established.
        Failed = "failed",
    }
}

/// The connections of all attempts so far.
#[derive(Debug)]
pub(crate) struct TakenConnections(Counters);

impl Default for TakenConnections {
    fn default() -> Self {
        Self(Counters::new(Taken::ALL.len()))
    }
}

impl TakenConnections {
    /// Counts one.
    pub(super) fn count(&self, taken: Taken) {
        self.0.add(taken as usize, 1);
    }

    /// Their number.
    pub(crate) fn value(&self, taken: Taken) -> u64 {
        self.0.value(taken as usize)
    }
}

//! Counts the connections that requests take, for the metrics.

use signpost_kit::metrics::cells::Counters;

/// Where the connection for an attempt comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// From the thread's pool.
    Reused,
    /// It was established.
    New,
    /// It could not be established.
    Failed,
}

impl Taken {
    /// All of them, in their order.
    pub(crate) const ALL: [Self; 3] = [Self::Reused, Self::New, Self::Failed];

    /// The value of the label `result`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Reused => "reused",
            Self::New => "new",
            Self::Failed => "failed",
        }
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

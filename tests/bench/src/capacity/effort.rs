//! How much is measured.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::load::workers::Until;

/// How much, and how long.
#[derive(Clone, Debug, Serialize)]
pub struct Effort {
    /// Workers at once: each waits for its answer before it goes on.
    pub workers: usize,
    /// Before anything of a cell counts.
    #[serde(serialize_with = "seconds")]
    pub warm_up: Duration,
    /// What of a cell counts.
    #[serde(serialize_with = "seconds")]
    pub measured: Duration,
    /// Accounts that there are, cell by cell.
    pub accounts: [usize; 2],
    /// Applications that there are, cell by cell.
    pub applications: [usize; 3],
    /// Starts of a gateway, of which the median is told.
    pub starts: usize,
    /// Requests that the gateway has to find the application of.
    pub look_ups: usize,
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl Effort {
    /// What figures to publish are made of.
    pub const fn full(workers: usize, warm_up: Duration, measured: Duration) -> Self {
        Self {
            workers,
            warm_up,
            measured,
            accounts: [10, 1_000_000],
            applications: [10_000, 100_000, 1_000_000],
            starts: 5,
            look_ups: 100_000,
        }
    }

    /// Enough to see that everything works.
    pub const fn quick(workers: usize) -> Self {
        Self {
            workers,
            warm_up: Duration::from_millis(200),
            measured: Duration::from_millis(500),
            accounts: [10, 1000],
            applications: [100, 1000, 5000],
            starts: 2,
            look_ups: 2000,
        }
    }

    /// How long a cell lasts.
    pub const fn cell(&self) -> Until {
        Until::Time {
            warm_up: self.warm_up,
            measured: self.measured,
        }
    }
}

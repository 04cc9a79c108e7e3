//! How much is measured.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::load::workers::Until;

/// How much is measured, and for how long.
#[derive(Clone, Debug, Serialize)]
pub struct Effort {
    /// Number of concurrent workers. Each waits for its response before it continues.
    pub workers: usize,
    /// Warm-up of a cell.
    #[serde(serialize_with = "seconds")]
    pub warm_up: Duration,
    /// Measured time of a cell.
    #[serde(serialize_with = "seconds")]
    pub measured: Duration,
    /// Number of accounts, cell by cell.
    pub accounts: [usize; 2],
    /// Number of applications, cell by cell.
    pub applications: [usize; 3],
    /// Number of starts of a gateway, whose median is reported.
    pub starts: usize,
    /// Number of requests whose application the gateway has to look up.
    pub look_ups: usize,
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

impl Effort {
    /// For figures to publish.
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

    /// Just enough to check that everything works.
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

    /// Warm-up and measured time of a cell.
    pub const fn cell(&self) -> Until {
        Until::Time {
            warm_up: self.warm_up,
            measured: self.measured,
        }
    }
}

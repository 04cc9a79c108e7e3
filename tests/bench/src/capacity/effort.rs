//! How much is measured.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::work::Operation;
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
    /// What is measured.
    pub operations: Vec<Operation>,
    /// Number of logins whose requests are measured one by one.
    pub stepping: usize,
    /// Number of accounts, cell by cell.
    pub accounts: Vec<usize>,
    /// Number of applications, cell by cell.
    pub applications: Vec<usize>,
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
    pub fn full(workers: usize, warm_up: Duration, measured: Duration) -> Self {
        Self {
            workers,
            warm_up,
            measured,
            operations: Operation::ALL.to_vec(),
            stepping: 3000,
            accounts: vec![10, 1_000_000],
            applications: vec![10_000, 100_000, 1_000_000],
            starts: 5,
            look_ups: 100_000,
        }
    }

    /// Just enough to check that everything works.
    pub fn quick(workers: usize) -> Self {
        Self {
            workers,
            warm_up: Duration::from_millis(200),
            measured: Duration::from_millis(500),
            operations: Operation::ALL.to_vec(),
            stepping: 100,
            accounts: vec![10, 1000],
            applications: vec![100, 1000, 5000],
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

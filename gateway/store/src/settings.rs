//! How a store is spoken to, as the programs' configurations say it.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use crate::StoreAddress;

/// Which store, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The `store` setting.
    pub address: StoreAddress,
    /// The `[postgres]` table; an embedded store does not look at it.
    pub postgres: PostgresSettings,
}

impl StoreSettings {
    /// A store, spoken to as is the default.
    #[must_use]
    pub fn new(address: StoreAddress) -> Self {
        Self {
            address,
            postgres: PostgresSettings::default(),
        }
    }
}

/// How a Postgres is spoken to. Its `Debug` is silent about the password, which only the address holds.
#[derive(Clone, Debug)]
pub struct PostgresSettings {
    /// Most connections of a process beside the one that listens for changes.
    pub pool_size: usize,
    /// Longest that connecting may take.
    pub connect: Duration,
    /// Longest that a call waits for a connection, connecting included.
    pub wait: Duration,
    /// Longest that a statement may run.
    pub statement: Duration,
    /// The certificates that `sslmode=verify-full` trusts, in PEM; without a file, the system's.
    pub root_certificate: Option<PathBuf>,
}

impl PostgresSettings {
    /// What `pool_size` may be. Postgres' own default allows 100 connections in all.
    pub const POOL_SIZES: RangeInclusive<usize> = 1..=1000;
    /// What each of the three times may be, in seconds.
    pub const SECONDS: RangeInclusive<u64> = 1..=60;
}

impl Default for PostgresSettings {
    /// Six processes fit into Postgres' 100 connections, and a caller is told within 5 s.
    fn default() -> Self {
        Self {
            pool_size: 10,
            connect: Duration::from_secs(2),
            wait: Duration::from_secs(2),
            statement: Duration::from_secs(3),
            root_certificate: None,
        }
    }
}

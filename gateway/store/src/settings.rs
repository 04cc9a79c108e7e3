//! Settings of the store.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use crate::StoreAddress;

/// Address and connection settings of the store.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// The key `store`: SQLite or Postgres.
    pub address: StoreAddress,
    /// The `[postgres]` table; ignored by SQLite.
    pub postgres: PostgresSettings,
    /// The program that opens the store, with its release: recorded with the migrations that it applies.
    pub program: String,
}

impl StoreSettings {
    /// Settings of a store, otherwise the defaults.
    #[must_use]
    pub fn new(address: StoreAddress) -> Self {
        Self {
            address,
            postgres: PostgresSettings::default(),
            program: concat!("Signpost ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// Settings of Postgres connections. The password is not here, but in the address.
#[derive(Clone, Debug)]
pub struct PostgresSettings {
    /// Limit on pooled connections per process. The change feed has one more of its own.
    pub pool_size: usize,
    /// Timeout of connecting, and of waiting for a pooled connection, connecting included.
    pub wait: Duration,
    /// Timeout of a statement.
    pub statement: Duration,
    /// Timeout of the change feed's poll of a server that notifies; then no cached value counts as confirmed. CONTRACT 4
    /// and 8: a second, which no key changes.
    pub heartbeat: Duration,
    /// PEM file of root certificates for `sslmode=verify-full`. Default: the system's.
    pub root_certificate: Option<PathBuf>,
}

impl PostgresSettings {
    /// Range of `pool_size`. Postgres' own default is a limit of 100 connections in total.
    pub const POOL_SIZES: RangeInclusive<usize> = 1..=1000;
    /// Range of both timeouts, in seconds.
    pub const SECONDS: RangeInclusive<u64> = 1..=60;
}

impl Default for PostgresSettings {
    /// Six processes fit into Postgres' limit of 100 connections, and a call fails within 5 s.
    fn default() -> Self {
        Self {
            pool_size: 10,
            wait: Duration::from_secs(2),
            statement: Duration::from_secs(3),
            heartbeat: Duration::from_secs(1),
            root_certificate: None,
        }
    }
}

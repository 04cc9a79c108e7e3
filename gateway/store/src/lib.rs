//! Opens, migrates and calls Signpost's database; shared by the gateway and the login service.
//!
//! | module | subject |
//! | --- | --- |
//! | [`address`] | the `store` setting: SQLite or Postgres |
//! | [`settings`] | settings of the store and of Postgres connections |
//! | [`store`] | opening, probing and watching either database |
//! | [`sqlite`], [`postgres`] | one database each: opening, migrating, calling, watching |
//! | [`row`] | reading columns of either database |
//! | [`changes`] | the change feed |
//! | [`statistics`] | counts of calls, connections and changes, for metrics |
//! | [`copy`](mod@copy) | migrating an installation from SQLite to Postgres |
//! | [`error`] | what can go wrong |
//!
//! Queries are in the callers' own SQL modules. The whole schema is in `migrations/`, since all programs share one
//! database.

pub mod address;
pub mod changes;
pub mod copy;
pub mod error;
pub mod postgres;
pub mod row;
pub mod settings;
pub mod sqlite;
pub mod statistics;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use self::{
    address::{PostgresAddress, StoreAddress},
    changes::{Change, Topic},
    error::{OpenError, PostgresError, StoreError},
    postgres::PostgresDatabase,
    row::StoredRow,
    settings::{PostgresSettings, StoreSettings},
    sqlite::SqliteDatabase,
    statistics::StoreStatistics,
    store::Store,
};

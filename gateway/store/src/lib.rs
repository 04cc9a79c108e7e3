//! Opens, migrates and calls Signpost's database, and reads PEM; shared by the gateway and the login service.
//!
//! | module | subject |
//! | --- | --- |
//! | [`address`] | the `store` setting: SQLite or Postgres |
//! | [`settings`] | settings of the store and of Postgres connections |
//! | [`store`] | opening, probing and watching either database |
//! | [`sqlite`], [`postgres`] | one database each: opening, migrating, calling, watching |
//! | [`statements`] | statements that both databases understand |
//! | [`schema`] | the migrations of Signpost's tables and of a version's own |
//! | [`row`] | reading columns of either database |
//! | `value` | parameters of statements |
//! | [`time`] | points in time |
//! | [`tables`] | the tables that several crates call. Only the gateway calls audit, ended logins, idempotency, sealed keys and usage |
//! | [`changes`] | the change feed |
//! | [`audit`] | what is written of an operator's change |
//! | [`statistics`] | counts of calls, connections and changes, for metrics |
//! | [`copy`](mod@copy) | migrating an installation from SQLite to Postgres |
//! | [`pem`] | certificates and keys, for all programs |
//! | [`error`] | what can go wrong |
//!
//! Statements of other tables are in the modules of their callers. The schema of all tables but the versions' own is in
//! `migrations/`, since all programs share one database.

pub mod address;
pub mod audit;
pub mod changes;
pub mod copy;
pub mod error;
pub mod pem;
pub mod postgres;
pub mod row;
pub mod schema;
pub mod settings;
pub mod sqlite;
pub mod statements;
pub mod statistics;
pub mod store;
pub mod tables {
    //! Tables that several crates call: statements, rows and their types.

    pub mod accounts;
    pub mod applications;
    pub mod audit;
    pub mod credentials;
    pub mod ended_logins;
    pub mod idempotency;
    pub mod sealed_keys;
    pub mod usage;
}
#[doc(hidden)]
pub mod testing;
pub mod time;
mod value;

pub use self::{
    address::{PostgresAddress, StoreAddress},
    changes::{Change, Changed, Topic},
    error::{OpenError, PostgresError, SchemaError, StoreError},
    postgres::PostgresDatabase,
    row::{Column, FromRow, Parsed, Row},
    schema::{Migration, Schema},
    settings::{PostgresSettings, StoreSettings},
    sqlite::SqliteDatabase,
    statistics::StoreStatistics,
    store::Store,
    time::Timestamp,
    value::{Batch, Value},
};

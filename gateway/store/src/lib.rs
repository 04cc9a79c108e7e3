//! Opens, migrates and calls Signpost's database; shared by the gateway and the login service.
//!
//! | module | subject |
//! | --- | --- |
//! | [`address`] | the `store` setting: SQLite or Postgres |
//! | [`settings`] | how a Postgres is spoken to |
//! | [`store`] | opening and watching whichever it is |
//! | [`sqlite`], [`postgres`] | a database each: opening, migrating, calling, watching |
//! | [`row`] | reading columns, whichever it is |
//! | [`changes`] | telling every process what changed |
//! | [`copy`](mod@copy) | moving everything from SQLite to Postgres |
//! | [`error`] | what can go wrong |
//!
//! What is asked of the database is the callers' business, each in its own SQL modules; the whole
//! schema is in `migrations/`, since all programs share one database.

pub mod address;
pub mod changes;
pub mod copy;
pub mod error;
pub mod postgres;
pub mod row;
pub mod settings;
pub mod sqlite;
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
    store::Store,
};

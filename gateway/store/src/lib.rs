//! Opens, migrates and calls Signpost's database; shared by the gateway and the login service.
//!
//! | module | subject |
//! | --- | --- |
//! | [`address`] | the `store` setting |
//! | [`database`] | opening, migrating, and calling from async code without blocking it |
//! | [`changes`] | telling every process what changed |
//!
//! What is asked of the database is the callers' business, each in its own SQL module; the whole
//! schema is in `migrations/`, since all programs share one file.

pub mod address;
pub mod changes;
pub mod database;

pub use address::StoreAddress;
pub use changes::{Change, Topic};
pub use database::{Database, OpenError, StoreError};

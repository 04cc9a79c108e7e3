//! Whether the store can be reached: what `/readyz` answers.

mod postgres;
mod sqlite;

use async_trait::async_trait;
use signpost_store::StoreError;

pub use self::{postgres::PostgresReadiness, sqlite::SqliteReadiness};

/// Reads a page of a table of ours: an open handle alone would not notice that the file is gone, nor a connection that
/// the tables are.
const PROBE: &str = "SELECT count(*) FROM (SELECT 1 FROM accounts LIMIT 1) AS one";

/// A store that can be asked whether it is there.
#[async_trait]
pub trait Readiness: Send + Sync {
    /// Asks.
    ///
    /// # Errors
    ///
    /// It is not there, or not usable.
    async fn probe(&self) -> Result<(), StoreError>;
}

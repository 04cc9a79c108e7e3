//! Rows by the million, written directly to the store: through the programs it would take hours.

mod postgres;
mod sqlite;

use end_to_end::clock::now_ms;

pub use self::{postgres::PostgresTables, sqlite::SqliteTables};

/// The provider's name in v1's configuration.
pub const PROVIDER: &str = "sandbox";

/// Lifetime of credentials: longer than any run.
const CREDENTIAL_MS: i64 = 24 * 60 * 60 * 1000;

/// A row of `applications`.
#[derive(Debug)]
pub struct NewApplication {
    /// The ident that clients send.
    pub ident: String,
    /// Its key, encrypted with the master key.
    pub key_sealed: Vec<u8>,
}

/// The tables of a migrated store.
pub trait Tables {
    /// Inserts accounts of the sandbox provider.
    ///
    /// # Errors
    ///
    /// When the store reports an error.
    fn insert_accounts(
        &mut self,
        usernames: &mut dyn Iterator<Item = String>,
    ) -> anyhow::Result<()>;

    /// Inserts credentials, by username and hash, for single-application mode.
    ///
    /// # Errors
    ///
    /// When the store reports an error.
    fn insert_credentials(&mut self, credentials: Vec<(String, Vec<u8>)>) -> anyhow::Result<()>;

    /// Inserts applications.
    ///
    /// # Errors
    ///
    /// When the store reports an error.
    fn insert_applications(
        &mut self,
        applications: &mut dyn Iterator<Item = anyhow::Result<NewApplication>>,
    ) -> anyhow::Result<()>;

    /// Runs the maintenance that the store would otherwise do during a measurement, for example a checkpoint.
    ///
    /// # Errors
    ///
    /// When the store reports an error.
    fn run_maintenance(&mut self) -> anyhow::Result<()>;
}

/// The creation time of new rows, and the expiry of credentials.
fn times() -> (i64, i64) {
    let now = now_ms();
    (now, now + CREDENTIAL_MS)
}

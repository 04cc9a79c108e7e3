//! Rows by the million, written past the programs: through them it would take hours.

mod postgres;
mod sqlite;

use end_to_end::clock::now_ms;

pub use self::{postgres::PostgresTables, sqlite::SqliteTables};

/// The provider's name in v1's configuration.
pub const PROVIDER: &str = "sandbox";

/// Its kind.
pub const KIND: &str = "bitbucket";

/// Credentials do not end while this runs.
const CREDENTIAL_MS: i64 = 24 * 60 * 60 * 1000;

/// An application's record.
#[derive(Debug)]
pub struct Record {
    /// What clients send.
    pub ident: String,
    /// Its key under the master key.
    pub key_sealed: Vec<u8>,
}

/// A store's tables, which the programs have made.
pub trait Tables {
    /// Accounts of the sandbox provider, by their usernames.
    ///
    /// # Errors
    ///
    /// The store refuses.
    fn insert_accounts(
        &mut self,
        usernames: &mut dyn Iterator<Item = String>,
    ) -> anyhow::Result<()>;

    /// Credentials of accounts, by username and hash, for the application of single-application mode.
    ///
    /// # Errors
    ///
    /// The store refuses.
    fn insert_credentials(&mut self, credentials: Vec<(String, Vec<u8>)>) -> anyhow::Result<()>;

    /// Applications.
    ///
    /// # Errors
    ///
    /// The store refuses.
    fn insert_applications(
        &mut self,
        records: &mut dyn Iterator<Item = anyhow::Result<Record>>,
    ) -> anyhow::Result<()>;

    /// Lets the store do what it would have done by itself if the rows had come one by one, so that it does not
    /// do it while something is measured.
    ///
    /// # Errors
    ///
    /// The store refuses.
    fn settle(&mut self) -> anyhow::Result<()>;
}

/// When a row that is written now was created, and when a credential ends.
fn times() -> (i64, i64) {
    let now = now_ms();
    (now, now + CREDENTIAL_MS)
}

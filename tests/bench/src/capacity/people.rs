//! Accounts, and credentials for some of them.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sandbox_provider::user::User;
use sha2::{Digest, Sha256};

use super::{disk, tables::Tables};

/// Limit on logged-in people: fewer than a backend caches, and more than a cell's warm-up uses.
const MAX_LOGGED_IN: usize = 10_000;

/// The people with an account, and the credentials of those logged in.
pub struct People {
    /// Number of accounts. People are numbered from 0.
    pub accounts: usize,
    /// The credentials that clients send.
    pub credentials: Vec<String>,
}

/// A person's name at the sandbox provider, without `any:`.
pub fn person(number: usize) -> String {
    format!("person-{number}")
}

impl People {
    /// Inserts this number of accounts into a store. The logged-in people are spread over all of them.
    ///
    /// # Errors
    ///
    /// When the store reports an error.
    pub fn insert(accounts: usize, tables: &mut dyn Tables) -> anyhow::Result<Self> {
        tables.insert_accounts(&mut (0..accounts).map(username))?;
        let logged_in = accounts.min(MAX_LOGGED_IN);
        let mut credentials = Vec::with_capacity(logged_in);
        let mut rows = Vec::with_capacity(logged_in);
        for index in 0..logged_in {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret)?;
            credentials.push(BASE64_URL_SAFE_NO_PAD.encode(secret));
            let hash = Sha256::digest(secret).to_vec();
            rows.push((username(index * accounts / logged_in), hash));
        }
        tables.insert_credentials(rows)?;
        tables.run_maintenance()?;
        disk::sync()?;
        Ok(Self {
            accounts,
            credentials,
        })
    }
}

/// The username under which the provider identifies a person.
fn username(number: usize) -> String {
    let name = format!("any:{}", person(number));
    User::named(&name).map_or_else(|| unreachable!("{name} always exists"), |user| user.uuid())
}

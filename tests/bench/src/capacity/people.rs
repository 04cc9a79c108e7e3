//! Accounts, and credentials of some of them.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sandbox_provider::user::User;
use sha2::{Digest, Sha256};

use super::{disk, tables::Tables};

/// People who are logged in, at most: fewer than a backend remembers, and more than a cell's warm-up asks for.
const LOGGED_IN: usize = 10_000;

/// Everybody who has an account, and what those who are logged in hold.
pub struct People {
    /// How many have an account: those with the numbers from 0.
    pub accounts: usize,
    /// The credentials that clients send.
    pub credentials: Vec<String>,
}

/// How the sandbox provider's page calls a person, behind `any:`.
pub fn person(number: usize) -> String {
    format!("person-{number}")
}

impl People {
    /// Puts so many into a store. Those who are logged in are spread over all of them.
    ///
    /// # Errors
    ///
    /// The store refuses.
    pub fn settle(accounts: usize, tables: &mut dyn Tables) -> anyhow::Result<Self> {
        tables.insert_accounts(&mut (0..accounts).map(username))?;
        let logged_in = accounts.min(LOGGED_IN);
        let mut credentials = Vec::with_capacity(logged_in);
        let mut rows = Vec::with_capacity(logged_in);
        for place in 0..logged_in {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret)?;
            credentials.push(BASE64_URL_SAFE_NO_PAD.encode(secret));
            let hash = Sha256::digest(secret).to_vec();
            rows.push((username(place * accounts / logged_in), hash));
        }
        tables.insert_credentials(rows)?;
        tables.settle()?;
        disk::settle()?;
        Ok(Self {
            accounts,
            credentials,
        })
    }
}

/// What the provider says identifies a person.
fn username(number: usize) -> String {
    let name = format!("any:{}", person(number));
    User::named(&name).map_or_else(|| unreachable!("{name} always exists"), |user| user.uuid())
}

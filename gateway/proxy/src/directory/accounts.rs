//! Accounts: the users of requests, by the credentials that the login service stored. CONTRACT 9.
//!
//! | module | subject |
//! | --- | --- |
//! | [`directory`] | finds what a credential proves, in the cache or in the store |
//! | [`recent`] | credentials that were checked a moment ago |
//! | [`lookups`] | limits of the lookups that strangers can cause |
//! | [`open`] | opens the store of accounts |

pub(crate) mod directory;
mod lookups;
pub(crate) mod open;
mod recent;

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_protocol::credential::CredentialHash;
use signpost_store::{
    Store, StoreError,
    tables::{accounts, credentials},
};

/// What a credential proves.
pub type CredentialClaims = credentials::CredentialClaims<Account>;

/// An account, as the values of the headers that backends get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The id, a decimal number.
    pub id: Box<str>,
    /// The username, percent-encoded.
    pub username: Box<str>,
    /// The provider's name, percent-encoded.
    pub provider: Box<str>,
    /// The display name, percent-encoded.
    pub name: Option<Box<str>>,
    /// The verified e-mail address, percent-encoded.
    pub email: Option<Box<str>>,
}

impl Account {
    /// An account with only an id, a username and a provider.
    #[must_use]
    pub fn new(id: i64, username: &str, provider: &str) -> Self {
        Self {
            id: id.to_string().into(),
            username: percent_encoded(username),
            provider: percent_encoded(provider),
            name: None,
            email: None,
        }
    }
}

/// A text as the value of a header: visible ASCII without `%` as it is, every other byte as `%` and two hex digits.
/// Different texts have different values, and the usual decoders of URLs read them. CONTRACT 9.
fn percent_encoded(text: &str) -> Box<str> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
            encoded.extend(['%', char::from(high), char::from(low)]);
        }
    }
    encoded.into()
}

impl From<accounts::Account> for Account {
    fn from(account: accounts::Account) -> Self {
        let encoded = |text: Option<String>| text.as_deref().map(percent_encoded);
        let (id, username) = (account.id.get(), account.username.as_str());
        Self {
            name: encoded(account.display_name),
            email: encoded(account.email),
            ..Self::new(id, username, &account.provider)
        }
    }
}

/// The stored credentials, with their accounts. The login service writes them, the gateway reads them.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Returns what a credential proves; `None` if it is unknown, revoked or expired.
    ///
    /// # Errors
    ///
    /// The store is unavailable, or the record is malformed.
    async fn find(
        &self,
        hash: CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError>;
}

#[async_trait]
impl AccountStore for Store {
    async fn find(
        &self,
        hash: CredentialHash,
        now: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError> {
        let claims = credentials::find(self, &hash, now).await?;
        Ok(claims.map(|claims| CredentialClaims {
            account: claims.account.into(),
            application: claims.application,
            expires_at: claims.expires_at,
        }))
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! Accounts: one per person and provider.

mod sqlite;

use async_trait::async_trait;
use signpost_store::StoreError;

pub use self::sqlite::SqliteAccounts;
pub(crate) use self::sqlite::from_row;
use crate::{
    clock::Timestamp,
    config::{ProviderKind, ProviderName},
};

/// The provider's identifier of a person, byte for byte as the provider writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Username(String);

impl Username {
    /// Longer than any provider's identifier.
    const MAX_BYTES: usize = 255;

    /// Takes what a provider says; `None` when it is empty or too long to be an identifier.
    #[must_use]
    pub fn new(text: String) -> Option<Self> {
        (1..=Self::MAX_BYTES)
            .contains(&text.len())
            .then_some(Self(text))
    }

    /// The identifier.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The store's own number of an account; for the store and the log, never on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccountId(i64);

impl AccountId {
    /// Wraps an id as the store has it.
    #[must_use]
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// An account. What a client sees of it is each version's own business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The store's number.
    pub id: AccountId,
    /// The person.
    pub username: Username,
    /// The provider's kind.
    pub kind: String,
    /// When the person first logged in.
    pub created_at: Timestamp,
}

/// Where accounts are kept.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// The account of this person, made now if there is none; and whether it was made now.
    ///
    /// Atomic: any number of concurrent first logins of one person make one account. CONTRACT 8.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn find_or_create(
        &self,
        provider: &ProviderName,
        kind: &ProviderKind,
        username: &Username,
        now: Timestamp,
    ) -> Result<(Account, bool), StoreError>;
}

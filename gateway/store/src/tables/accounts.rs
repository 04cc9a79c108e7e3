//! Accounts: one for each user of each provider. The login service writes them.

use crate::{FromRow, Row, Store, StoreError, Timestamp, values};

/// A user's identifier at the provider, byte for byte as the provider sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Username(String);

impl Username {
    /// No known provider has longer identifiers.
    const MAX_BYTES: usize = 255;

    /// Wraps an identifier; `None` if it is empty, longer than 255 bytes, or contains U+0000, which Postgres cannot
    /// store in a text.
    #[must_use]
    pub fn new(text: String) -> Option<Self> {
        let has_length = (1..=Self::MAX_BYTES).contains(&text.len());
        (has_length && !text.contains('\0')).then_some(Self(text))
    }

    /// The identifier as the provider writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An account's primary key in the store. It appears in the log, but never in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccountId(i64);

impl AccountId {
    /// Wraps an id from the store.
    #[must_use]
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// The primary key as a number, for statements.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// An account. Each version decides how clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Primary key, for the log and for references.
    pub id: AccountId,
    /// The user's identifier at the provider.
    pub username: Username,
    /// The provider's name in the configuration.
    pub provider: String,
    /// The name that the provider shows for the user, if it has one. It never identifies the account.
    pub display_name: Option<String>,
    /// The e-mail address that the provider has verified, if it has one. It never identifies the account, either.
    pub email: Option<String>,
    /// When the user first logged in.
    pub created_at: Timestamp,
}

/// The columns of an [`Account`], of `accounts` joined with a table that has `account_id`.
pub const JOINED: &str = "account_id, username, accounts.provider AS account_provider, display_name, email, accounts.created_at AS account_created_at";

/// The same columns, of `accounts` alone.
pub const COLUMNS: &str = "id AS account_id, username, provider AS account_provider, display_name, email, created_at AS account_created_at";

impl FromRow for Account {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let username = Username::new(row.get("username")?);
        Ok(Self {
            id: AccountId::new(row.get("account_id")?),
            username: username.ok_or(StoreError::Malformed("username"))?,
            provider: row.get("account_provider")?,
            display_name: row.get("display_name")?,
            email: row.get("email")?,
            created_at: row.get("account_created_at")?,
        })
    }
}

/// The id of a provider's user who has logged in before.
///
/// # Errors
///
/// The store is unavailable.
pub async fn find_id(
    store: &Store,
    provider: &str,
    username: &Username,
) -> Result<Option<AccountId>, StoreError> {
    let find = "SELECT id FROM accounts WHERE provider = $1 AND username = $2";
    let account = store.row(find, values![provider, username.as_str()]);
    Ok(account.await?.map(|(id,)| AccountId(id)))
}

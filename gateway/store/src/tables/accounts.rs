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

    /// The identifier.
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

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// An account. Each version decides how clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The primary key.
    pub id: AccountId,
    /// The user's identifier at the provider.
    pub username: Username,
    /// The provider's kind.
    pub kind: String,
    /// When the user first logged in.
    pub created_at: Timestamp,
}

/// The columns of an [`Account`], of `accounts` joined with a table that has `account_id`.
pub const JOINED: &str = "account_id, username, kind, accounts.created_at AS account_created_at";

const COLUMNS: &str = "id AS account_id, username, kind, created_at AS account_created_at";

impl FromRow for Account {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let username = Username::new(row.get("username")?);
        Ok(Self {
            id: AccountId::new(row.get("account_id")?),
            username: username.ok_or(StoreError::Malformed("username"))?,
            kind: row.get("kind")?,
            created_at: row.get("account_created_at")?,
        })
    }
}

/// The user of a provider.
#[derive(Clone, Copy, Debug)]
pub struct User<'u> {
    /// The provider's name in the configuration.
    pub provider: &'u str,
    /// The provider's kind.
    pub kind: &'u str,
    /// The user's identifier there.
    pub username: &'u Username,
}

/// Returns this user's account, creating it if necessary, and whether it was created.
///
/// Atomic: concurrent first logins of one user create exactly one account. CONTRACT 8.
///
/// # Errors
///
/// The store is unavailable.
pub async fn find_or_create(
    store: &Store,
    user: User<'_>,
    now: Timestamp,
) -> Result<(Account, bool), StoreError> {
    // Read first: most users already have an account, and need no write.
    if let Some(account) = find(store, user).await? {
        return Ok((account, false));
    }
    // Waits for a concurrent insert, so exactly one of several callers gets the new row.
    let create = format!(
        "INSERT INTO accounts (provider, username, kind, created_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (provider, username) DO NOTHING RETURNING {COLUMNS}"
    );
    let values = values![user.provider, user.username.as_str(), user.kind, now];
    if let Some(account) = store.write(&create, values).await?.pop() {
        return Ok((account, true));
    }
    // A concurrent login created the account. Accounts are never deleted, so it is found.
    let found = find(store, user).await?;
    Ok((found.ok_or(StoreError::Malformed("username"))?, false))
}

/// The account, with its new kind if the configuration of its provider has changed.
async fn find(store: &Store, user: User<'_>) -> Result<Option<Account>, StoreError> {
    let find = format!("SELECT {COLUMNS} FROM accounts WHERE provider = $1 AND username = $2");
    let values = values![user.provider, user.username.as_str()];
    let found: Option<Account> = store.row(&find, values).await?;
    match found {
        Some(account) if account.kind != user.kind => {
            let change = format!("UPDATE accounts SET kind = $2 WHERE id = $1 RETURNING {COLUMNS}");
            let values = values![account.id.get(), user.kind];
            Ok(store.write(&change, values).await?.pop())
        }
        found => Ok(found),
    }
}

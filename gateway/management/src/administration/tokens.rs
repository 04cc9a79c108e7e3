//! Tokens of the management API: who may call it, and in which role. Their table has their hashes only. A response that is
//! kept for an idempotency key can have a token's text, sealed under the master key.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::shown_name, credential::Credential};
use signpost_store::{
    Changed, FromRow, Row, Store, StoreError,
    tables::audit::{Action, Audit, Author, Entry},
    values,
};
use utoipa::ToSchema;
use zeroize::Zeroizing;

pub use signpost_proxy::Role;
use signpost_proxy::{as_rfc3339, rfc3339};

/// What a token begins with, so that a search for leaked secrets finds it.
const PREFIX: &str = "sp_";
/// Limit of a name's length in characters.
const MAX_NAME_LENGTH: usize = 64;
/// Maximum validity.
const MAX_VALIDITY: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Time for which a token that has ended is listed.
const RETENTION: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Time from one write of a token's last use to the next.
const USE_INTERVAL: Duration = Duration::from_secs(60);

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Token {
    /// Its number.
    pub id: i64,
    /// Its name: the actor of what is done with it.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// When it was created.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: String,
    /// The end of its validity.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    /// When it was last used, to the minute.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
}

const COLUMNS: &str =
    "id, name, role, created_at, created_by, expires_at, last_used_at, revoked_at";

impl FromRow for Token {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            role: row.parsed("role")?,
            created_at: row.get("created_at")?,
            created_by: row.get("created_by")?,
            expires_at: row.get("expires_at")?,
            last_used_at: row.get("last_used_at")?,
            revoked_at: row.get("revoked_at")?,
        })
    }
}

/// The text of a token: shown once. It is wiped when dropped.
pub struct TokenSecret(Zeroizing<String>);

impl TokenSecret {
    /// The text, for the only response that has it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

signpost_protocol::hide_in_debug!(TokenSecret);

/// A token to create.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The end of its validity.
    pub expires_at: Timestamp,
}

/// The tokens of a store. Nothing of them is cached: what is revoked is rejected by every gateway at once.
#[derive(Clone, Debug)]
pub struct Tokens {
    store: Store,
}

impl Tokens {
    /// The tokens of this store.
    pub const fn new(store: Store) -> Self {
        Self { store }
    }

    /// Creates a token.
    ///
    /// # Errors
    ///
    /// Its name or end is not allowed, a live token has its name, or the store is unavailable.
    pub async fn create(
        &self,
        new: NewToken,
        author: Author,
        at: Timestamp,
    ) -> Result<(Token, TokenSecret), TokenError> {
        let name = shown_name(&new.name, MAX_NAME_LENGTH).ok_or(TokenError::Name)?;
        if new.expires_at <= at || new.expires_at > at.plus(MAX_VALIDITY) {
            return Err(TokenError::End);
        }
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes).map_err(|_| TokenError::NoRandomness)?;
        let token = Credential::from_bytes(*bytes);
        let hash = *token.hash().as_bytes();
        // One that has expired still has its name.
        let changed = revocation(author.clone(), name, at);
        let update = "UPDATE tokens SET revoked_at = $2 \
                      WHERE name = $1 AND revoked_at IS NULL AND expires_at <= $2";
        self.store
            .change(changed, (update, "hash"), values![name, at])
            .await?;
        let changes = json!({
            "role": [null, new.role],
            "expires_at": [null, rfc3339(new.expires_at)],
        });
        let created_by = author.actor.clone();
        let changed = audited(Action::CreateToken, author, at, (name, 1), &changes);
        let insert = "INSERT INTO tokens (hash, name, role, created_at, created_by, expires_at) \
                      VALUES ($1, $2, $3, $4, $5, $6)";
        let role = new.role.as_str();
        let values = values![&hash, name, role, at, created_by, new.expires_at];
        let inserted = self.store.change(changed, (insert, "hash"), values).await;
        // The unique index decides, not a look before: two calls can create the same name at once.
        inserted.map_err(|error| match error.is_duplicate() {
            true => TokenError::Taken,
            false => error.into(),
        })?;
        let created = self.token_where("hash = $1", values![&hash]).await;
        let created = created.map_err(|error| match error {
            // Of this statement only: the token was created.
            StoreError::Busy => StoreError::TimedOut,
            error => error,
        })?;
        let created = created.ok_or(TokenError::Unknown)?;
        let text = Zeroizing::new([PREFIX, &token.encode()].concat());
        Ok((created, TokenSecret(text)))
    }

    /// Up to `limit` tokens whose numbers are larger than `after`, oldest first, also those that are no longer valid; and
    /// whether there are more.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub async fn list(
        &self,
        after: Option<i64>,
        limit: usize,
    ) -> Result<(Vec<Token>, bool), StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM tokens WHERE id > $1 ORDER BY id LIMIT {}",
            limit + 1
        );
        let after = values![after.unwrap_or(i64::MIN)];
        let mut tokens: Vec<Token> = self.store.rows(&query, after).await?;
        let has_more = tokens.len() > limit;
        tokens.truncate(limit);
        Ok((tokens, has_more))
    }

    /// Revokes a token: every gateway rejects it from now on. If it is revoked already, nothing changes.
    ///
    /// # Errors
    ///
    /// It is unknown, or the store is unavailable.
    pub async fn revoke(
        &self,
        id: i64,
        author: Author,
        at: Timestamp,
    ) -> Result<Token, TokenError> {
        let find = || async { self.token_where("id = $1", values![id]).await };
        let token = find().await?.ok_or(TokenError::Unknown)?;
        let changed = revocation(author, &token.name, at);
        let update = "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
        let change = self
            .store
            .change(changed, (update, "hash"), values![id, at]);
        if change.await? > 0 {
            let revoked_at = Some(at);
            return Ok(Token {
                revoked_at,
                ..token
            });
        }
        // Another call has revoked it meanwhile: the time of that call stands.
        find().await?.ok_or(TokenError::Unknown)
    }

    /// Deletes tokens whose end was [`RETENTION`] ago; the audit still has them.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub async fn delete_old(&self, now: Timestamp) -> Result<usize, StoreError> {
        let delete = "DELETE FROM tokens WHERE COALESCE(revoked_at, expires_at) < $1";
        let before = now.minus(RETENTION);
        self.store.execute(delete, values![before]).await
    }

    /// The valid token with this text; `None` if it is malformed, unknown, expired or revoked. It is found by its hash, so
    /// the time that this takes tells nothing of it.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(crate) async fn authenticate(
        &self,
        text: &str,
        now: Timestamp,
    ) -> Result<Option<Token>, StoreError> {
        let Some(token) = parse(text) else {
            return Ok(None);
        };
        let is_valid = "hash = $1 AND revoked_at IS NULL AND expires_at > $2";
        let values = values![token.hash().as_bytes(), now];
        let Some(mut token) = self.token_where(is_valid, values).await? else {
            return Ok(None);
        };
        let due = now.minus(USE_INTERVAL);
        // One write a minute: a script that calls often must not make each of its reads a write.
        if token.last_used_at.is_none_or(|last| last <= due) {
            let update = "UPDATE tokens SET last_used_at = $2 \
                          WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)";
            let values = values![token.id, now, due];
            // A store that only reads does not lock its readers out.
            if self.store.execute(update, values).await.is_ok() {
                token.last_used_at = Some(now);
            }
        }
        Ok(Some(token))
    }

    async fn token_where(
        &self,
        condition: &str,
        values: Vec<signpost_store::Value>,
    ) -> Result<Option<Token>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM tokens WHERE {condition}");
        self.store.row(&query, values).await
    }
}

/// Reads the prefix and 43 characters of base64url.
fn parse(text: &str) -> Option<Credential> {
    let random = text.strip_prefix(PREFIX)?;
    // The length comes first: a credential can also be read with `Bearer ` before it.
    (random.len() == 43).then(|| random.parse().ok())?
}

fn revocation(author: Author, name: &str, at: Timestamp) -> Changed {
    let changes = json!({ "revoked_at": [null, rfc3339(at)] });
    audited(Action::RevokeToken, author, at, (name, 2), &changes)
}

fn audited(
    action: Action,
    author: Author,
    at: Timestamp,
    (name, revision): (&str, i64),
    changes: &Value,
) -> Changed {
    let entry = Entry {
        subject: name.to_owned(),
        revision,
        changes: changes.to_string(),
    };
    Changed::Uncached(Audit::of_one(at, author, action, entry))
}

/// Why a token was not created or revoked.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The name is not allowed.
    #[error("the name must have 1 to 64 characters that can be seen")]
    Name,
    /// The end is not allowed.
    #[error("the end must be in the future, and at most 366 days away")]
    End,
    /// A live token has the name.
    #[error("a valid token has this name: revoke it first, or choose another name")]
    Taken,
    /// There is no such token.
    #[error("there is no such token")]
    Unknown,
    /// The system has no random bytes.
    #[error("the system has no random bytes")]
    NoRandomness,
    /// The store failed.
    #[error("the store is unavailable")]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod both_stores;

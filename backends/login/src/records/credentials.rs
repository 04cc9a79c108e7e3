//! Credentials: each proves a user's login to one application until it expires or is revoked.

use std::{sync::Arc, time::Duration};

use signpost_kit::{
    cache::{FeedCache, FeedCacheSettings, UnknownKeys},
    clock::{Clock, Timestamp, millis},
};
use signpost_protocol::app::AppId;
pub(crate) use signpost_protocol::credential::{Credential, CredentialHash, LoginHash};
pub(crate) use signpost_store::tables::credentials::CredentialClaims;
use signpost_store::{
    Change, Changed, FromRow, Row, Store, StoreError, Topic,
    tables::credentials::{self, OF_HASH, VALID_UNTIL},
    values,
};

use super::accounts::AccountId;
use crate::{
    config::Lifetimes,
    secret::{LENGTH, Secret, random},
};

/// Generates a random credential.
pub(crate) fn random_credential() -> Credential {
    Credential::from_bytes(random())
}

/// The credential of this secret.
pub(crate) fn credential_from(secret: &Secret) -> Credential {
    Credential::from_bytes(*secret.as_bytes())
}

/// Some 300 bytes each, a few MiB in all, for the users who are active now. Unknown credentials are not cached: forged
/// ones differ each time.
const CACHE: FeedCacheSettings = FeedCacheSettings {
    topic: Topic::Credential,
    entries: 20_000,
    lifetime: Duration::from_secs(5 * 60),
    unknown_keys: UnknownKeys::LookedUp,
};

/// A renewed credential is valid for this much longer: the client may not have received the new one, and requests with
/// the renewed one may be in flight. Until then the new one cannot be renewed. CONTRACT 8.
///
/// Until the sweep after the overlap, some two minutes in all, whoever reads the row and has the renewed credential can
/// compute the new one; during the overlap a renewal returns it to them anyway.
const RENEWAL_OVERLAP: Duration = Duration::from_secs(60);

/// Retention of revoked credentials: longer than any token can issue the same credential again.
const REVOKED_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// A credential to be stored.
#[derive(Clone, Debug)]
pub(crate) struct NewCredential {
    /// The hash under which it is stored.
    pub(crate) hash: CredentialHash,
    /// What it has in common with all credentials of the login.
    pub(crate) login: LoginHash,
    /// The claims that it proves.
    pub(crate) logged_in: CredentialClaims,
    /// When the login was completed.
    pub(crate) created_at: Timestamp,
    /// The hash of the state of the login that issues it: the credential is inserted only if the outcome is still valid. `None`:
    /// it is inserted in any case.
    pub(crate) outcome: Option<[u8; LENGTH]>,
}

/// What a valid credential is to the renewals of its login.
enum RenewalState {
    /// The present one. The last renewal's overlap ends at this time; then it can be renewed.
    Present(Option<Timestamp>),
    /// The renewed one: the salt of the present one, and when that expires.
    Renewed([u8; LENGTH], Timestamp),
}

impl FromRow for RenewalState {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(match row.get::<Option<_>>("salt")? {
            Some(salt) => Self::Renewed(salt, row.get("expires_at")?),
            None => Self::Present(row.get("previous_until")?),
        })
    }
}

/// The result of a renewal.
pub(crate) enum Renewed {
    /// The new credential, and when it expires.
    To(Credential, Timestamp),
    /// The credential is younger than [`RENEWAL_OVERLAP`], and can be renewed after this time.
    TooSoon(Duration),
}

/// The stored credentials, behind a read-through cache. All functions fail if the store is unavailable.
pub(crate) struct Credentials {
    store: Store,
    pub(crate) cache: FeedCache<CredentialHash, Arc<CredentialClaims>, StoreError>,
}

impl Credentials {
    /// Creates an empty cache in front of `store`.
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            cache: FeedCache::new(CACHE, clock),
        }
    }

    /// Returns what `credential` proves; `None` if it is not valid for `application` at `now`.
    pub(crate) async fn check(
        &self,
        credential: &Credential,
        application: AppId,
        now: Timestamp,
    ) -> Result<Option<Arc<CredentialClaims>>, Arc<StoreError>> {
        let hash = credential.hash();
        let find = async {
            let claims = credentials::find(&self.store, &hash, now).await?;
            Ok(claims.map(Arc::new))
        };
        let claims = self.cache.find(hash, find).await?;
        // Checked for each request, not in the cache: an entry can outlive its credential, and a credential is for one
        // application only, whoever sends it.
        Ok(claims.filter(|claims| claims.application == application && claims.expires_at > now))
    }

    /// Inserts a login's first credential. If the login has one already, nothing changes: a renewed one stays renewed, a
    /// revoked one revoked. If an operator has ended the user's logins since the outcome was read, nothing is inserted.
    /// Returns whether it was.
    pub(crate) async fn insert(&self, credential: NewCredential) -> Result<bool, StoreError> {
        let insert = "INSERT INTO credentials (hash, login_hash, account_id, application_id, created_at, expires_at)";
        let outcome =
            "FROM logins WHERE state_hash = $7 AND status = 'complete' AND claimable_until > 0";
        let insert = match (&self.store, credential.outcome) {
            (_, None) => {
                format!("{insert} VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING")
            }
            (Store::Sqlite(_), Some(_)) => {
                format!("{insert} SELECT $1, $2, $3, $4, $5, $6 {outcome} ON CONFLICT DO NOTHING")
            }
            // A command that ends logins changes the outcome first. `FOR SHARE` makes it wait until it finds this credential.
            (Store::Postgres(_), Some(_)) => format!(
                "{insert} SELECT CAST($1 AS BYTEA), CAST($2 AS BYTEA), CAST($3 AS BIGINT), CAST($4 AS BIGINT), \
                     CAST($5 AS BIGINT), CAST($6 AS BIGINT) FROM (SELECT 1 {outcome} FOR SHARE) AS claimable \
                 ON CONFLICT DO NOTHING"
            ),
        };
        let logged_in = credential.logged_in;
        let mut values = values![
            credential.hash.as_bytes(),
            credential.login.as_bytes(),
            logged_in.account.id.get(),
            logged_in.application.get(),
            credential.created_at,
            logged_in.expires_at,
        ];
        if let Some(state) = credential.outcome {
            values.extend(values![&state]);
        }
        Ok(self.store.execute(&insert, values).await? == 1)
    }

    /// Renews a credential; `None` if it is not valid any more. A repetition writes nothing, and has the same result.
    /// The renewed credential's end changes here at once, in other processes through the change feed.
    pub(crate) async fn renew(
        &self,
        credential: &Credential,
        lifetimes: &Lifetimes,
        now: Timestamp,
    ) -> Result<Option<Renewed>, StoreError> {
        let hash = credential.hash();
        let mut state = self.find_renewal(&hash, now).await?;
        if let Some(RenewalState::Present(until)) = state
            && until.is_none_or(|until| until <= now)
        {
            let salt = random();
            // One row, so that concurrent renewals wait for each other, and the first one decides: nothing changes unless it
            // is the present credential of a valid login whose last renewal has ended its overlap.
            // The end is `min($6, max(created_at + $7, expires_at))`, whose functions have other names in each
            // database.
            let renew = "UPDATE credentials SET hash = $2, renewal_salt = $3, previous_hash = hash, \
                     previous_until = CASE WHEN expires_at < $5 THEN expires_at ELSE $5 END, \
                     expires_at = CASE WHEN $6 < expires_at OR $6 < created_at + $7 THEN $6 \
                         WHEN created_at + $7 > expires_at THEN created_at + $7 ELSE expires_at END \
                 WHERE hash = $1 AND revoked_at IS NULL AND expires_at > $4 \
                     AND (previous_until IS NULL OR previous_until <= $4)";
            let values = values![
                hash.as_bytes(),
                credential.renewed(&salt).hash().as_bytes(),
                &salt,
                now,
                now.plus(RENEWAL_OVERLAP),
                now.plus(lifetimes.credential),
                millis(lifetimes.renewal),
            ];
            let renewal = (renew, "previous_hash");
            let renewed = self.store.change(Changed::Credential, renewal, values);
            renewed.await?;
            // Not left to the change feed: the next request here must already see the new end.
            self.cache.invalidate(hash);
            // Of several concurrent renewals, the store has the first one's.
            state = self.find_renewal(&hash, now).await?;
        }
        Ok(state.map(|state| match state {
            RenewalState::Renewed(salt, expires_at) => {
                Renewed::To(credential.renewed(&salt), expires_at)
            }
            RenewalState::Present(until) => {
                Renewed::TooSoon(until.map_or(Duration::ZERO, |until| until.since(now)))
            }
        }))
    }

    async fn find_renewal(
        &self,
        hash: &CredentialHash,
        now: Timestamp,
    ) -> Result<Option<RenewalState>, StoreError> {
        let find = format!(
            "SELECT CASE WHEN hash = $1 THEN NULL ELSE renewal_salt END AS salt, previous_until, expires_at \
             FROM credentials WHERE {OF_HASH} AND {VALID_UNTIL} > $2"
        );
        self.store.row(&find, values![hash.as_bytes(), now]).await
    }

    /// Revokes all credentials of the login that `credential` belongs to, even if it was renewed long ago: here at once,
    /// in other processes through the change feed. CONTRACT 8: within 1 s. Returns the account; `None` if no login of
    /// `application` is valid with it.
    pub(crate) async fn revoke(
        &self,
        credential: &Credential,
        application: AppId,
        now: Timestamp,
    ) -> Result<Option<AccountId>, StoreError> {
        let login = credential.login_hash();
        let valid =
            "login_hash = $1 AND application_id = $2 AND revoked_at IS NULL AND expires_at > $3";
        let values = || values![login.as_bytes(), application.get(), now];
        // Anyone can send unknown credentials: these must not wait for the write lock, or take it.
        let find = format!("SELECT 1 FROM credentials WHERE {valid}");
        let is_valid = self.store.row::<()>(&find, values()).await?.is_some();
        let revoke = format!("UPDATE credentials SET revoked_at = $3 WHERE {valid}");
        let revoke = (&*revoke, "hash || coalesce(previous_hash, '')");
        let change = || self.store.change(Changed::Credential, revoke, values());
        if !is_valid || change().await? == 0 {
            return Ok(None);
        }
        // No renewal changes them any more.
        let find = "SELECT hash, previous_hash, account_id FROM credentials WHERE login_hash = $1";
        let revoked = self.store.row(find, values![login.as_bytes()]).await?;
        Ok(revoked.map(|RevokedLogin { account, hashes }| {
            for ended in hashes.into_iter().flatten() {
                self.cache.invalidate(ended);
            }
            account
        }))
    }

    /// Deletes up to `limit` expired or long revoked credentials, removes the salts of as many renewals whose overlap is
    /// over, and returns the larger number.
    pub(crate) async fn sweep(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        // ORDER BY makes the server read the indexes. The limit is a literal, not a parameter: the plan of a prepared
        // statement cannot depend on values, and without a known limit the DELETE would scan the table.
        let ended = |column: &str, parameter: u8| {
            format!(
                "SELECT hash FROM (SELECT hash FROM credentials WHERE {column} <= ${parameter} \
                 ORDER BY {column} LIMIT {limit}) AS {column}_ended"
            )
        };
        let sweep = format!(
            "DELETE FROM credentials WHERE hash IN ({} UNION {} LIMIT {limit})",
            ended("expires_at", 1),
            ended("revoked_at", 2)
        );
        let values = values![now, now.minus(REVOKED_RETENTION)];
        let deleted = self.store.execute(&sweep, values).await?;
        // A renewal in between begins a new overlap.
        let forget = format!(
            "UPDATE credentials SET previous_hash = NULL, previous_until = NULL, renewal_salt = NULL \
             WHERE hash IN ({}) AND previous_until <= $1",
            ended("previous_until", 1)
        );
        let forgotten = self.store.execute(&forget, values![now]).await?;
        Ok(deleted.max(forgotten))
    }

    /// Invalidates the cache entries that `change` concerns.
    pub(crate) fn on_change(&self, change: &Change) {
        self.cache.on_change(change, credentials::changed);
    }
}

/// A login that was revoked.
struct RevokedLogin {
    account: AccountId,
    /// Its present credential, and the one before.
    hashes: [Option<CredentialHash>; 2],
}

impl FromRow for RevokedLogin {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let hashes = [row.get("hash")?, row.get("previous_hash")?];
        Ok(Self {
            account: AccountId::new(row.get("account_id")?),
            hashes: hashes.map(|hash: Option<_>| hash.map(CredentialHash::from_bytes)),
        })
    }
}

#[cfg(test)]
mod both_stores;

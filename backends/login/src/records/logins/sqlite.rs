//! Logins in SQLite. Every change is one conditional statement, or one transaction that holds the write lock.

use std::time::Instant;

use async_trait::async_trait;
use rusqlite::{OptionalExtension, Transaction, params};
use signpost_kit::clock::{StoredTime, Timestamp};
use signpost_protocol::app::AppId;
use signpost_store::{SqliteDatabase, StoreError, StoredRow, Topic, sqlite::changes};

use super::{
    Claim, Completion, CookieHash, FinishTimes, Login, LoginStore, NewPollingLogin, Outcome,
    Redemption, SealKey, StateHash, TicketCredential, TicketHash,
    rows::{COLUMNS, COMPLETION_COLUMNS, SEAL_KEY, completion_from_row, login_from_row, return_to},
};
use crate::records::credentials::{CredentialClaims, NewCredential, SqliteCredentials};

pub(super) const BIND: &str = "UPDATE logins SET cookie_hash = ?2 \
     WHERE state_hash = ?1 AND status = 'pending' AND expires_at > ?3";

pub(super) const CLAIM: &str = "UPDATE logins SET status = 'exchanging', claimed_until = ?4, claimable_until = ?5 \
     WHERE state_hash = ?1 AND status = 'pending' AND expires_at > ?3 \
       AND cookie_hash = ?2";

pub(super) const FINISH: &str = "UPDATE logins SET status = ?2, reason = ?3, account_id = ?4, account_created = ?5, \
         ticket_hash = ?6, ticket_until = ?7, finished_at = coalesce(finished_at, ?8), claimable_until = ?9 \
     WHERE state_hash = ?1 AND ((status = 'exchanging' AND claimed_until > ?10) \
         OR (status = ?2 AND reason IS NOT DISTINCT FROM ?3 AND account_id IS NOT DISTINCT FROM ?4))";

/// Logins in a SQLite file.
#[derive(Debug)]
pub(crate) struct SqliteLogins(SqliteDatabase);

impl SqliteLogins {
    /// Over an open database.
    pub(crate) fn new(database: SqliteDatabase) -> Self {
        Self(database)
    }
}

#[async_trait]
impl LoginStore for SqliteLogins {
    async fn begin(&self, login: NewPollingLogin) -> Result<(), StoreError> {
        self.0
            .write(move |transaction| {
                transaction
                    .prepare_cached(
                        "INSERT INTO logins (state_hash, version, application_id, mode, provider, user_code, \
                             status, created_at, expires_at) \
                         VALUES (?1, ?2, ?3, 'polling', ?4, ?5, 'pending', ?6, ?7)",
                    )?
                    .execute(params![
                        login.state.hash().as_bytes(),
                        login.state.version().as_str(),
                        login.application.get(),
                        login.provider.as_str(),
                        login.user_code.as_str(),
                        login.created_at.as_millis(),
                        login.expires_at.as_millis(),
                    ])?;
                Ok(())
            })
            .await
    }

    async fn find(&self, state: &StateHash) -> Result<Option<Login>, StoreError> {
        let state = *state;
        self.0
            .call(move |connection| {
                let query = format!(
                    "SELECT {COLUMNS} FROM logins LEFT JOIN accounts ON accounts.id = account_id \
                     WHERE state_hash = ?1"
                );
                connection
                    .prepare_cached(&query)?
                    .query_row([state.as_bytes()], |row| login_from_row(row))
                    .optional()
            })
            .await
    }

    async fn bind(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (state, cookie) = (*state, *cookie);
        self.0
            .write(move |transaction| {
                let changed = transaction.prepare_cached(BIND)?.execute(params![
                    state.as_bytes(),
                    cookie.as_bytes(),
                    now.as_millis(),
                ])?;
                Ok(changed == 1)
            })
            .await
    }

    async fn claim(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (state, cookie) = (*state, *cookie);
        self.0
            .write(move |transaction| {
                let changed = transaction.prepare_cached(CLAIM)?.execute(params![
                    state.as_bytes(),
                    cookie.as_bytes(),
                    now.as_millis(),
                    claim.until.as_millis(),
                    claim.claimable_until.as_millis(),
                ])?;
                Ok(changed == 1)
            })
            .await
    }

    async fn claim_redirect(
        &self,
        login: &Login,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let login = login.clone();
        self.0
            .write(move |transaction| {
                let inserted = transaction
                    .prepare_cached(
                        "INSERT INTO logins (state_hash, version, application_id, mode, provider, return_to, \
                             cookie_hash, status, claimed_until, claimable_until, created_at, expires_at) \
                         VALUES (?1, ?2, ?3, 'redirect', ?4, ?5, ?6, 'exchanging', ?7, ?8, ?9, ?10) \
                         ON CONFLICT (state_hash) DO NOTHING",
                    )?
                    .execute(params![
                        login.state.hash().as_bytes(),
                        login.state.version().as_str(),
                        login.application.get(),
                        login.provider.as_str(),
                        return_to(&login.mode),
                        login.cookie.as_ref().map(CookieHash::as_bytes),
                        claim.until.as_millis(),
                        claim.claimable_until.as_millis(),
                        now.as_millis(),
                        login.expires_at.as_millis(),
                    ])?;
                Ok(inserted == 1)
            })
            .await
    }

    async fn unclaim_redirect(&self, state: &StateHash) -> Result<(), StoreError> {
        let state = *state;
        self.0
            .write(move |transaction| {
                transaction
                    .prepare_cached(
                        "DELETE FROM logins WHERE state_hash = ?1 AND mode = 'redirect' AND status = 'exchanging'",
                    )?
                    .execute([state.as_bytes()])?;
                Ok(())
            })
            .await
    }

    async fn finish(
        &self,
        state: &StateHash,
        outcome: Outcome,
        times: FinishTimes,
    ) -> Result<bool, StoreError> {
        let state = *state;
        let called_at = Instant::now();
        self.0
            .write(move |transaction| {
                // The write lock is held now. If waiting for it took longer than planned, the deadline moves.
                let locked_at = times.at.plus(called_at.elapsed());
                let deadline = times.deadline.max(locked_at);
                let values = outcome.values();
                let changed = transaction.prepare_cached(FINISH)?.execute(params![
                    state.as_bytes(),
                    values.status,
                    values.reason,
                    values.account,
                    values.account_created,
                    values.ticket.map(TicketHash::as_bytes),
                    values.ticket_until,
                    times.at.as_millis(),
                    times.claimable_until.as_millis(),
                    deadline.as_millis(),
                ])?;
                if changed == 1 {
                    changes::record(transaction, Topic::Login, state.as_bytes())?;
                }
                Ok(changed == 1)
            })
            .await
    }

    async fn redeem(
        &self,
        ticket: &TicketHash,
        application: AppId,
        credential: TicketCredential,
        now: Timestamp,
    ) -> Result<Redemption, StoreError> {
        let ticket = *ticket;
        self.0
            .write(move |transaction| redeem(transaction, &ticket, application, credential, now))
            .await
    }

    async fn sweep(
        &self,
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.0
            .write(move |transaction| {
                let expired = transaction
                    .prepare_cached(
                        "DELETE FROM logins WHERE state_hash IN \
                             (SELECT state_hash FROM logins WHERE expires_at < ?1 LIMIT ?2)",
                    )?
                    .execute(params![before.as_millis(), limit])?;
                let unfinished = transaction
                    .prepare_cached(
                        "DELETE FROM logins WHERE state_hash IN \
                             (SELECT state_hash FROM logins WHERE expires_at < ?1 \
                                 AND mode = 'redirect' AND status IN ('exchanging', 'failed') LIMIT ?2)",
                    )?
                    .execute(params![now.as_millis(), limit])?;
                Ok(expired.max(unfinished))
            })
            .await
    }

    async fn seal_key(&self, new: SealKey, now: Timestamp) -> Result<SealKey, StoreError> {
        self.0
            .write(move |transaction| {
                transaction.execute(
                    "INSERT INTO login_keys (name, key, created_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                    params![SEAL_KEY, new.as_bytes(), now.as_millis()],
                )?;
                let query = "SELECT key FROM login_keys WHERE name = ?1";
                transaction.query_row(query, [SEAL_KEY], |row| Ok(SealKey::from_bytes(row.array("key")?)))
            })
            .await
    }
}

fn redeem(
    transaction: &Transaction<'_>,
    ticket: &TicketHash,
    application: AppId,
    credential: TicketCredential,
    now: Timestamp,
) -> rusqlite::Result<Redemption> {
    let query = format!(
        "SELECT {COMPLETION_COLUMNS}, ticket_until, ticket_used_at, \
             EXISTS (SELECT 1 FROM credentials WHERE hash = ?3) AS is_kept \
         FROM logins JOIN accounts ON accounts.id = account_id \
         WHERE ticket_hash = ?1 AND application_id = ?2 AND status = 'complete'"
    );
    let values = params![
        ticket.as_bytes(),
        application.get(),
        credential.hash.as_bytes()
    ];
    let found = transaction
        .prepare_cached(&query)?
        .query_row(values, |row| {
            Ok((
                completion_from_row(row)?,
                row.time("ticket_until")?,
                row.optional_time("ticket_used_at")?,
                row.flag("is_kept")?,
            ))
        })
        .optional()?;
    match found {
        None => Ok(Redemption::Unknown),
        Some((completion, _, Some(_), true)) => Ok(Redemption::Redeemed(Box::new(completion))),
        Some((_, _, Some(_), false)) => Ok(Redemption::AlreadyUsed),
        Some((_, until, None, _)) if until <= now => Ok(Redemption::Expired),
        Some((completion, _, None, _)) => {
            // The transaction held the write lock before the row was read, so no other one has redeemed the ticket.
            transaction
                .prepare_cached("UPDATE logins SET ticket_used_at = ?2 WHERE ticket_hash = ?1")?
                .execute(params![ticket.as_bytes(), now.as_millis()])?;
            let new = new_credential(&completion, application, credential);
            SqliteCredentials::insert_in(transaction, &new)?;
            Ok(Redemption::Redeemed(Box::new(completion)))
        }
    }
}

fn new_credential(
    completion: &Completion,
    application: AppId,
    credential: TicketCredential,
) -> NewCredential {
    NewCredential {
        hash: credential.hash,
        logged_in: CredentialClaims {
            account: completion.account.clone(),
            application,
            expires_at: completion.finished_at.plus(credential.lifetime),
        },
        created_at: completion.finished_at,
    }
}

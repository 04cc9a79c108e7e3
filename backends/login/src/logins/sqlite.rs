//! Logins in SQLite. Every change is one conditional statement, or one transaction that holds the write lock.

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use rusqlite::{OptionalExtension, Transaction, params};
use signpost_store::{SqliteDatabase, StoreError, Topic, sqlite::changes};

use super::{
    Begun, BoundCookie, Claim, Completion, CookieHash, CookieStage, FinishTimes, Login, LoginStore,
    NewLogin, Outcome, Redeemed, StateHash, TicketCredential, TicketHash,
    rows::{
        COLUMNS, COMPLETION_COLUMNS, IS_PENDING, completion_from_row, login_from_row, mode_values,
        stage_word,
    },
};
use crate::{
    clock::Timestamp,
    config::PendingBounds,
    credentials::{LoggedIn, NewCredential, SqliteCredentials},
    store_values::StoredRow,
};

pub(super) const BIND: &str = "UPDATE logins SET cookie_hash = ?2, cookie_stage = ?3 \
     WHERE state_hash = ?1 AND status = 'pending' AND expires_at > ?4 \
       AND (?5 IS NULL OR (cookie_hash = ?5 AND cookie_stage = 'shown'))";

pub(super) const CLAIM: &str = "UPDATE logins SET status = 'exchanging', claimed_until = ?4, claimable_until = ?5 \
     WHERE state_hash = ?1 AND status = 'pending' AND expires_at > ?3 \
       AND cookie_hash = ?2 AND cookie_stage = 'authorizing'";

pub(super) const FINISH: &str = "UPDATE logins SET status = ?2, reason = ?3, account_id = ?4, account_created = ?5, \
         ticket_hash = ?6, ticket_until = ?7, finished_at = coalesce(finished_at, ?8), claimable_until = ?9 \
     WHERE state_hash = ?1 AND ((status = 'exchanging' AND coalesce(claimed_until, expires_at) > ?10) \
         OR (status = ?2 AND reason IS NOT DISTINCT FROM ?3 AND account_id IS NOT DISTINCT FROM ?4))";

/// Logins in a SQLite file.
#[derive(Debug)]
pub struct SqliteLogins(SqliteDatabase);

impl SqliteLogins {
    /// Over an open database.
    #[must_use]
    pub fn new(database: SqliteDatabase) -> Self {
        Self(database)
    }
}

#[async_trait]
impl LoginStore for SqliteLogins {
    async fn begin(&self, login: NewLogin, bounds: PendingBounds) -> Result<Begun, StoreError> {
        self.0
            .write(move |transaction| {
                if let Some(free_at) = too_many_pending(transaction, &login, bounds)? {
                    return Ok(Begun::TooMany { free_at });
                }
                insert(transaction, &login)?;
                Ok(Begun::Stored)
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
        expected: Option<CookieHash>,
        cookie: BoundCookie,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let state = *state;
        self.0
            .write(move |transaction| {
                let changed = transaction.prepare_cached(BIND)?.execute(params![
                    state.as_bytes(),
                    cookie.hash.as_bytes(),
                    stage_word(cookie.stage),
                    now.as_millis(),
                    expected.as_ref().map(CookieHash::as_bytes),
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

    async fn finish(
        &self,
        state: &StateHash,
        outcome: Outcome,
        times: FinishTimes,
    ) -> Result<bool, StoreError> {
        let state = *state;
        self.0
            .write(move |transaction| {
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
                    times.stored_by.as_millis(),
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
    ) -> Result<Redeemed, StoreError> {
        let ticket = *ticket;
        self.0
            .write(move |transaction| redeem(transaction, &ticket, application, credential, now))
            .await
    }

    async fn sweep(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.0
            .write(move |transaction| {
                transaction
                    .prepare_cached(
                        "DELETE FROM logins WHERE state_hash IN \
                             (SELECT state_hash FROM logins WHERE expires_at < ?1 LIMIT ?2)",
                    )?
                    .execute(params![before.as_millis(), limit])
            })
            .await
    }
}

/// When the next of too many pending logins expires; `None` when there is room.
fn too_many_pending(
    transaction: &Transaction<'_>,
    login: &NewLogin,
    bounds: PendingBounds,
) -> rusqlite::Result<Option<Timestamp>> {
    // Counts no further than the bound: the cost of saying no stays the same under attack.
    let count = |column: &str, value: &dyn rusqlite::ToSql, bound: u64| {
        let query = format!(
            "SELECT count(*), min(expires_at) FROM (SELECT expires_at FROM logins \
             WHERE {column} = ?1 AND {IS_PENDING} AND expires_at > ?2 \
             ORDER BY expires_at LIMIT ?3)"
        );
        transaction.prepare_cached(&query)?.query_row(
            params![value, login.created_at.as_millis(), bound],
            |row| {
                let pending: u64 = row.get(0)?;
                let first_end = row.get::<_, Option<i64>>(1)?.map(Timestamp::from_millis);
                Ok(first_end.filter(|_| pending >= bound))
            },
        )
    };
    let of_address = count(
        "client_address",
        &login.client_address.as_str(),
        bounds.per_address,
    )?;
    let of_application = count(
        "application_id",
        &login.application.get(),
        bounds.per_application,
    )?;
    Ok(of_address.max(of_application))
}

fn insert(transaction: &Transaction<'_>, login: &NewLogin) -> rusqlite::Result<usize> {
    let (mode, user_code, return_to) = mode_values(&login.mode);
    let stage = login.cookie.map(|_| stage_word(CookieStage::Authorizing));
    transaction
        .prepare_cached(
            "INSERT INTO logins (state_hash, version, application_id, mode, provider, user_code, return_to, \
                 client_address, cookie_hash, cookie_stage, status, created_at, expires_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'pending', ?11, ?12)",
        )?
        .execute(params![
            login.state.hash().as_bytes(),
            login.state.version().as_str(),
            login.application.get(),
            mode,
            login.provider.as_str(),
            user_code,
            return_to,
            login.client_address.as_str(),
            login.cookie.as_ref().map(CookieHash::as_bytes),
            stage,
            login.created_at.as_millis(),
            login.expires_at.as_millis(),
        ])
}

fn redeem(
    transaction: &Transaction<'_>,
    ticket: &TicketHash,
    application: AppId,
    credential: TicketCredential,
    now: Timestamp,
) -> rusqlite::Result<Redeemed> {
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
        None => Ok(Redeemed::Unknown),
        Some((completion, _, Some(_), true)) => Ok(Redeemed::Now(Box::new(completion))),
        Some((_, _, Some(_), false)) => Ok(Redeemed::Before),
        Some((_, until, None, _)) if until <= now => Ok(Redeemed::TooLate),
        Some((completion, _, None, _)) => {
            // The transaction has held the write lock since before the row was read.
            transaction
                .prepare_cached("UPDATE logins SET ticket_used_at = ?2 WHERE ticket_hash = ?1")?
                .execute(params![ticket.as_bytes(), now.as_millis()])?;
            let new = new_credential(&completion, application, credential);
            SqliteCredentials::keep_in(transaction, &new)?;
            Ok(Redeemed::Now(Box::new(completion)))
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
        logged_in: LoggedIn {
            account: completion.account.clone(),
            application,
            expires_at: completion.finished_at.plus(credential.lifetime),
        },
        created_at: completion.finished_at,
    }
}

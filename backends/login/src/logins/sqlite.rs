//! Logins in SQLite. Every change is one conditional statement, or one transaction that holds the write lock.

mod rows;

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use rusqlite::{OptionalExtension, Transaction, params};
use signpost_store::{Database, StoreError, Topic, changes};

use self::rows::{COLUMNS, completion_from_row, login_from_row};
use super::{
    Begun, BoundCookie, CookieHash, CookieStage, Login, LoginStore, Mode, NewLogin, Outcome,
    Redeemed, StateHash, TicketHash,
};
use crate::{
    clock::Timestamp,
    config::PendingBounds,
    store_values::{optional_time, time},
};

/// Logins in a SQLite file.
#[derive(Debug)]
pub struct SqliteLogins(Database);

impl SqliteLogins {
    /// Over an open database.
    #[must_use]
    pub fn new(database: Database) -> Self {
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
                    .query_row([state.as_bytes()], login_from_row)
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
                let changed = transaction
                    .prepare_cached(
                        "UPDATE logins SET cookie_hash = ?2, cookie_stage = ?3 \
                         WHERE state_hash = ?1 AND status = 'pending' AND expires_at > ?4 \
                           AND (?5 IS NULL OR (cookie_hash = ?5 AND cookie_stage = 'shown'))",
                    )?
                    .execute(params![
                        state.as_bytes(),
                        cookie.hash.as_bytes(),
                        rows::stage_word(cookie.stage),
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
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (state, cookie) = (*state, *cookie);
        self.0
            .write(move |transaction| {
                let changed = transaction
                    .prepare_cached(
                        "UPDATE logins SET status = 'exchanging' \
                         WHERE state_hash = ?1 AND status = 'pending' AND expires_at > ?3 \
                           AND cookie_hash = ?2 AND cookie_stage = 'authorizing'",
                    )?
                    .execute(params![
                        state.as_bytes(),
                        cookie.as_bytes(),
                        now.as_millis()
                    ])?;
                Ok(changed == 1)
            })
            .await
    }

    async fn finish(
        &self,
        state: &StateHash,
        outcome: Outcome,
        now: Timestamp,
        claimable_until: Timestamp,
    ) -> Result<bool, StoreError> {
        let state = *state;
        self.0
            .write(move |transaction| {
                let (status, reason, account, created, ticket) = match outcome {
                    Outcome::Complete { account, created, ticket } => ("complete", None, Some(account), created, ticket),
                    Outcome::Failed(reason) => ("failed", Some(reason.as_str()), None, false, None),
                };
                let changed = transaction
                    .prepare_cached(
                        "UPDATE logins SET status = ?2, reason = ?3, account_id = ?4, account_created = ?5, \
                             ticket_hash = ?6, ticket_until = ?7, finished_at = ?8, claimable_until = ?9 \
                         WHERE state_hash = ?1 AND status = 'exchanging' AND expires_at > ?8",
                    )?
                    .execute(params![
                        state.as_bytes(),
                        status,
                        reason,
                        account.map(|account| account.get()),
                        created,
                        ticket.as_ref().map(|(hash, _)| hash.as_bytes()),
                        ticket.as_ref().map(|(_, until)| until.as_millis()),
                        now.as_millis(),
                        claimable_until.as_millis(),
                    ])?;
                changes::record(transaction, Topic::Login, state.as_bytes())?;
                Ok(changed == 1)
            })
            .await
    }

    async fn redeem(
        &self,
        ticket: &TicketHash,
        application: AppId,
        now: Timestamp,
    ) -> Result<Redeemed, StoreError> {
        let ticket = *ticket;
        self.0
            .write(move |transaction| redeem(transaction, &ticket, application, now))
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
             WHERE {column} = ?1 AND status IN ('pending', 'exchanging') AND expires_at > ?2 \
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
    let (mode, user_code, return_to) = match &login.mode {
        Mode::Redirect { return_to } => ("redirect", None, return_to.as_ref()),
        Mode::Polling { user_code } => ("polling", Some(user_code.as_str()), None),
    };
    let stage = login
        .cookie
        .map(|_| rows::stage_word(CookieStage::Authorizing));
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
            return_to.map(url::Url::as_str),
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
    now: Timestamp,
) -> rusqlite::Result<Redeemed> {
    let query = format!(
        "SELECT {COLUMNS}, ticket_until, ticket_used_at \
         FROM logins JOIN accounts ON accounts.id = account_id \
         WHERE ticket_hash = ?1 AND application_id = ?2 AND status = 'complete'"
    );
    let found = transaction
        .prepare_cached(&query)?
        .query_row(params![ticket.as_bytes(), application.get()], |row| {
            Ok((
                completion_from_row(row)?,
                time(row, "ticket_until")?,
                optional_time(row, "ticket_used_at")?,
            ))
        })
        .optional()?;
    match found {
        None => Ok(Redeemed::Unknown),
        Some((_, _, Some(_))) => Ok(Redeemed::Before),
        Some((_, until, None)) if until <= now => Ok(Redeemed::TooLate),
        Some((completion, _, None)) => {
            // The transaction has held the write lock since before the row was read.
            transaction
                .prepare_cached("UPDATE logins SET ticket_used_at = ?2 WHERE ticket_hash = ?1")?
                .execute(params![ticket.as_bytes(), now.as_millis()])?;
            Ok(Redeemed::Now(Box::new(completion)))
        }
    }
}

#[cfg(test)]
mod tests;

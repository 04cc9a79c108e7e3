//! Logins in Postgres. Every change is one conditional statement.

pub(super) mod statements;

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use signpost_store::{PostgresDatabase, StoreError};

use self::statements::Statements;
use super::{
    Begun, BoundCookie, Claim, CookieHash, CookieStage, FinishTimes, Login, LoginStore, NewLogin,
    Outcome, Redeemed, StateHash, TicketCredential, TicketHash,
    rows::{completion_from_row, login_from_row, mode_values, stage_word},
};
use crate::{
    clock::{Timestamp, millis},
    config::PendingBounds,
    store_values::{
        StoredRow,
        postgres::{bound, count},
    },
};

/// Logins in a Postgres.
#[derive(Debug)]
pub struct PostgresLogins {
    database: PostgresDatabase,
    sql: Statements,
}

impl PostgresLogins {
    /// Over an open database.
    #[must_use]
    pub fn new(database: PostgresDatabase) -> Self {
        let sql = Statements::new(&database);
        Self { database, sql }
    }

    /// Stores a login unless too many are pending. Those that are begun at the same moment do not see each other, so a
    /// bound may be exceeded by as many as are being begun at once: a bound keeps a crowd out, and need not be exact.
    async fn insert(&self, login: &NewLogin, bounds: PendingBounds) -> Result<bool, StoreError> {
        let session = self.database.session().await?;
        let (mode, user_code, return_to) = mode_values(&login.mode);
        let cookie = login.cookie.as_ref().map(|hash| hash.as_bytes().as_slice());
        let stage = cookie.map(|_| stage_word(CookieStage::Authorizing));
        let inserted = session
            .execute(
                &self.sql.begin,
                &[
                    &login.state.hash().as_bytes().as_slice(),
                    &login.state.version().as_str(),
                    &login.application.get(),
                    &mode,
                    &login.provider.as_str(),
                    &user_code,
                    &return_to,
                    &login.client_address.as_str(),
                    &cookie,
                    &stage,
                    &login.created_at.as_millis(),
                    &login.expires_at.as_millis(),
                    &bound(bounds.per_address),
                    &bound(bounds.per_application),
                ],
            )
            .await?;
        Ok(inserted == 1)
    }

    /// When the next of too many pending logins expires; now, if one has gone meanwhile.
    async fn free_at(
        &self,
        login: &NewLogin,
        bounds: PendingBounds,
    ) -> Result<Timestamp, StoreError> {
        let session = self.database.session().await?;
        let row = session
            .query_one(
                &self.sql.free_at,
                &[
                    &login.client_address.as_str(),
                    &login.application.get(),
                    &login.created_at.as_millis(),
                    &bound(bounds.per_address),
                    &bound(bounds.per_application),
                ],
            )
            .await?;
        let free_at = row.optional_time("free_at")?;
        Ok(free_at.unwrap_or(login.created_at))
    }

    /// Why a ticket could not be spent.
    async fn refusal(
        &self,
        ticket: &TicketHash,
        application: AppId,
        credential: TicketCredential,
    ) -> Result<Redeemed, StoreError> {
        let session = self.database.session().await?;
        let found = session
            .query_opt(
                &self.sql.refusal,
                &[
                    &ticket.as_bytes().as_slice(),
                    &application.get(),
                    &credential.hash.as_bytes().as_slice(),
                ],
            )
            .await?;
        let Some(row) = found else {
            return Ok(Redeemed::Unknown);
        };
        Ok(match row.optional_time("ticket_used_at")? {
            Some(_) if row.flag("is_kept")? => Redeemed::Now(Box::new(completion_from_row(&row)?)),
            Some(_) => Redeemed::Before,
            None => Redeemed::TooLate,
        })
    }
}

#[async_trait]
impl LoginStore for PostgresLogins {
    async fn begin(&self, login: NewLogin, bounds: PendingBounds) -> Result<Begun, StoreError> {
        if self.insert(&login, bounds).await? {
            return Ok(Begun::Stored);
        }
        let free_at = self.free_at(&login, bounds).await?;
        Ok(Begun::TooMany { free_at })
    }

    async fn find(&self, state: &StateHash) -> Result<Option<Login>, StoreError> {
        let session = self.database.session().await?;
        let state = state.as_bytes().as_slice();
        let row = session.query_opt(&self.sql.find, &[&state]).await?;
        row.as_ref().map(login_from_row).transpose()
    }

    async fn bind(
        &self,
        state: &StateHash,
        expected: Option<CookieHash>,
        cookie: BoundCookie,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let session = self.database.session().await?;
        let expected = expected.as_ref().map(|hash| hash.as_bytes().as_slice());
        let changed = session
            .execute(
                &self.sql.bind,
                &[
                    &state.as_bytes().as_slice(),
                    &cookie.hash.as_bytes().as_slice(),
                    &stage_word(cookie.stage),
                    &now.as_millis(),
                    &expected,
                ],
            )
            .await?;
        Ok(changed == 1)
    }

    async fn claim(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let session = self.database.session().await?;
        let claimed = session
            .execute(
                &self.sql.claim,
                &[
                    &state.as_bytes().as_slice(),
                    &cookie.as_bytes().as_slice(),
                    &now.as_millis(),
                    &claim.until.as_millis(),
                    &claim.claimable_until.as_millis(),
                ],
            )
            .await?;
        Ok(claimed == 1)
    }

    async fn finish(
        &self,
        state: &StateHash,
        outcome: Outcome,
        times: FinishTimes,
    ) -> Result<bool, StoreError> {
        let session = self.database.session().await?;
        let values = outcome.values();
        let finished = session
            .execute(
                &self.sql.finish,
                &[
                    &state.as_bytes().as_slice(),
                    &values.status,
                    &values.reason,
                    &values.account,
                    &values.account_created,
                    &values.ticket.map(|hash| hash.as_bytes().as_slice()),
                    &values.ticket_until,
                    &times.at.as_millis(),
                    &times.claimable_until.as_millis(),
                    &times.stored_by.as_millis(),
                ],
            )
            .await?;
        Ok(finished == 1)
    }

    async fn redeem(
        &self,
        ticket: &TicketHash,
        application: AppId,
        credential: TicketCredential,
        now: Timestamp,
    ) -> Result<Redeemed, StoreError> {
        let session = self.database.session().await?;
        let spent = session
            .query_opt(
                &self.sql.redeem,
                &[
                    &ticket.as_bytes().as_slice(),
                    &application.get(),
                    &now.as_millis(),
                    &credential.hash.as_bytes().as_slice(),
                    &millis(credential.lifetime),
                ],
            )
            .await?;
        drop(session);
        match spent {
            Some(row) => Ok(Redeemed::Now(Box::new(completion_from_row(&row)?))),
            None => self.refusal(ticket, application, credential).await,
        }
    }

    async fn sweep(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        // The order makes it go by the index, and the limit's being known does so for what is removed: the plan of a
        // statement that is prepared knows no values.
        let sql = format!(
            "DELETE FROM logins WHERE state_hash IN \
                 (SELECT state_hash FROM logins WHERE expires_at < $1 ORDER BY expires_at LIMIT {limit})"
        );
        let session = self.database.session().await?;
        let swept = session.execute(&sql, &[&before.as_millis()]).await?;
        Ok(count(swept))
    }
}

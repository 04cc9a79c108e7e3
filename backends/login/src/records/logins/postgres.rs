//! Logins in Postgres. Every change is one conditional statement.

pub(super) mod statements;

use async_trait::async_trait;
use signpost_kit::clock::{StoredTime, Timestamp, millis};
use signpost_protocol::app::AppId;
use signpost_store::{PostgresDatabase, StoreError, StoredRow, postgres::row_count};

use self::statements::{BEGIN, BIND, CLAIM, CLAIM_REDIRECT, Statements, UNCLAIM_REDIRECT};
use super::{
    Claim, CookieHash, FinishTimes, Login, LoginStore, NewPollingLogin, Outcome, Redemption,
    SealKey, StateHash, TicketCredential, TicketHash,
    rows::{SEAL_KEY, completion_from_row, login_from_row, return_to},
};

/// Logins in a Postgres database.
#[derive(Debug)]
pub(crate) struct PostgresLogins {
    database: PostgresDatabase,
    sql: Statements,
}

impl PostgresLogins {
    /// Over an open database.
    pub(crate) fn new(database: PostgresDatabase) -> Self {
        let sql = Statements::new(&database);
        Self { database, sql }
    }

    /// Returns the result for a ticket that this call could not redeem. It is `Redeemed` if an earlier try did.
    async fn find_redemption(
        &self,
        ticket: &TicketHash,
        application: AppId,
        credential: TicketCredential,
    ) -> Result<Redemption, StoreError> {
        let session = self.database.session().await?;
        let found = session
            .query_opt(
                &self.sql.find_redemption,
                &[
                    &ticket.as_bytes().as_slice(),
                    &application.get(),
                    &credential.hash.as_bytes().as_slice(),
                ],
            )
            .await?;
        let Some(row) = found else {
            return Ok(Redemption::Unknown);
        };
        Ok(match row.optional_time("ticket_used_at")? {
            Some(_) if row.flag("is_kept")? => {
                Redemption::Redeemed(Box::new(completion_from_row(&row)?))
            }
            Some(_) => Redemption::AlreadyUsed,
            None => Redemption::Expired,
        })
    }
}

#[async_trait]
impl LoginStore for PostgresLogins {
    async fn begin(&self, login: NewPollingLogin) -> Result<(), StoreError> {
        let session = self.database.session().await?;
        session
            .execute(
                BEGIN,
                &[
                    &login.state.hash().as_bytes().as_slice(),
                    &login.state.version().as_str(),
                    &login.application.get(),
                    &login.provider.as_str(),
                    &login.user_code.as_str(),
                    &login.created_at.as_millis(),
                    &login.expires_at.as_millis(),
                ],
            )
            .await?;
        Ok(())
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
        cookie: &CookieHash,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let session = self.database.session().await?;
        let (state, cookie) = (state.as_bytes().as_slice(), cookie.as_bytes().as_slice());
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&state, &cookie, &now.as_millis()];
        Ok(session.execute(BIND, &values).await? == 1)
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
                CLAIM,
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

    async fn claim_redirect(
        &self,
        login: &Login,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let session = self.database.session().await?;
        let cookie = login.cookie.as_ref().map(|hash| hash.as_bytes().as_slice());
        let inserted = session
            .execute(
                CLAIM_REDIRECT,
                &[
                    &login.state.hash().as_bytes().as_slice(),
                    &login.state.version().as_str(),
                    &login.application.get(),
                    &login.provider.as_str(),
                    &return_to(&login.mode),
                    &cookie,
                    &claim.until.as_millis(),
                    &claim.claimable_until.as_millis(),
                    &now.as_millis(),
                    &login.expires_at.as_millis(),
                ],
            )
            .await?;
        Ok(inserted == 1)
    }

    async fn unclaim_redirect(&self, state: &StateHash) -> Result<(), StoreError> {
        let session = self.database.session().await?;
        let state = state.as_bytes().as_slice();
        session.execute(UNCLAIM_REDIRECT, &[&state]).await?;
        Ok(())
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
                    &times.deadline.as_millis(),
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
    ) -> Result<Redemption, StoreError> {
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
            Some(row) => Ok(Redemption::Redeemed(Box::new(completion_from_row(&row)?))),
            None => self.find_redemption(ticket, application, credential).await,
        }
    }

    async fn sweep(
        &self,
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError> {
        // ORDER BY makes the server read the index. The limit is a literal, not a parameter: the plan of a prepared
        // statement cannot depend on values, and without a known limit the DELETE would scan the table.
        let delete = |condition: &str| {
            format!(
                "DELETE FROM logins WHERE state_hash IN \
                     (SELECT state_hash FROM logins WHERE {condition} ORDER BY expires_at LIMIT {limit})"
            )
        };
        let session = self.database.session().await?;
        let expired = delete("expires_at < $1");
        let expired = session.execute(&expired, &[&before.as_millis()]).await?;
        let unfinished =
            delete("expires_at < $1 AND mode = 'redirect' AND status IN ('exchanging', 'failed')");
        let unfinished = session.execute(&unfinished, &[&now.as_millis()]).await?;
        Ok(row_count(expired.max(unfinished)))
    }

    async fn seal_key(&self, new: SealKey, now: Timestamp) -> Result<SealKey, StoreError> {
        let session = self.database.session().await?;
        session
            .execute(
                "INSERT INTO login_keys (name, key, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                &[&SEAL_KEY, &new.as_bytes().as_slice(), &now.as_millis()],
            )
            .await?;
        let query = "SELECT key FROM login_keys WHERE name = $1";
        let row = session.query_one(query, &[&SEAL_KEY]).await?;
        Ok(SealKey::from_bytes(row.array("key")?))
    }
}

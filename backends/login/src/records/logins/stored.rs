//! The stored logins. Every change is one conditional statement.

use std::time::Duration;

use async_trait::async_trait;
use signpost_kit::clock::{Timestamp, millis};
use signpost_protocol::app::AppId;
use signpost_store::{Changed, FromRow, Row, Store, StoreError, tables::accounts::JOINED, values};

use super::{
    Claim, Completion, CookieHash, FinishTimes, Login, LoginStore, NewPollingLogin, Outcome,
    Redemption, SealKey, StateHash, TicketCredential, TicketHash,
    rows::{COLUMNS, COMPLETION_COLUMNS, SEAL_KEY, return_to},
};
use crate::config::ProviderName;

const BEGIN: &str = "INSERT INTO logins (state_hash, version, application_id, mode, provider, user_chooses, hints, \
         user_code, network, status, created_at, expires_at) \
     VALUES ($1, $2, $3, 'polling', $4, $5, $6, $7, $8, 'pending', $9, $10)";

pub(super) const BIND: &str = "UPDATE logins SET cookie_hash = $2, provider = coalesce($4, provider) \
     WHERE state_hash = $1 AND status = 'pending' AND expires_at > $3";

pub(super) const CLAIM: &str = "UPDATE logins SET status = 'exchanging', claimed_until = $4, claimable_until = $5 \
     WHERE state_hash = $1 AND status = 'pending' AND expires_at > $3 AND cookie_hash = $2 \
         AND provider IS NOT DISTINCT FROM $6";

const CLAIM_REDIRECT: &str = "INSERT INTO logins (state_hash, version, application_id, mode, provider, return_to, \
         cookie_hash, status, claimed_until, claimable_until, created_at, expires_at) \
     VALUES ($1, $2, $3, 'redirect', $4, $5, $6, 'exchanging', $7, $8, $9, $10) \
     ON CONFLICT (state_hash) DO NOTHING";

pub(super) const UNCLAIM_REDIRECT: &str =
    "DELETE FROM logins WHERE state_hash = $1 AND mode = 'redirect' AND status = 'exchanging'";

pub(super) const FINISH: &str = "UPDATE logins SET status = $2, reason = $3, account_id = $4, account_created = $5, \
         ticket_hash = $6, ticket_until = $7, finished_at = coalesce(finished_at, $8), claimable_until = $9 \
     WHERE state_hash = $1 AND ((status = 'exchanging' AND claimed_until > $10) \
         OR (status = $2 AND claimable_until > 0 AND reason IS NOT DISTINCT FROM $3 AND account_id IS NOT DISTINCT FROM $4))";

pub(super) fn find_statement() -> String {
    format!(
        "SELECT {COLUMNS}, {COMPLETION_COLUMNS}, {JOINED} \
         FROM logins LEFT JOIN accounts ON accounts.id = account_id WHERE state_hash = $1"
    )
}

#[async_trait]
impl LoginStore for Store {
    async fn begin(&self, login: NewPollingLogin) -> Result<(), StoreError> {
        let values = values![
            login.state.hash().as_bytes(),
            login.state.version().as_str(),
            login.application.get(),
            login.provider.as_ref().map(ProviderName::as_str),
            login.provider.is_none(),
            login.hints.encode(),
            login.user_code.as_str(),
            login.begun.network,
            login.begun.at,
            login.expires_at,
        ];
        self.execute(BEGIN, values).await.map(drop)
    }

    async fn find(&self, state: &StateHash) -> Result<Option<Login>, StoreError> {
        self.row(&find_statement(), values![state.as_bytes()]).await
    }

    async fn bind(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        chosen: Option<&ProviderName>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let values = values![
            state.as_bytes(),
            cookie.as_bytes(),
            now,
            chosen.map(ProviderName::as_str)
        ];
        Ok(self.execute(BIND, values).await? == 1)
    }

    async fn claim(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        provider: Option<&ProviderName>,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let values = values![
            state.as_bytes(),
            cookie.as_bytes(),
            now,
            claim.until,
            claim.claimable_until,
            provider.map(ProviderName::as_str),
        ];
        Ok(self.execute(CLAIM, values).await? == 1)
    }

    async fn claim_redirect(
        &self,
        login: &Login,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let values = values![
            login.state.hash().as_bytes(),
            login.state.version().as_str(),
            login.application.get(),
            login.provider.provider().map(ProviderName::as_str),
            return_to(&login.mode),
            login.cookie.as_ref().map(CookieHash::as_bytes),
            claim.until,
            claim.claimable_until,
            now,
            login.expires_at,
        ];
        Ok(self.execute(CLAIM_REDIRECT, values).await? == 1)
    }

    async fn unclaim_redirect(&self, state: &StateHash) -> Result<(), StoreError> {
        let values = values![state.as_bytes()];
        self.execute(UNCLAIM_REDIRECT, values).await.map(drop)
    }

    async fn finish(
        &self,
        state: &StateHash,
        outcome: Outcome,
        times: FinishTimes,
    ) -> Result<bool, StoreError> {
        let state = *state;
        let values = move |waited: Duration| {
            // If the waits took longer than planned, the deadline moves.
            let deadline = times.deadline.max(times.at.plus(waited));
            let (status, reason, account, created, ticket) = match &outcome {
                Outcome::Complete {
                    account,
                    created,
                    ticket,
                } => ("complete", None, Some(account.get()), *created, *ticket),
                Outcome::Failed(reason) => ("failed", Some(reason.as_str()), None, false, None),
            };
            values![
                state.as_bytes(),
                status,
                reason,
                account,
                created,
                ticket.as_ref().map(|(hash, _)| hash.as_bytes()),
                ticket.map(|(_, until)| until),
                times.at,
                times.claimable_until,
                deadline,
            ]
        };
        let finish = self.change_at(Changed::Login, (FINISH, "state_hash"), values);
        Ok(finish.await? == 1)
    }

    async fn redeem(
        &self,
        ticket: &TicketHash,
        application: AppId,
        credential: TicketCredential,
        now: Timestamp,
    ) -> Result<Redemption, StoreError> {
        let values = values![
            ticket.as_bytes(),
            application.get(),
            now,
            credential.hash.as_bytes(),
            millis(credential.lifetime),
            credential.login.as_bytes(),
        ];
        let spend = "UPDATE logins SET ticket_used_at = $3 \
                     WHERE ticket_hash = $1 AND application_id = $2 AND status = 'complete' \
                       AND ticket_used_at IS NULL AND ticket_until > $3 \
                     RETURNING account_id, application_id, finished_at";
        // Types are explicit where some engines cannot infer them.
        let keep = |from: &str, [hash, lifetime, login]: [&str; 3]| {
            format!(
                "INSERT INTO credentials (hash, login_hash, account_id, application_id, created_at, expires_at) \
                 SELECT {hash}, {login}, account_id, application_id, finished_at, finished_at + {lifetime} FROM {from} \
                 ON CONFLICT DO NOTHING"
            )
        };
        let keep_in_sqlite = keep("logins WHERE ticket_hash = $1", ["$4", "$5", "$6"]);
        let casts = [
            "CAST($4 AS BYTEA)",
            "CAST($5 AS BIGINT)",
            "CAST($6 AS BYTEA)",
        ];
        let keep = keep("spent", casts);
        let spend_and_keep =
            format!("WITH spent AS ({spend}), kept AS ({keep}) SELECT 1 FROM spent");
        self.write_in_order::<()>(&[spend, &keep_in_sqlite], &spend_and_keep, values)
            .await?;
        // It is `Redeemed` if this call, or an earlier one whose response was lost, has redeemed it.
        let query = format!(
            "SELECT {COMPLETION_COLUMNS}, {JOINED}, ticket_used_at, \
                 EXISTS (SELECT 1 FROM credentials WHERE hash = $3) AS is_kept \
             FROM logins JOIN accounts ON accounts.id = account_id \
             WHERE ticket_hash = $1 AND application_id = $2 AND status = 'complete'"
        );
        let values = values![
            ticket.as_bytes(),
            application.get(),
            credential.hash.as_bytes()
        ];
        let found = self.row(&query, values).await?;
        Ok(found.unwrap_or(Redemption::Unknown))
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
        let expired = delete("expires_at < $1");
        let expired = self.execute(&expired, values![before]).await?;
        let unfinished =
            delete("expires_at < $1 AND mode = 'redirect' AND status IN ('exchanging', 'failed')");
        let unfinished = self.execute(&unfinished, values![now]).await?;
        Ok(expired.max(unfinished))
    }

    async fn seal_key(&self, new: SealKey, now: Timestamp) -> Result<SealKey, StoreError> {
        let insert = "INSERT INTO login_keys (name, key, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        let values = values![SEAL_KEY, new.as_bytes(), now];
        self.execute(insert, values).await?;
        let query = "SELECT key FROM login_keys WHERE name = $1";
        let key = self.row(query, values![SEAL_KEY]).await?;
        let key = key.ok_or(StoreError::Malformed("key"));
        key.map(|(key,)| SealKey::from_bytes(key))
    }
}

impl FromRow for Redemption {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(match row.get::<Option<Timestamp>>("ticket_used_at")? {
            Some(_) if row.get("is_kept")? => Self::Redeemed(Box::new(Completion::from_row(row)?)),
            Some(_) => Self::AlreadyUsed,
            None => Self::Expired,
        })
    }
}

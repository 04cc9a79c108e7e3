//! The table of the logins. Every change is one conditional statement.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use signpost_kit::clock::{Timestamp, millis};
use signpost_protocol::app::AppId;
use signpost_store::{
    Changed, FromRow, Parsed, Row, Store, StoreError,
    tables::accounts::{Account, JOINED},
    values,
};
use url::Url;

use super::{
    Begun, Choice, Claim, Completion, CookieHash, FinishTimes, Hints, Login, LoginState, Mode,
    Outcome, Redemption, SealKey, StateHash, Status, TicketHash,
};
use crate::{config::ProviderName, records::credentials::Credential};

/// The columns for a [`Login`], beside the columns of its account and of its [`Completion`].
const COLUMNS: &str = "state_hash, version, application_id, mode, logins.provider AS login_provider, \
    user_chooses, hints, user_code, logins.created_at AS begun_at, network, return_to, cookie_hash, status, claimed_until, reason, expires_at";

/// The columns for a [`Completion`], beside the columns of its account.
const COMPLETION_COLUMNS: &str = "account_created, finished_at, claimable_until";

/// The name of the row that holds the [`SealKey`].
const SEAL_KEY: &str = "redirect_cookie";

// The row is the claim of a redirect login: the second of two callbacks conflicts with the first.
const INSERT: &str = "INSERT INTO logins (state_hash, version, application_id, mode, provider, user_chooses, hints, \
         user_code, network, return_to, cookie_hash, status, claimed_until, claimable_until, created_at, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) \
     ON CONFLICT (state_hash) DO NOTHING";

// As long as the server's statistics are those of an empty table, each index seems as good as the primary key. By the ages, or
// by what no provider vouched for, it would read all pending logins. A sum and a joined text (`+ 0`, `|| ''`) keep it from these.

// Whatever the cookie was: only the browser that has confirmed last can finish.
pub(super) const BIND: &str = "UPDATE logins SET cookie_hash = $2, provider = coalesce($4, provider) \
     WHERE state_hash = $1 AND status = 'pending' AND expires_at + 0 > $3";

// A provider that was not chosen yet is null, which `=` would never find.
pub(super) const CLAIM: &str = "UPDATE logins SET status = 'exchanging', claimed_until = $4, claimable_until = $5 \
     WHERE state_hash = $1 AND status = 'pending' AND expires_at + 0 > $3 AND cookie_hash = $2 \
         AND provider IS NOT DISTINCT FROM $6";

pub(super) const UNCLAIM: &str = "DELETE FROM logins WHERE state_hash = $1 AND mode || '' = 'redirect' AND status = 'exchanging'";

// The second condition lets a repetition succeed: the response to the first try may have been lost.
pub(super) const FINISH: &str = "UPDATE logins SET status = $2, reason = $3, account_id = $4, account_created = $5, \
         ticket_hash = $6, ticket_until = $7, finished_at = $8, claimable_until = $9 \
     WHERE state_hash = $1 AND ((status = 'exchanging' AND claimed_until > $10) \
         OR (status = $2 AND claimable_until > 0 AND reason IS NOT DISTINCT FROM $3 AND account_id IS NOT DISTINCT FROM $4))";

pub(super) fn find_statement() -> String {
    format!(
        "SELECT {COLUMNS}, {COMPLETION_COLUMNS}, {JOINED} \
         FROM logins LEFT JOIN accounts ON accounts.id = account_id WHERE state_hash = $1"
    )
}

const SPEND: &str = "UPDATE logins SET ticket_used_at = $3 \
     WHERE ticket_hash = $1 AND application_id = $2 AND status = 'complete' \
         AND ticket_used_at IS NULL AND ticket_until > $3 \
     RETURNING account_id, application_id, finished_at";

/// Inserts the credential of a ticket that was spent.
fn keep(from: &str, [hash, lifetime, login]: [&str; 3]) -> String {
    format!(
        "INSERT INTO credentials (hash, login_hash, account_id, application_id, created_at, expires_at) \
         SELECT {hash}, {login}, account_id, application_id, finished_at, finished_at + {lifetime} FROM {from} \
         ON CONFLICT DO NOTHING"
    )
}

/// How many polling logins a process remembers, some 500 bytes each, and for how long.
const SEEN: u64 = 10_000;
const SEEN_FOR: Duration = Duration::from_secs(60);

/// The stored logins. Each change is a conditional write; `false` means that its condition was not met. All functions fail
/// if the store is unavailable.
#[derive(Clone, Debug)]
pub(crate) struct Logins {
    store: Store,
    /// The polling logins of browsers that this process has served, as it has last seen them: pending, or just completed.
    seen: Cache<StateHash, Arc<Login>>,
}

impl Logins {
    pub(crate) fn new(store: Store) -> Self {
        let seen = Cache::builder().max_capacity(SEEN);
        Self {
            store,
            seen: seen.time_to_live(SEEN_FOR).build(),
        }
    }

    /// A polling login as this process has last seen it, which spares a read. Another process may have changed it since: so
    /// it is good for nothing but a conditional write. If that changes nothing, the login must be found.
    pub(crate) fn seen(&self, state: &StateHash) -> Option<Arc<Login>> {
        self.seen.get(state)
    }

    /// Remembers a polling login.
    fn see(&self, login: Login) {
        if let Mode::Polling { .. } = &login.mode {
            self.seen.insert(*login.state.hash(), Arc::new(login));
        }
    }

    /// Remembers how [`Self::finish`] has ended a login: the client of a completed one asks next.
    pub(crate) fn see_finished(&self, login: &Login, outcome: &Outcome, times: FinishTimes) {
        if let Outcome::Complete {
            account, created, ..
        } = outcome
        {
            let status = Status::Complete(Completion {
                account: account.clone(),
                created: *created,
                finished_at: times.finished_at,
                claimable_until: times.claimable_until,
            });
            self.see(Login {
                status,
                ..login.clone()
            });
        }
    }

    /// Forgets a login: what [`Self::seen`] had of it is used.
    pub(crate) fn forget(&self, state: &StateHash) {
        self.seen.invalidate(state);
    }

    /// Inserts a login: a polling login as it begins, a redirect login as a callback claims it; `false` if another callback
    /// has done so. The cost does not depend on the number of pending logins.
    pub(crate) async fn insert(&self, login: &Login, now: Timestamp) -> Result<bool, StoreError> {
        let (mode, begun, hints, return_to) = match &login.mode {
            Mode::Polling { user_code, begun } => (
                "polling",
                Some((user_code, begun)),
                login.hints.encode(),
                None,
            ),
            // Its hints are at the provider by now.
            Mode::Redirect { return_to } => ("redirect", None, None, return_to.as_ref()),
        };
        let (status, claim) = match login.status {
            Status::Exchanging(claim) => ("exchanging", Some(claim)),
            _ => ("pending", None),
        };
        let values = values![
            login.state.hash().as_bytes(),
            login.state.version().as_str(),
            login.application.get(),
            mode,
            login.provider.provider().map(ProviderName::as_str),
            matches!(login.provider, Choice::Users(_)),
            hints,
            begun.map(|(user_code, _)| user_code.as_str()),
            begun.map(|(_, begun)| &*begun.network),
            return_to.map(Url::as_str),
            login.cookie.as_ref().map(CookieHash::as_bytes),
            status,
            claim.map(|claim| claim.until),
            claim.map(|claim| claim.claimable_until),
            now,
            login.expires_at,
        ];
        Ok(self.store.execute(INSERT, values).await? == 1)
    }

    /// Returns the login with this hash of a state or token.
    pub(crate) async fn find(&self, state: &StateHash) -> Result<Option<Login>, StoreError> {
        let values = values![state.as_bytes()];
        self.store.row(&find_statement(), values).await
    }

    /// Finds a login, and remembers it for [`Self::seen`].
    pub(crate) async fn find_and_see(
        &self,
        state: &StateHash,
    ) -> Result<Option<Login>, StoreError> {
        let login = self.find(state).await?;
        if let Some(login) = login.as_ref()
            && let Status::Pending = login.status
        {
            self.see(login.clone());
        }
        Ok(login)
    }

    /// Binds a pending login to the browser with this cookie, and to no other, before it is sent to the provider, which is
    /// this one if the user has chosen it.
    pub(crate) async fn bind(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        chosen: Option<&ProviderName>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let seen = self.seen.remove(state);
        let name = chosen.map(ProviderName::as_str);
        let values = values![state.as_bytes(), cookie.as_bytes(), now, name];
        let is_bound = self.store.execute(BIND, values).await? == 1;
        if let Some(seen) = seen.filter(|_| is_bound) {
            let mut login = Arc::unwrap_or_clone(seen);
            login.cookie = Some(*cookie);
            if let (Choice::Users(before), Some(chosen)) = (&mut login.provider, chosen) {
                *before = Some(chosen.clone());
            }
            self.see(login);
        }
        Ok(is_bound)
    }

    /// Claims a pending polling login for a callback that will call this provider, if the browser with this cookie was sent to
    /// it last.
    pub(crate) async fn claim(
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
        self.forget(state);
        Ok(self.store.execute(CLAIM, values).await? == 1)
    }

    /// Deletes a redirect login that is claimed and not finished, as if there had been no callback.
    pub(crate) async fn unclaim(&self, state: &StateHash) -> Result<(), StoreError> {
        let values = values![state.as_bytes()];
        self.store.execute(UNCLAIM, values).await.map(drop)
    }

    /// Stores the outcome of a claimed login unless its claim has ended, and notifies every process. Only the callback
    /// that holds the claim may call this. Idempotent, since the first response may have been lost.
    pub(crate) async fn finish(
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
                } => ("complete", None, Some(account.id.get()), *created, *ticket),
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
                times.finished_at,
                times.claimable_until,
                deadline,
            ]
        };
        let finish = self
            .store
            .change_at(Changed::Login, (FINISH, "state_hash"), values);
        Ok(finish.await? == 1)
    }

    /// Redeems a ticket and stores its credential, which is valid for `lifetime` from the completion of the login on,
    /// atomically. Idempotent for the same ticket and credential, since the first response may have been lost.
    pub(crate) async fn redeem(
        &self,
        ticket: &TicketHash,
        application: AppId,
        (credential, lifetime): (&Credential, Duration),
        now: Timestamp,
    ) -> Result<Redemption, StoreError> {
        let (hash, login) = (credential.hash(), credential.login_hash());
        let values = values![
            ticket.as_bytes(),
            application.get(),
            now,
            hash.as_bytes(),
            millis(lifetime),
            login.as_bytes(),
        ];
        let keep_in_sqlite = keep("logins WHERE ticket_hash = $1", ["$4", "$5", "$6"]);
        // Postgres cannot infer the types of what a query selects.
        let typed = [
            "CAST($4 AS BYTEA)",
            "CAST($5 AS BIGINT)",
            "CAST($6 AS BYTEA)",
        ];
        let keep = keep("spent", typed);
        let spend_and_keep =
            format!("WITH spent AS ({SPEND}), kept AS ({keep}) SELECT 1 FROM spent");
        let statements = [SPEND, &keep_in_sqlite];
        let redeemed = self
            .store
            .write_in_order::<()>(&statements, &spend_and_keep, values);
        redeemed.await?;
        // It is `Redeemed` if this call, or an earlier one whose response was lost, has redeemed it.
        let query = format!(
            "SELECT {COMPLETION_COLUMNS}, {JOINED}, ticket_used_at, \
                 EXISTS (SELECT 1 FROM credentials WHERE hash = $3) AS is_kept \
             FROM logins JOIN accounts ON accounts.id = account_id \
             WHERE ticket_hash = $1 AND application_id = $2 AND status = 'complete'"
        );
        let values = values![ticket.as_bytes(), application.get(), hash.as_bytes()];
        let redemption = self.store.row(&query, values).await?;
        Ok(redemption.unwrap_or(Redemption::Unknown))
    }

    /// Deletes expired logins, up to `limit` of each of two kinds; returns the larger of the two numbers of rows.
    ///
    /// The kinds are: all logins that expired before `before`, and redirect logins that expired before `now` without being
    /// completed.
    pub(crate) async fn sweep(
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
        let expired = self.store.execute(&expired, values![before]).await?;
        let unfinished =
            delete("expires_at < $1 AND mode = 'redirect' AND status IN ('exchanging', 'failed')");
        let unfinished = self.store.execute(&unfinished, values![now]).await?;
        Ok(expired.max(unfinished))
    }

    /// Returns the key that seals redirect logins in all processes; stores `new` if there is none yet.
    pub(crate) async fn seal_key(
        &self,
        new: SealKey,
        now: Timestamp,
    ) -> Result<SealKey, StoreError> {
        let insert = "INSERT INTO login_keys (name, key, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        let values = values![SEAL_KEY, new.as_bytes(), now];
        self.store.execute(insert, values).await?;
        // Of several processes that start at once, one inserts its key; all read that one.
        let query = "SELECT key FROM login_keys WHERE name = $1";
        let key = self.store.row(query, values![SEAL_KEY]).await?;
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

impl FromRow for Login {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let hash = StateHash(row.get("state_hash")?);
        let hints = row.get::<Option<_>>("hints")?;
        Ok(Self {
            state: LoginState::new(row.parsed("version")?, hash),
            application: row.get("application_id")?,
            mode: mode_from_row(row)?,
            provider: choice_from_row(row)?,
            hints: hints.map_or_else(Hints::default, |query: String| Hints::decode(&query)),
            cookie: row.get::<Option<_>>("cookie_hash")?.map(CookieHash),
            expires_at: row.get("expires_at")?,
            status: status_from_row(row)?,
        })
    }
}

impl FromRow for Completion {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            account: Account::from_row(row)?,
            created: row.get("account_created")?,
            finished_at: row.get("finished_at")?,
            claimable_until: row.get("claimable_until")?,
        })
    }
}

fn choice_from_row(row: &Row<'_>) -> Result<Choice, StoreError> {
    let provider: Option<Parsed<_>> = row.get("login_provider")?;
    let provider = provider.map(|Parsed(name)| name);
    match (row.get("user_chooses")?, provider) {
        (true, provider) => Ok(Choice::Users(provider)),
        (false, Some(provider)) => Ok(Choice::Fixed(provider)),
        (false, None) => Err(StoreError::Malformed("provider")),
    }
}

fn mode_from_row(row: &Row<'_>) -> Result<Mode, StoreError> {
    match &*row.get::<String>("mode")? {
        "redirect" => {
            let return_to: Option<Parsed<_>> = row.get("return_to")?;
            let return_to = return_to.map(|Parsed(address)| address);
            Ok(Mode::Redirect { return_to })
        }
        "polling" => Ok(Mode::Polling {
            user_code: row.parsed("user_code")?,
            begun: Begun {
                at: row.get("begun_at")?,
                network: row.get("network")?,
            },
        }),
        _ => Err(StoreError::Malformed("mode")),
    }
}

fn status_from_row(row: &Row<'_>) -> Result<Status, StoreError> {
    match &*row.get::<String>("status")? {
        "pending" => Ok(Status::Pending),
        "exchanging" => Ok(Status::Exchanging(Claim {
            until: row.get("claimed_until")?,
            claimable_until: row.get("claimable_until")?,
        })),
        "complete" => Completion::from_row(row).map(Status::Complete),
        "failed" => Ok(Status::Failed {
            reason: row.parsed("reason")?,
            claimable_until: row.get("claimable_until")?,
        }),
        _ => Err(StoreError::Malformed("status")),
    }
}

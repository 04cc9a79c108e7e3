//! Logins under way: what is known of each, and the store that moves them on.
//!
//! ```text
//! pending ──claim──► exchanging ──finish or its claim's end──► complete | failed
//!    └── login_ttl ──────┴── login_ttl ──► expired ◄── claim_ttl ──┘
//! ```
//!
//! "Expired" is not stored, nor that a claim ended: both follow from the time. Each other arrow is one conditional
//! write, so of two requests that want the same one exactly one gets it.
//!
//! A polling login, whose beginning is signed, is a row from its beginning on. A redirect login, which a stranger can
//! begin, is in the browser's sealed cookie ([`LoginSeal`]) until its callback claims it: the claim inserts the row.

mod claim;
mod cookie;
mod failure;
mod postgres;
mod rows;
mod seal;
mod sqlite;
mod ticket;
mod token;
mod user_code;
mod waiters;
mod watched;

use std::time::Duration;

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use signpost_kit::clock::Timestamp;
use signpost_store::StoreError;
use url::Url;

pub(crate) use self::cookie::{remove_oldest, set_sealed};
pub use self::{
    claim::{Claim, ClaimTerms},
    cookie::{CookieHash, LoginCookie, login_cookie_value},
    failure::{FailureReason, ParseFailureReasonError},
    postgres::PostgresLogins,
    seal::{LoginSeal, SealKey, SealedRedirect},
    sqlite::SqliteLogins,
    ticket::{Ticket, TicketHash},
    token::{LoginState, LoginToken, StateHash},
    user_code::UserCode,
    waiters::{Waiter, Waiters},
    watched::Logins,
};
use crate::{
    accounts::{Account, AccountId},
    config::ProviderName,
    credentials::CredentialHash,
};

/// A login as the store has it.
#[derive(Clone, Debug)]
pub struct Login {
    /// What it is found by.
    pub state: LoginState,
    /// The application that began it.
    pub application: AppId,
    /// How its outcome comes back.
    pub mode: Mode,
    /// Who is asked.
    pub provider: ProviderName,
    /// The cookie of the browser that was sent to the provider last: the one that may come back.
    pub cookie: Option<CookieHash>,
    /// When it expires unless it is finished.
    pub expires_at: Timestamp,
    /// How far it is.
    pub status: Status,
}

/// How a login's outcome comes back.
#[derive(Clone, Debug)]
pub enum Mode {
    /// With the browser: to `return_to`, or as the answer itself.
    Redirect {
        /// Where the browser goes in the end.
        return_to: Option<Url>,
    },
    /// To whoever holds the token.
    Polling {
        /// Shown on both sides, so that nobody confirms another's login.
        user_code: UserCode,
    },
}

/// How far a login is.
#[derive(Clone, Debug)]
pub enum Status {
    /// Nobody has come back from the provider.
    Pending,
    /// A callback has it: the provider is being asked.
    Exchanging(Claim),
    /// Somebody is logged in.
    Complete(Completion),
    /// It came to nothing.
    Failed {
        /// Why.
        reason: FailureReason,
        /// How long that is told.
        claimable_until: Timestamp,
    },
}

/// What a login came to.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The person.
    pub account: Account,
    /// Whether this login made the account.
    pub created: bool,
    /// When: the credential's lifetime counts from here, so that it is the same whoever issues it.
    pub finished_at: Timestamp,
    /// How long the outcome is told.
    pub claimable_until: Timestamp,
}

/// How a login stands at some time, as its beginner is told.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Not finished.
    Pending {
        /// When that changes by itself.
        until: Timestamp,
    },
    /// Finished well.
    Complete(&'a Completion),
    /// Finished badly.
    Failed(FailureReason),
    /// Too late, for finishing or for asking.
    Expired,
}

impl Login {
    /// How the login stands at `now`.
    #[must_use]
    pub fn progress(&self, now: Timestamp) -> Progress<'_> {
        match &self.status {
            _ if now >= self.answers_until() => Progress::Expired,
            // Its process was killed, or lost the store: it can come to nothing else any more.
            Status::Exchanging(claim) if now >= claim.until => {
                Progress::Failed(FailureReason::ProviderFailed)
            }
            Status::Pending => Progress::Pending {
                until: self.expires_at,
            },
            Status::Exchanging(claim) => Progress::Pending { until: claim.until },
            Status::Complete(completion) => Progress::Complete(completion),
            Status::Failed { reason, .. } => Progress::Failed(*reason),
        }
    }

    /// When the present answer about this login turns into `expired`.
    #[must_use]
    pub fn answers_until(&self) -> Timestamp {
        match &self.status {
            Status::Pending => self.expires_at,
            Status::Exchanging(claim) => claim.claimable_until,
            Status::Complete(completion) => completion.claimable_until,
            Status::Failed {
                claimable_until, ..
            } => *claimable_until,
        }
    }

    /// Whether `cookie` is of the browser that may come back from the provider.
    #[must_use]
    pub fn is_bound_to(&self, cookie: &LoginCookie) -> bool {
        self.cookie.is_some_and(|bound| bound.is_of(cookie))
    }
}

/// A polling login to be begun.
#[derive(Clone, Debug)]
pub struct NewPollingLogin {
    /// The `state` it will be found by.
    pub state: LoginState,
    /// The application that begins it.
    pub application: AppId,
    /// Shown on both sides, so that nobody confirms another's login.
    pub user_code: UserCode,
    /// The provider to ask.
    pub provider: ProviderName,
    /// Now.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// What a login came to, to be stored.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Somebody is logged in.
    Complete {
        /// The person.
        account: AccountId,
        /// Whether this login made the account.
        created: bool,
        /// In redirect mode with a `return_to`: the ticket, and how long it is good.
        ticket: Option<(TicketHash, Timestamp)>,
    },
    /// It came to nothing.
    Failed(FailureReason),
}

/// When an outcome is stored.
#[derive(Clone, Copy, Debug)]
pub struct FinishTimes {
    /// Now.
    pub at: Timestamp,
    /// By then it is stored, or never will be: the claim has to last for longer.
    pub stored_by: Timestamp,
    /// How long the outcome is told.
    pub claimable_until: Timestamp,
}

/// The credential that is given for a ticket.
#[derive(Clone, Copy, Debug)]
pub struct TicketCredential {
    /// What is stored of it.
    pub hash: CredentialHash,
    /// How long it is valid, from when the login was completed.
    pub lifetime: Duration,
}

/// What became of a ticket.
#[derive(Clone, Debug)]
pub enum Redeemed {
    /// It was good, and is spent now; the credential is stored.
    Now(Box<Completion>),
    /// It was spent before.
    Before,
    /// It is too old.
    TooLate,
    /// It was never issued, or to another application.
    Unknown,
}

/// Where logins are kept. Every change is conditional on what was there, and tells whether it happened.
#[async_trait]
pub trait LoginStore: Send + Sync {
    /// Stores a new polling login. Costs the same however many are pending.
    ///
    /// # Errors
    ///
    /// The store cannot be reached; this holds for all that follow.
    async fn begin(&self, login: NewPollingLogin) -> Result<(), StoreError>;

    /// The login of this state or token.
    async fn find(&self, state: &StateHash) -> Result<Option<Login>, StoreError>;

    /// Binds a pending login to the browser that is about to be sent to the provider, in place of an earlier one.
    async fn bind(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Takes a pending polling login out of everybody else's hands, to ask the provider.
    async fn claim(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Stores a redirect login as claimed; `false` if another callback did so before.
    async fn claim_redirect(
        &self,
        login: &Login,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Deletes a redirect login that is claimed and not finished: as if its callback had not come.
    async fn unclaim_redirect(&self, state: &StateHash) -> Result<(), StoreError>;

    /// Stores what a claimed login came to, unless its claim has ended, and tells every process. Only who claimed it
    /// may call this. The same outcome again is answered as the first time: the first answer may have been lost.
    async fn finish(
        &self,
        state: &StateHash,
        outcome: Outcome,
        times: FinishTimes,
    ) -> Result<bool, StoreError>;

    /// Spends a ticket and stores the credential that is given for it: both, or neither. The same two again are
    /// answered as the first time: the first answer may have been lost.
    async fn redeem(
        &self,
        ticket: &TicketHash,
        application: AppId,
        credential: TicketCredential,
        now: Timestamp,
    ) -> Result<Redeemed, StoreError>;

    /// Removes up to `limit` logins that expired before `before`, and up to `limit` redirect logins that expired before
    /// `now` and that no provider vouched for. Returns the larger of the two numbers of removed rows.
    async fn sweep(
        &self,
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError>;

    /// The key that seals redirect logins, the same for every process: `fresh`, unless there is one already.
    async fn seal_key(&self, fresh: SealKey, now: Timestamp) -> Result<SealKey, StoreError>;
}

#[cfg(test)]
mod tests;

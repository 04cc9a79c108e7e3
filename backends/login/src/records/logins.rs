//! Logins in progress: their state machine, and the store that holds it.
//!
//! ```text
//! pending ──claim──► exchanging ──finish, or end of the claim──► complete | failed
//!    └── login_ttl ──────┴── login_ttl ──► expired ◄── claim_ttl ──┘
//! ```
//!
//! "Expired" and the end of a claim are not stored: they follow from the time. Each other transition is one conditional
//! write, so that exactly one of several concurrent requests succeeds.
//!
//! A polling login begins with a signed request, and is a row from its beginning. A redirect login can be begun by
//! anyone. It is in the browser's sealed cookie ([`SealKey`]) until its callback claims it, which inserts the row.

mod claim;
mod cookie;
mod failure;
mod hints;
mod rows;
mod seal;
mod stored;
mod ticket;
mod token;
mod user_code;

use std::{net::IpAddr, time::Duration};

use async_trait::async_trait;
use signpost_kit::{clock::Timestamp, limits::Network};
use signpost_protocol::app::AppId;
use signpost_store::StoreError;
use url::Url;

pub(crate) use self::{
    claim::{Claim, ClaimTimeouts},
    cookie::{BrowserCookie, CookieHash, LoginCookie, remove_oldest},
    failure::FailureReason,
    hints::Hints,
    seal::{SealKey, SealedRedirect},
    ticket::{Ticket, TicketHash},
    token::{LoginState, LoginToken, StateHash},
    user_code::UserCode,
};
use crate::{
    config::ProviderName,
    records::{
        accounts::{Account, AccountId},
        credentials::{CredentialHash, LoginHash},
    },
};

/// A login.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    /// Its key.
    pub(crate) state: LoginState,
    /// The application that began it.
    pub(crate) application: AppId,
    /// How its outcome is delivered.
    pub(crate) mode: Mode,
    /// The provider that the user logs in with.
    pub(crate) provider: Choice,
    /// What goes on to the provider.
    pub(crate) hints: Hints,
    /// The cookie of the browser that was last sent to the provider. Only that browser's callback is accepted.
    pub(crate) cookie: Option<CookieHash>,
    /// When it expires if it is not finished.
    pub(crate) expires_at: Timestamp,
    /// Its state in the state machine.
    pub(crate) status: Status,
}

/// The provider of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The one that the login began with.
    Fixed(ProviderName),
    /// The one that the user chooses on a page; the last choice, if there is one. The user can go back, and choose again.
    Users(Option<ProviderName>),
}

impl Choice {
    /// The provider, as far as it is known.
    pub(crate) const fn provider(&self) -> Option<&ProviderName> {
        match self {
            Self::Fixed(name) => Some(name),
            Self::Users(name) => name.as_ref(),
        }
    }
}

/// How a login's outcome is delivered.
#[derive(Clone, Debug)]
pub(crate) enum Mode {
    /// Through the browser: by a redirect to `return_to`, or as the response to the callback.
    Redirect {
        /// Where the browser is redirected to at the end.
        return_to: Option<Url>,
    },
    /// To the client, which polls with its token.
    Polling {
        /// Shown in the client and in the browser, so that users do not confirm another user's login.
        user_code: UserCode,
        /// Where it was begun, which the browser shows for the same reason.
        begun: Begun,
    },
}

/// When and from where a client began a polling login. RFC 10027.
#[derive(Clone, Debug)]
pub(crate) struct Begun {
    /// When.
    pub(crate) at: Timestamp,
    /// The network around the client's address. The address itself is not stored.
    pub(crate) network: String,
}

impl Begun {
    /// A login that a client begins from this address.
    pub(crate) fn new(client: IpAddr, at: Timestamp) -> Self {
        let network = Network::around(client).to_string();
        Self { at, network }
    }

    /// Whether a browser is in the network. An address of IPv4 and one of IPv6 cannot be compared: a home has both.
    pub(crate) fn is_near(&self, browser: IpAddr) -> Option<bool> {
        let is_v6 = |network: &str| network.contains(':');
        let browser = Network::around(browser).to_string();
        (is_v6(&browser) == is_v6(&self.network)).then(|| browser == self.network)
    }
}

/// The state of a login.
#[derive(Clone, Debug)]
pub(crate) enum Status {
    /// Waits for a callback.
    Pending,
    /// Claimed by a callback that is calling the provider.
    Exchanging(Claim),
    /// The user is logged in.
    Complete(Completion),
    /// The login failed.
    Failed {
        /// The reason.
        reason: FailureReason,
        /// Until when the outcome can be claimed.
        claimable_until: Timestamp,
    },
}

/// The outcome of a completed login.
#[derive(Clone, Debug)]
pub(crate) struct Completion {
    /// The user's account.
    pub(crate) account: Account,
    /// Whether this login created the account.
    pub(crate) created: bool,
    /// When it was completed. The credential's lifetime starts here, so that each backend computes the same expiry.
    pub(crate) finished_at: Timestamp,
    /// Until when the outcome can be claimed.
    pub(crate) claimable_until: Timestamp,
}

/// The status of a login at a point in time, as clients see it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Progress<'a> {
    /// Not finished.
    Pending {
        /// When the status changes without a callback.
        until: Timestamp,
    },
    /// The user is logged in.
    Complete(&'a Completion),
    /// The login failed.
    Failed(FailureReason),
    /// The login was not finished, or its outcome not claimed, in time.
    Expired,
}

impl Login {
    /// Returns the status at `now`.
    pub(crate) fn progress(&self, now: Timestamp) -> Progress<'_> {
        match &self.status {
            _ if now >= self.responds_until() => Progress::Expired,
            // The process was killed, or lost the store. No outcome can be stored after the claim has ended.
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

    /// Returns when the present status changes to `expired`.
    pub(crate) fn responds_until(&self) -> Timestamp {
        match &self.status {
            Status::Pending => self.expires_at,
            Status::Exchanging(claim) => claim.claimable_until,
            Status::Complete(completion) => completion.claimable_until,
            Status::Failed {
                claimable_until, ..
            } => *claimable_until,
        }
    }

    /// Whether `cookie` belongs to the browser whose callback is accepted.
    pub(crate) fn is_bound_to(&self, cookie: &LoginCookie) -> bool {
        self.cookie.is_some_and(|bound| bound.is_hash_of(cookie))
    }
}

/// A polling login to store.
#[derive(Clone, Debug)]
pub(crate) struct NewPollingLogin {
    /// Its key.
    pub(crate) state: LoginState,
    /// The application that begins it.
    pub(crate) application: AppId,
    /// Shown in the client and in the browser, so that users do not confirm another user's login.
    pub(crate) user_code: UserCode,
    /// The provider that the user logs in with; `None`: the user chooses.
    pub(crate) provider: Option<ProviderName>,
    /// What goes on to the provider.
    pub(crate) hints: Hints,
    /// When and from where.
    pub(crate) begun: Begun,
    /// When it expires.
    pub(crate) expires_at: Timestamp,
}

/// The outcome to store for a login.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The user is logged in.
    Complete {
        /// The user's account.
        account: AccountId,
        /// Whether this login created the account.
        created: bool,
        /// For a redirect login with `return_to`: the ticket, and when it expires.
        ticket: Option<(TicketHash, Timestamp)>,
    },
    /// The login failed.
    Failed(FailureReason),
}

/// The times of an outcome to store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FinishTimes {
    /// The current time.
    pub(crate) at: Timestamp,
    /// Latest time at which the write can take effect. The claim must end later.
    pub(crate) deadline: Timestamp,
    /// Until when the outcome can be claimed.
    pub(crate) claimable_until: Timestamp,
}

/// The credential to issue for a ticket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TicketCredential {
    /// The hash under which it is stored.
    pub(crate) hash: CredentialHash,
    /// What it has in common with all credentials of the login.
    pub(crate) login: LoginHash,
    /// Its validity, counted from the completion of the login.
    pub(crate) lifetime: Duration,
}

/// The result of redeeming a ticket.
#[derive(Clone, Debug)]
pub(crate) enum Redemption {
    /// The ticket was redeemed, and the credential stored.
    Redeemed(Box<Completion>),
    /// The ticket was redeemed before.
    AlreadyUsed,
    /// The ticket has expired.
    Expired,
    /// The ticket was not issued, or not to this application.
    Unknown,
}

/// The stored logins. Each change is a conditional write; `false` means that its condition was not met.
#[async_trait]
pub(crate) trait LoginStore: Send + Sync {
    /// Inserts a polling login. The cost does not depend on the number of pending logins.
    ///
    /// # Errors
    ///
    /// The store is unavailable; the same holds for all other functions.
    async fn begin(&self, login: NewPollingLogin) -> Result<(), StoreError>;

    /// Returns the login with this hash of a state or token.
    async fn find(&self, state: &StateHash) -> Result<Option<Login>, StoreError>;

    /// Binds a pending login to the browser with this cookie, and to no other, before it is sent to the provider, which is
    /// this one if the user has chosen it.
    async fn bind(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        chosen: Option<&ProviderName>,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Claims a pending polling login for a callback that will call this provider, if the browser with this cookie was sent to
    /// it last.
    async fn claim(
        &self,
        state: &StateHash,
        cookie: &CookieHash,
        provider: Option<&ProviderName>,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Inserts a redirect login as claimed; `false` if another callback has done so.
    async fn claim_redirect(
        &self,
        login: &Login,
        claim: Claim,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Deletes a redirect login that is claimed and not finished, as if there had been no callback.
    async fn unclaim_redirect(&self, state: &StateHash) -> Result<(), StoreError>;

    /// Stores the outcome of a claimed login unless its claim has ended, and notifies every process. Only the callback
    /// that holds the claim may call this. Idempotent, since the first response may have been lost.
    async fn finish(
        &self,
        state: &StateHash,
        outcome: Outcome,
        times: FinishTimes,
    ) -> Result<bool, StoreError>;

    /// Redeems a ticket and stores its credential, atomically. Idempotent for the same ticket and credential, since the
    /// first response may have been lost.
    async fn redeem(
        &self,
        ticket: &TicketHash,
        application: AppId,
        credential: TicketCredential,
        now: Timestamp,
    ) -> Result<Redemption, StoreError>;

    /// Deletes expired logins, up to `limit` of each of two kinds; returns the larger of the two numbers of rows.
    ///
    /// The kinds are: all logins that expired before `before`, and redirect logins that expired before `now` without being
    /// completed.
    async fn sweep(
        &self,
        before: Timestamp,
        now: Timestamp,
        limit: usize,
    ) -> Result<usize, StoreError>;

    /// Returns the key that seals redirect logins in all processes; stores `new` if there is none yet.
    async fn seal_key(&self, new: SealKey, now: Timestamp) -> Result<SealKey, StoreError>;
}

#[cfg(test)]
mod both_stores;

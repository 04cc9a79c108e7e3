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
mod seal;
mod table;
mod token;

use std::{net::IpAddr, str::FromStr};

use signpost_kit::{clock::Timestamp, limits::Network};
use signpost_protocol::{app::AppId, label_enum};
use url::{Url, form_urlencoded};

pub(crate) use self::{
    claim::{Claim, ClaimTimeouts},
    cookie::{BrowserCookie, CookieHash, LoginCookie, remove_oldest},
    seal::{SealKey, SealedRedirect},
    table::Logins,
    token::{LoginState, LoginToken, StateHash, Ticket, TicketHash, UserCode},
};
use crate::{
    config::{PassedOn, ProviderName},
    records::accounts::Account,
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

impl Mode {
    /// Where the browser of a redirect login is redirected to at the end.
    pub(crate) const fn return_to(&self) -> Option<&Url> {
        match self {
            Self::Redirect { return_to } => return_to.as_ref(),
            Self::Polling { .. } => None,
        }
    }
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
            // First of all: an expiry is not stored, so each status can have outlived its time.
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

/// The outcome to store for a login.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// The user is logged in.
    Complete {
        /// The user's account.
        account: Account,
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
    /// When the login ended: the same for each try.
    pub(crate) finished_at: Timestamp,
    /// When this try begins.
    pub(crate) at: Timestamp,
    /// Latest time at which the write can take effect. The claim must end later.
    pub(crate) deadline: Timestamp,
    /// Until when the outcome can be claimed.
    pub(crate) claimable_until: Timestamp,
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

label_enum! {
    /// Why a login failed, as responses and the store have it. CONTRACT 8.
    pub(crate) enum FailureReason {
        /// The user denied access at the provider.
        AccessDenied = "access_denied",
        /// The provider was unavailable or sent an invalid response.
        ProviderFailed = "provider_failed",
        /// The provider did not respond within 10 s.
        ProviderTimeout = "provider_timeout",
    }
}

impl FromStr for FailureReason {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::from_word(word).ok_or(())
    }
}

/// The values of `prompt` and `login_hint`. CONTRACT 8.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Hints(Vec<(PassedOn, String)>);

impl Hints {
    /// Longest `login_hint` in bytes: an address has up to 254 (RFC 5321), and the sealed cookie must stay below 4 KB.
    pub(crate) const MAX_LOGIN_HINT: usize = 254;

    /// Adds the value of a parameter.
    pub(crate) fn add(&mut self, parameter: PassedOn, value: String) {
        self.0.push((parameter, value));
    }

    /// The value of a parameter.
    pub(crate) fn get(&self, parameter: PassedOn) -> Option<&str> {
        let mut all = self.0.iter();
        all.find_map(|(name, value)| (*name == parameter).then_some(value.as_str()))
    }

    /// As a query, for the store and the cookie; `None` if there are none.
    pub(crate) fn encode(&self) -> Option<String> {
        let pairs = self.0.iter().map(|(name, value)| (name.as_str(), value));
        let mut query = form_urlencoded::Serializer::new(String::new());
        let query = query.extend_pairs(pairs).finish();
        (!query.is_empty()).then_some(query)
    }

    /// Reads what [`Self::encode`] has written.
    pub(crate) fn decode(query: &str) -> Self {
        let pairs = form_urlencoded::parse(query.as_bytes());
        // A cookie or row of another release can have names that this one does not know.
        let known = pairs
            .filter_map(|(name, value)| Some((PassedOn::from_word(&name)?, value.into_owned())));
        Self(known.collect())
    }
}

// They can name a person.
signpost_protocol::hide_in_debug!(Hints);

#[cfg(test)]
mod both_stores;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_reads_back() {
        let reason = FailureReason::ProviderTimeout;
        assert_eq!(reason.as_str().parse::<FailureReason>().unwrap(), reason);
        assert!("other".parse::<FailureReason>().is_err());
    }

    #[test]
    fn hints_read_back() {
        assert_eq!(Hints::default().encode(), None);
        let mut hints = Hints::default();
        hints.add(PassedOn::LoginHint, "ada+1@example.org & é".to_owned());
        hints.add(PassedOn::Prompt, "login".to_owned());
        let back = Hints::decode(&hints.encode().unwrap());
        assert!(back == hints);
        assert_eq!(back.get(PassedOn::LoginHint), Some("ada+1@example.org & é"));
        assert!(Hints::decode("other=1&x") == Hints::default());
        assert!(!format!("{hints:?}").contains("ada"));
    }
}

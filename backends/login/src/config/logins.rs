//! Settings of logins: the single application, polling, and how long everything lives.

use std::time::Duration;

use signpost_kit::{
    config::{Read, Section, origin::Origin},
    read_all,
};
use signpost_protocol::app::shown_name;

/// Limit of a name's length in characters.
const MAX_NAME_LENGTH: usize = 100;
const DAY: u64 = 24 * 60 * 60;
/// Feels immediate to users, and keeps the load of many clients low.
const INTERVAL_SECONDS: u64 = 2;
/// Default of `login_ttl_seconds`. CONTRACT 8.
const LOGIN_SECONDS: u64 = 10 * 60;
/// Default of `claim_ttl_seconds`. CONTRACT 8.
const CLAIM_SECONDS: u64 = 2 * 60;
/// Fixed. CONTRACT 8.
const TICKET: Duration = Duration::from_secs(60);
/// Default of `credential_ttl_seconds`. CONTRACT 8.
const CREDENTIAL_SECONDS: u64 = 30 * DAY;
/// Default of `renewal_ttl_seconds`. CONTRACT 8.
const RENEWAL_SECONDS: u64 = 180 * DAY;
/// Default of `retention_days`: one full year.
const EVENT_DAYS: u64 = 366;

/// The application of single-application mode. In multi-application mode, the store has these values.
#[derive(Clone, Debug)]
pub struct SingleApplication {
    /// Its name, shown to users. 1 to 100 visible characters.
    pub name: String,
    /// Origins that logins may return to; default none.
    pub return_to: Vec<Origin>,
}

impl SingleApplication {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        let allowed = "1 to 100 visible characters";
        let origins = "origins, for example \"https://app.example\"";
        read_all!(Self {
            name: section.parsed_by("name", "Signpost", allowed, |name| {
                shown_name(name, MAX_NAME_LENGTH).map(str::to_owned)
            }),
            return_to: section.list("return_to", &[], origins, |origin| origin.parse().ok()),
        })
    }
}

/// Settings of polling logins.
#[derive(Clone, Copy, Debug)]
pub struct Polling {
    /// Whether the page asks the user to confirm; default true. CONTRACT 8.
    pub confirm: bool,
    /// The `interval` that clients should wait between two checks. 1 s to 60 s, default 2 s.
    pub interval: Duration,
}

impl Polling {
    pub(super) fn read(section: &mut Section<'_>) -> Read<Self> {
        read_all!(Self {
            confirm: section.flag("confirm", true),
            interval: section.seconds("interval_seconds", 1..=60, INTERVAL_SECONDS),
        })
    }
}

/// What holds if the browser of a polling login is not in the network where the login was begun. CONTRACT 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameNetwork {
    /// The page warns; the default.
    Warn,
    /// The browser cannot confirm.
    Require,
}

/// The lifetimes. CONTRACT 8.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// Time to finish a login; then it expires. 1 s to 1 h, default 10 min.
    pub login: Duration,
    /// Time in which a client can claim the outcome of a finished login. 1 s to 1 h, default 2 min.
    pub claim: Duration,
    /// Time in which a ticket can be redeemed: 60 s.
    pub ticket: Duration,
    /// Validity of a credential. 1 s to 366 d, default 30 d.
    pub credential: Duration,
    /// Age of a login up to which renewals prolong it. 1 s to 3660 d, default 180 d.
    pub renewal: Duration,
    /// Retention of events. 1 d to 3660 d, default 366 d; `None`: no limit.
    pub event: Option<Duration>,
}

impl Lifetimes {
    /// Reads `[login]`, whose other key is returned, too, and `[events]`.
    pub(super) fn read(root: &mut Section<'_>) -> Read<(Self, SameNetwork)> {
        let login = root.section("login", |section| {
            let rules = [
                ("warn", SameNetwork::Warn),
                ("require", SameNetwork::Require),
            ];
            let same_network = section.choice("same_network", &rules, SameNetwork::Warn);
            let mut seconds = |key, default, max| section.seconds(key, 1..=max, default);
            let lifetimes = read_all!(Self {
                login: seconds("login_ttl_seconds", LOGIN_SECONDS, 3600),
                claim: seconds("claim_ttl_seconds", CLAIM_SECONDS, 3600),
                ticket: Ok(TICKET),
                credential: seconds("credential_ttl_seconds", CREDENTIAL_SECONDS, 366 * DAY),
                renewal: seconds("renewal_ttl_seconds", RENEWAL_SECONDS, 3660 * DAY),
                event: Ok(None),
            });
            Ok((lifetimes?, same_network?))
        });
        let event_days = root.section("events", |section| {
            section.number("retention_days", 0..=3660, EVENT_DAYS)
        });
        let event = event_days.map(|days| (days > 0).then(|| Duration::from_secs(days * DAY)));
        let (event, (lifetimes, same_network)) = (event?, login?);
        Ok((Self { event, ..lifetimes }, same_network))
    }
}

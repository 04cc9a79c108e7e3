//! Lifetimes of logins, tickets, credentials and events.

use std::time::Duration;

use signpost_kit::config::{Read, Section};

/// Default of `login_ttl_seconds`. CONTRACT 8.
const LOGIN_SECONDS: u64 = 10 * 60;
/// Default of `claim_ttl_seconds`. CONTRACT 8.
const CLAIM_SECONDS: u64 = 2 * 60;
/// Fixed. CONTRACT 8.
const TICKET: Duration = Duration::from_secs(60);
/// Default of `credential_ttl_seconds`. CONTRACT 8.
const CREDENTIAL_SECONDS: u64 = 30 * 24 * 60 * 60;
/// Default of `retention_days`: one full year.
const EVENT_DAYS: u64 = 366;

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
    /// Retention of events. 1 d to 3660 d, default 366 d; `None`: no limit.
    pub event: Option<Duration>,
}

impl Lifetimes {
    /// Reads `[login]` and `[events]`.
    pub(super) fn read(root: &mut Section<'_>) -> Read<Self> {
        let login = root.section("login", |section| {
            let mut seconds = |key, default, max| section.seconds(key, 1..=max, default);
            let login = seconds("login_ttl_seconds", LOGIN_SECONDS, 3600);
            let claim = seconds("claim_ttl_seconds", CLAIM_SECONDS, 3600);
            let credential = seconds(
                "credential_ttl_seconds",
                CREDENTIAL_SECONDS,
                366 * 24 * 3600,
            );
            Ok((login?, claim?, credential?))
        });
        let event_days = root.section("events", |section| {
            section.number("retention_days", 0..=3660, EVENT_DAYS)
        });
        let ((login, claim, credential), event_days) = (login?, event_days?);
        Ok(Self {
            login,
            claim,
            ticket: TICKET,
            credential,
            event: (event_days > 0).then(|| Duration::from_secs(event_days * 24 * 3600)),
        })
    }
}

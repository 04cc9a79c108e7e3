//! How long logins, tickets and credentials last.

use std::time::Duration;

use signpost_kit::config::{Read, Section};

/// From the beginning of a login to its end at the provider. CONTRACT 8.
const LOGIN_SECONDS: u64 = 10 * 60;
/// How long the outcome is told. CONTRACT 8.
const CLAIM_SECONDS: u64 = 2 * 60;
/// CONTRACT 8: fixed.
const TICKET: Duration = Duration::from_secs(60);
/// How long a person stays logged in. CONTRACT 8.
const CREDENTIAL_SECONDS: u64 = 30 * 24 * 60 * 60;

/// How long events are kept: a year's comparison.
const EVENT_DAYS: u64 = 366;

/// The lifetimes. CONTRACT 8.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// A login that is pending for this long has expired. 1 s to 1 h, default 10 min.
    pub login: Duration,
    /// A polling login's outcome is told for this long. 1 s to 1 h, default 2 min.
    pub claim: Duration,
    /// A ticket is good for this long: 60 s.
    pub ticket: Duration,
    /// A credential is valid for this long. 1 s to 366 d, default 30 d.
    pub credential: Duration,
    /// An event is kept for this long. 1 d to 10 years, default 366 d; `None`: for ever.
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

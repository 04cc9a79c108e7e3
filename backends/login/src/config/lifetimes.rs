//! How long logins, tickets and credentials last.

use std::time::Duration;

use super::{problems::Problems, raw::RawLogin};

/// From the beginning of a login to its end at the provider. CONTRACT 8.
const LOGIN_SECONDS: u64 = 10 * 60;
/// How long the outcome is told. CONTRACT 8.
const CLAIM_SECONDS: u64 = 2 * 60;
/// CONTRACT 8: fixed.
const TICKET: Duration = Duration::from_secs(60);
/// How long a person stays logged in. CONTRACT 8.
const CREDENTIAL_SECONDS: u64 = 30 * 24 * 60 * 60;

/// The four lifetimes. CONTRACT 8.
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
}

impl Lifetimes {
    pub(super) fn read(raw: RawLogin, problems: &mut Problems) -> Self {
        let mut seconds = |key: &str, given, default, most| {
            Duration::from_secs(problems.within(&format!("login.{key}"), given, default, 1..=most))
        };
        Self {
            login: seconds(
                "login_ttl_seconds",
                raw.login_ttl_seconds,
                LOGIN_SECONDS,
                3600,
            ),
            claim: seconds(
                "claim_ttl_seconds",
                raw.claim_ttl_seconds,
                CLAIM_SECONDS,
                3600,
            ),
            ticket: TICKET,
            credential: seconds(
                "credential_ttl_seconds",
                raw.credential_ttl_seconds,
                CREDENTIAL_SECONDS,
                366 * 24 * 3600,
            ),
        }
    }
}

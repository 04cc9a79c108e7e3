//! How long a callback has the login that it claimed, and when it is too late to finish.

use std::time::Duration;

use signpost_kit::clock::Timestamp;
use signpost_store::{SqliteDatabase, StoreAddress, StoreSettings};

use super::{Login, Status};

/// CONTRACT 8: nothing that a provider is asked takes longer.
const PROVIDER: Duration = Duration::from_secs(10);
/// Also what two machines' clocks may differ by has room in it.
const LEAST: Duration = Duration::from_secs(30);
/// What the disk may need for a commit, beyond the one deadline of a call to SQLite.
const SQLITE_COMMIT: Duration = Duration::from_secs(1);
/// What a call to Postgres may take beyond its own limits, for the answer's way.
const GRACE: Duration = Duration::from_millis(500);

/// How long callbacks have the logins that they claim.
#[derive(Clone, Copy, Debug)]
pub struct ClaimTerms {
    /// Whoever has not finished after this long never will.
    length: Duration,
    /// Longest that the store takes to do what it is asked.
    call: Duration,
}

impl ClaimTerms {
    /// With a store that is spoken to like this. A callback asks the provider, and the store to claim the login, for
    /// the account, and to store the outcome.
    #[must_use]
    pub fn of(store: &StoreSettings) -> Self {
        let call = match store.address {
            StoreAddress::Sqlite(_) => SqliteDatabase::CALL_TIMEOUT + SQLITE_COMMIT,
            StoreAddress::Postgres(_) => store.postgres.wait + store.postgres.statement + GRACE,
        };
        Self {
            length: LEAST.max(PROVIDER + 3 * call),
            call,
        }
    }

    /// A claim from `now` on, of a login that expires at `expires_at`. If that comes first there is nothing to tell:
    /// the login has expired like any that was not finished in time.
    #[must_use]
    pub fn begin(self, now: Timestamp, expires_at: Timestamp, claim_ttl: Duration) -> Claim {
        let until = now.plus(self.length);
        if until < expires_at {
            Claim {
                until,
                claimable_until: until.plus(claim_ttl),
            }
        } else {
            Claim {
                until: expires_at,
                claimable_until: expires_at,
            }
        }
    }

    /// When an outcome is stored that is sent to the store at `now`, at the latest. Nobody may be told that a claim has
    /// failed which is finished afterwards; where it ends with its login, what is told is `expired`, and the last
    /// seconds of a login count as well.
    #[must_use]
    pub fn stored_by(self, login: &Login, now: Timestamp) -> Timestamp {
        match login.status {
            Status::Exchanging(claim) if claim.until < login.expires_at => now.plus(self.call),
            _ => now,
        }
    }
}

/// A callback's hold on a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// It finishes before this, or never: then the login has failed.
    pub until: Timestamp,
    /// That failure is told up to then, for as long as any other.
    pub claimable_until: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn terms(address: &str, seconds: u64) -> ClaimTerms {
        let mut store = StoreSettings::new(address.parse().unwrap());
        store.postgres.wait = Duration::from_secs(seconds);
        store.postgres.statement = Duration::from_secs(seconds);
        ClaimTerms::of(&store)
    }

    #[test]
    fn a_claim_ends_after_its_term_or_with_its_login() {
        let terms = terms("sqlite:x.db", 60);
        let claim = |now, expires_at| terms.begin(now, expires_at, Duration::from_secs(120));
        let (until, claimable_until) = (at(30), at(150));
        assert_eq!(
            claim(at(0), at(600)),
            Claim {
                until,
                claimable_until
            }
        );
        let end = Claim {
            until: at(600),
            claimable_until: at(600),
        };
        assert_eq!(claim(at(570), at(600)), end);
        assert_eq!(claim(at(599), at(600)), end);
    }

    #[test]
    fn a_store_that_is_waited_for_longer_makes_claims_longer() {
        for (seconds, length, call) in [(3, 30_000, 6_500), (60, 371_500, 120_500)] {
            let terms = terms("postgres://localhost/x", seconds);
            assert_eq!(terms.length.as_millis(), length);
            assert_eq!(terms.call.as_millis(), call);
        }
    }
}

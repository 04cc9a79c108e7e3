//! Claims: how long a callback holds a login, and until when it can store an outcome.

use std::time::Duration;

use signpost_kit::clock::Timestamp;
use signpost_store::{SqliteDatabase, StoreAddress, StoreSettings};

use super::{Login, Status};

/// Timeout of the calls to a provider. CONTRACT 8.
const PROVIDER_TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum length of a claim. It leaves room for clocks of two machines that differ.
const MIN_CLAIM: Duration = Duration::from_secs(30);
/// Time that a commit to disk can take beyond the timeout of a call to SQLite.
const COMMIT_MARGIN: Duration = Duration::from_secs(1);
/// Time that a call to Postgres can take beyond its timeouts, for the network.
const NETWORK_MARGIN: Duration = Duration::from_millis(500);

/// The length of claims, and the time that storing an outcome can take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimTimeouts {
    /// Length of a claim. A callback that has not finished by then cannot finish any more.
    length: Duration,
    /// Longest time that a call to the store can take.
    call: Duration,
}

impl ClaimTimeouts {
    /// Computes the timeouts for a store with these settings. A callback calls the provider, and the store three times:
    /// to claim the login, for the account, and to store the outcome.
    pub(crate) fn for_store(store: &StoreSettings) -> Self {
        let call = match store.address {
            StoreAddress::Sqlite(_) => SqliteDatabase::CALL_TIMEOUT + COMMIT_MARGIN,
            StoreAddress::Postgres(_) => {
                store.postgres.wait + store.postgres.statement + NETWORK_MARGIN
            }
        };
        Self {
            length: MIN_CLAIM.max(PROVIDER_TIMEOUT + 3 * call),
            call,
        }
    }

    /// Creates a claim that starts at `now`, of a login that expires at `expires_at`. If the login expires before the
    /// claim ends, both end then. The status is then `expired`, like any login that was not finished in time.
    pub(crate) fn new_claim(
        self,
        now: Timestamp,
        expires_at: Timestamp,
        claim_ttl: Duration,
    ) -> Claim {
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

    /// Returns the latest time at which an outcome that is sent to the store at `now` can be written.
    ///
    /// The claim must end later, so that a login that was reported as failed cannot complete afterwards. A claim that
    /// ends with its login is exempt: its status then is `expired`, and the last seconds of a login should be usable.
    pub(crate) fn store_deadline(self, login: &Login, now: Timestamp) -> Timestamp {
        match login.status {
            Status::Exchanging(claim) if claim.until < login.expires_at => now.plus(self.call),
            _ => now,
        }
    }
}

/// A callback's exclusive hold on a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// When the claim ends. If there is no outcome by then, the login has failed.
    pub(crate) until: Timestamp,
    /// Until when that failure can be claimed, as long as any other outcome.
    pub(crate) claimable_until: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn timeouts(address: &str, seconds: u64) -> ClaimTimeouts {
        let mut store = StoreSettings::new(address.parse().unwrap());
        store.postgres.wait = Duration::from_secs(seconds);
        store.postgres.statement = Duration::from_secs(seconds);
        ClaimTimeouts::for_store(&store)
    }

    #[test]
    fn a_claim_ends_after_its_length_or_with_its_login() {
        let timeouts = timeouts("sqlite:x.db", 60);
        let claim = |now, expires_at| timeouts.new_claim(now, expires_at, Duration::from_secs(120));
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
    fn longer_timeouts_of_the_store_lengthen_claims() {
        for (seconds, length, call) in [(3, 30_000, 6_500), (60, 371_500, 120_500)] {
            let timeouts = timeouts("postgres://localhost/x", seconds);
            assert_eq!(timeouts.length.as_millis(), length);
            assert_eq!(timeouts.call.as_millis(), call);
        }
    }
}

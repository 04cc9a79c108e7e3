//! How often requests that nobody signed may come: by the client's network, as CONTRACT 3, 7 and 8 say.
//!
//! Signed requests are never counted, so that no flood of strangers refuses one. The rule is GCRA, the generic cell rate
//! algorithm: each request costs its network the time that its rate gives for one, and a network whose debt is larger
//! than its burst waits. Of each network one number is kept, the time at which its debt is paid.
//!
//! Memory is fixed: [`TRACKED_NETWORKS`] networks, 1.1 MB, allocated at the start. A network whose debt is paid is as good
//! as unknown. If more than that are in debt at once, a new one takes the place of the one that owes least among the
//! eight that share a set with it: that one begins anew, sooner than it should have by what it owed. So no network is
//! refused because of how many others there are, and the ones that are remembered longest are those that flood.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use gateway_protocol::{param::Params, sign::SIGN};

use crate::{
    config::{Rate, SignConfig, UnsignedLimits},
    request::Target,
};

/// Networks that are tracked at the same time.
pub const TRACKED_NETWORKS: usize = SETS * WAYS;
/// A set is found by a network's hash under a key of this process, so nobody can aim at one. Each has a lock of its own.
const SETS: usize = 8192;
/// Slots of a set.
const WAYS: usize = 8;

/// Whether a request counts: a GET without `sign` where browsers come to. What carries a sign is verified, and costs no
/// backend anything if it is wrong.
#[must_use]
pub fn is_unsigned(method: &[u8], target: Target<'_>, config: &SignConfig) -> bool {
    let is_target = |path: &String| path == target.path;
    method == b"GET"
        && (config.callback_paths.iter().any(is_target)
            || config.browser_paths.iter().any(is_target))
        && !target.query.split('&').any(is_sign)
}

/// Whether a pair of a query is `sign`, by its decoded key as CONTRACT 3 has it.
fn is_sign(pair: &str) -> bool {
    let params = Params::parse(pair.as_bytes(), b"", 1);
    params.is_ok_and(|params| params.iter().any(|param| param.is_named(SIGN.as_bytes())))
}

/// Counts unsigned requests by network.
#[derive(Debug)]
pub struct AddressLimiter {
    network: Pace,
    site: Pace,
    sets: Box<[Mutex<[Slot; WAYS]>]>,
    hasher: RandomState,
    started: Instant,
}

/// A rate in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// What one request costs.
    cost: u64,
    /// How much a network may owe.
    credit: u64,
}

/// A network, and what it owes.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Its hash. That two of some 2^16 share one of 2^64 does not happen.
    network: u64,
    /// When its debt is paid, in nanoseconds since the start.
    paid_at: u64,
}

/// A network of clients that are counted as one.
#[derive(Hash)]
enum Network {
    /// One IPv4 address.
    Address([u8; 4]),
    /// An IPv6 /64: what one household or one machine has at least.
    Subnet([u8; 8]),
    /// An IPv6 /48.
    Site([u8; 6]),
}

/// Too many unsigned requests came from a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// When the next one is served, if none comes before.
    pub retry_after: Duration,
}

impl AddressLimiter {
    /// Nobody has called by `now`, which is the earliest time that it is ever asked about.
    #[must_use]
    pub fn new(limits: &UnsignedLimits, now: Instant) -> Self {
        Self {
            network: Pace::new(limits.network),
            site: Pace::new(limits.site),
            sets: (0..SETS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            started: now,
        }
    }

    /// Counts a request of `client`.
    ///
    /// Costs no allocation, and the locks of one set or two.
    ///
    /// # Errors
    ///
    /// Its network, or the IPv6 /48 around it, has used up its burst. Refused requests are not counted against either,
    /// so that one network in a /48 takes no more of it than its own share.
    pub fn count(&self, client: IpAddr, now: Instant) -> Result<(), TooMany> {
        let now = u64::try_from(now.saturating_duration_since(self.started).as_nanos());
        let now = now.unwrap_or(u64::MAX / 2);
        match client.to_canonical() {
            IpAddr::V4(address) => {
                self.take(&Network::Address(address.octets()), self.network, now)
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                self.take(
                    &Network::Subnet([a, b, c, d, e, f, g, h]),
                    self.network,
                    now,
                )?;
                self.take(&Network::Site([a, b, c, d, e, f]), self.site, now)
            }
        }
    }

    fn take(&self, network: &Network, pace: Pace, now: u64) -> Result<(), TooMany> {
        let network = self.hasher.hash_one(network);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower bits of a hash are as good as any"
        )]
        let set = &self.sets[network as usize % SETS];
        let mut slots = set.lock().unwrap_or_else(PoisonError::into_inner);
        let known = slots.iter().position(|slot| slot.network == network);
        let place = known.unwrap_or_else(|| {
            let owed = |place: &usize| slots[*place].paid_at;
            let least = (0..WAYS).min_by_key(owed).unwrap_or_default();
            slots[least] = Slot {
                network,
                paid_at: 0,
            };
            least
        });
        let paid_at = slots[place].paid_at.max(now) + pace.cost;
        let owed = paid_at - now;
        if owed > pace.credit {
            let retry_after = Duration::from_nanos(owed - pace.credit);
            return Err(TooMany { retry_after });
        }
        slots[place].paid_at = paid_at;
        Ok(())
    }
}

impl Pace {
    fn new(rate: Rate) -> Self {
        let cost = 1_000_000_000 / u64::from(rate.per_second.get());
        Self {
            cost,
            credit: cost * u64::from(rate.burst.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{limits, sign_config};

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// 10 a second and 5 at once from a network, 20 and 8 from a /48.
    fn limiter(now: Instant) -> AddressLimiter {
        let limits = limits(
            "[limits.unsigned]\nper_second = 10\nburst = 5\nipv6_48_per_second = 20\nipv6_48_burst = 8",
        );
        AddressLimiter::new(&limits.unsigned.unwrap(), now)
    }

    /// How many of so many requests at once are served, and what the last one is told.
    fn served(
        limiter: &AddressLimiter,
        client: &str,
        requests: usize,
        now: Instant,
    ) -> (usize, Option<TooMany>) {
        let client = client.parse().unwrap();
        let told: Vec<_> = (0..requests).map(|_| limiter.count(client, now)).collect();
        let served = told.iter().filter(|told| told.is_ok()).count();
        (served, told.last().and_then(|told| told.err()))
    }

    #[test]
    fn a_network_has_its_burst_and_then_its_rate() {
        let start = Instant::now();
        let limiter = limiter(start);
        let (count, told) = served(&limiter, "192.0.2.1", 9, start);
        assert_eq!(count, 5);
        assert_eq!(told.unwrap().retry_after, 100 * MILLISECOND);
        assert_eq!(
            served(&limiter, "192.0.2.1", 9, start + 99 * MILLISECOND).0,
            0
        );
        assert_eq!(
            served(&limiter, "192.0.2.1", 9, start + 100 * MILLISECOND).0,
            1
        );
        assert_eq!(
            served(&limiter, "192.0.2.1", 9, start + 400 * MILLISECOND).0,
            3
        );
        let rested = start + Duration::from_secs(3600);
        assert_eq!(served(&limiter, "192.0.2.1", 9, rested).0, 5);
    }

    #[test]
    fn networks_are_counted_apart() {
        let now = Instant::now();
        let limiter = limiter(now);
        for (client, count) in [
            ("192.0.2.1", 5),
            ("192.0.2.2", 5),
            // The same address in IPv6's clothes.
            ("::ffff:192.0.2.2", 0),
            ("2001:db8:0:1::1", 5),
            // The same /64, and another one of the same /48, which has 8.
            ("2001:db8:0:1:ffff::2", 0),
            ("2001:db8:0:2::1", 3),
            ("2001:db8:0:3::1", 0),
            ("2001:db8:1:1::1", 5),
        ] {
            assert_eq!(served(&limiter, client, 9, now).0, count, "{client}");
        }
    }

    #[test]
    fn a_refused_subnet_takes_nothing_from_its_site() {
        let now = Instant::now();
        let limiter = limiter(now);
        assert_eq!(served(&limiter, "2001:db8:0:1::1", 1000, now).0, 5);
        assert_eq!(served(&limiter, "2001:db8:0:2::1", 9, now).0, 3);
    }

    #[test]
    fn more_networks_than_are_tracked_refuse_nobody() {
        let now = Instant::now();
        let limiter = limiter(now);
        assert_eq!(served(&limiter, "192.0.2.1", 9, now).0, 5);
        for number in 0..3 * u32::try_from(TRACKED_NETWORKS).unwrap() {
            let stranger = IpAddr::from((0x0b00_0000 + number).to_be_bytes());
            assert_eq!(limiter.count(stranger, now), Ok(()), "{stranger}");
        }
        // Who owes most stays.
        assert_eq!(served(&limiter, "192.0.2.1", 9, now).0, 0);
    }

    #[test]
    fn only_a_get_without_a_sign_where_browsers_come_to_counts() {
        let config = sign_config("callback_paths = ['/back']\nbrowser_paths = ['/login']");
        let counts = |method: &str, target: &str| {
            is_unsigned(
                method.as_bytes(),
                Target::parse(target.as_bytes()).unwrap(),
                &config,
            )
        };
        for target in [
            "/login",
            "/login?provider=x",
            "/login?time=1&signs=2",
            "/back?state=a&code=b",
            "/login?%zz",
        ] {
            assert!(counts("GET", target), "{target}");
            assert!(!counts("POST", target), "{target}");
        }
        for target in [
            "/login?sign=",
            "/login?a=1&sign=0",
            "/login?a=1&s%69gn=0",
            "/user",
            "/check?state=a",
        ] {
            assert!(!counts("GET", target), "{target}");
        }
    }
}

//! Rate limits by key, in fixed memory: the generic cell rate algorithm (GCRA).
//!
//! Each event adds one interval of the rate to its key's debt; time pays the debt off. An event that would raise the
//! debt above the burst is rejected. Per key one number is stored: the time at which its debt is paid.
//!
//! Memory is fixed: [`TRACKED_KEYS`] keys, 1.1 MB, allocated at the start. A key whose debt is paid need not be stored.
//! If more keys than that are in debt at once, a new key evicts the one with the least debt among the eight of its set,
//! and that debt is forgiven. So no key is rejected because of the number of other keys, and the keys that send most
//! stay longest.
//!
//! Rates can change while the debts stay: a limiter with other rates shares the debts of the one it was created from.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Number of keys with a debt that are tracked at the same time.
pub const TRACKED_KEYS: usize = SETS * WAYS;
/// Number of sets, each with its own lock. A key's set depends on a hash with a secret of this process, so that no
/// client can target a set.
const SETS: usize = 8192;
/// Number of slots in a set.
const WAYS: usize = 8;

/// An allowed rate of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Sustained rate, in events per second.
    pub per_second: NonZeroU32,
    /// Events allowed at once, after a pause long enough to pay off all debt.
    pub burst: NonZeroU32,
}

impl Rate {
    /// Creates a rate; `None` if a number is 0.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Option<Self> {
        Some(Self {
            per_second: NonZeroU32::new(per_second)?,
            burst: NonZeroU32::new(burst)?,
        })
    }

    /// A rate and burst `factor` times as high.
    #[must_use]
    pub fn times(self, factor: NonZeroU32) -> Self {
        Self {
            per_second: self.per_second.saturating_mul(factor),
            burst: self.burst.saturating_mul(factor),
        }
    }
}

/// An event exceeds the rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateExceeded {
    /// Time until an event is allowed again.
    pub retry_after: Duration,
}

/// The value of `Retry-After` (RFC 9110 section 10.2.3): whole seconds, rounded up. At least 1, since 0 would ask for a retry
/// at once.
#[must_use]
pub fn retry_after_seconds(wait: Duration) -> u64 {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    u64::try_from(seconds).unwrap_or(u64::MAX)
}

/// A rate limiter with the same rate for every key.
#[derive(Debug)]
pub struct RateLimiter {
    pace: Pace,
    debts: Arc<Debts>,
}

impl RateLimiter {
    /// Creates a limiter without debts. No later call may have an earlier time than `now`.
    #[must_use]
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self {
            pace: Pace::new(rate),
            debts: Arc::new(Debts::new(now)),
        }
    }

    /// A limiter with another rate and the same debts. A debt above the new burst is reduced to it.
    #[must_use]
    pub fn with_rate(&self, rate: Rate) -> Self {
        Self {
            pace: Pace::new(rate),
            debts: Arc::clone(&self.debts),
        }
    }

    /// Counts an event of `key`. Costs no allocation, and the lock of one set.
    ///
    /// # Errors
    ///
    /// The key has used up its burst. A rejected event is not counted.
    pub fn count(&self, key: &impl Hash, now: Instant) -> Result<(), RateExceeded> {
        self.debts.take(key, self.pace, now)
    }
}

/// A rate limiter with a rate for each client network, and a higher one for each site.
#[derive(Debug)]
pub struct NetworkLimiter {
    network: Pace,
    site: Pace,
    debts: Arc<Debts>,
}

impl NetworkLimiter {
    /// Creates a limiter without debts. No later call may have an earlier time than `now`.
    #[must_use]
    pub fn new(network: Rate, site: Rate, now: Instant) -> Self {
        Self {
            network: Pace::new(network),
            site: Pace::new(site),
            debts: Arc::new(Debts::new(now)),
        }
    }

    /// A limiter with other rates and the same debts, as [`RateLimiter::with_rate`].
    #[must_use]
    pub fn with_rates(&self, network: Rate, site: Rate) -> Self {
        Self {
            network: Pace::new(network),
            site: Pace::new(site),
            debts: Arc::clone(&self.debts),
        }
    }

    /// Counts an event of `client`. Costs no allocation, and the locks of one set or two.
    ///
    /// # Errors
    ///
    /// Its network, or the IPv6 /48 around it, has used up its burst. A rejected event counts against neither, so that
    /// a network in a /48 takes no more than its own share.
    pub fn count(&self, client: IpAddr, now: Instant) -> Result<(), RateExceeded> {
        let network = Network::from_client(client);
        self.debts.take(&network, self.network, now)?;
        match Network::from_site(client) {
            // An IPv4 address is its own site, which has been counted.
            site if site == network => Ok(()),
            site => self
                .debts
                .take(&site, self.site, now)
                .inspect_err(|_| self.debts.give_back(&network, self.network)),
        }
    }
}

/// A network of clients that share one rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    /// Prefix length in bits: a /64 and the /48 around it can have the same address.
    prefix: u8,
}

impl Network {
    /// The client's network: an IPv4 address, or an IPv6 /64, which one household or machine has at least.
    #[must_use]
    pub fn from_client(client: IpAddr) -> Self {
        Self::with_prefix(client, 64)
    }

    /// The client's site: an IPv4 address, or an IPv6 /48.
    #[must_use]
    pub fn from_site(client: IpAddr) -> Self {
        Self::with_prefix(client, 48)
    }

    fn with_prefix(client: IpAddr, prefix: u8) -> Self {
        match client.to_canonical() {
            IpAddr::V4(address) => Self {
                address: address.into(),
                prefix: 32,
            },
            IpAddr::V6(address) => Self {
                address: Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - prefix)))
                    .into(),
                prefix,
            },
        }
    }
}

/// The debts of all keys.
#[derive(Debug)]
struct Debts {
    sets: Box<[Mutex<[Slot; WAYS]>]>,
    hasher: RandomState,
    started: Instant,
}

/// A rate, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Debt added by one event.
    cost: u64,
    /// Maximum debt of a key.
    credit: u64,
}

/// A key and its debt.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The key's hash. Collisions of 64 bits among 2^16 keys can be neglected.
    key: u64,
    /// When the debt is paid, in nanoseconds since the start.
    paid_at: u64,
}

impl Debts {
    fn new(now: Instant) -> Self {
        Self {
            sets: (0..SETS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            started: now,
        }
    }

    /// Undoes the last [`Self::take`] of the key.
    fn give_back(&self, key: &impl Hash, pace: Pace) {
        let key = self.hasher.hash_one(key);
        let mut slots = self.set(key).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.iter_mut().find(|slot| slot.key == key) {
            slot.paid_at = slot.paid_at.saturating_sub(pace.cost);
        }
    }

    fn set(&self, key: u64) -> &Mutex<[Slot; WAYS]> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower bits of a hash are as good as any"
        )]
        &self.sets[key as usize % SETS]
    }

    fn take(&self, key: &impl Hash, pace: Pace, now: Instant) -> Result<(), RateExceeded> {
        let now = u64::try_from(now.saturating_duration_since(self.started).as_nanos());
        let now = now.unwrap_or(u64::MAX / 2);
        let key = self.hasher.hash_one(key);
        let mut slots = self.set(key).lock().unwrap_or_else(PoisonError::into_inner);
        let known = slots.iter().position(|slot| slot.key == key);
        let index = known.unwrap_or_else(|| {
            let debt = |index: &usize| slots[*index].paid_at;
            let evicted = (0..WAYS).min_by_key(debt).unwrap_or_default();
            slots[evicted] = Slot { key, paid_at: 0 };
            evicted
        });
        let slot = &mut slots[index];
        // An earlier rate may have allowed a higher debt.
        slot.paid_at = slot.paid_at.min(now + pace.credit);
        let paid_at = slot.paid_at.max(now) + pace.cost;
        let debt = paid_at - now;
        if debt > pace.credit {
            let retry_after = Duration::from_nanos(debt - pace.credit);
            return Err(RateExceeded { retry_after });
        }
        slot.paid_at = paid_at;
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

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// 10 a second and 5 at once from a network, 20 and 8 from a /48.
    fn limiter(now: Instant) -> NetworkLimiter {
        let rate = |per_second, burst| Rate::new(per_second, burst).unwrap();
        NetworkLimiter::new(rate(10, 5), rate(20, 8), now)
    }

    /// Sends concurrent requests. Returns how many are served, and the error of the last one.
    fn served(
        limiter: &NetworkLimiter,
        client: &str,
        requests: usize,
        now: Instant,
    ) -> (usize, Option<RateExceeded>) {
        let client = client.parse().unwrap();
        let results: Vec<_> = (0..requests).map(|_| limiter.count(client, now)).collect();
        let served = results.iter().filter(|result| result.is_ok()).count();
        (served, results.last().and_then(|result| result.err()))
    }

    #[test]
    fn a_network_has_its_burst_and_then_its_rate() {
        let start = Instant::now();
        let limiter = limiter(start);
        let (count, error) = served(&limiter, "192.0.2.1", 9, start);
        assert_eq!(count, 5);
        assert_eq!(error.unwrap().retry_after, 100 * MILLISECOND);
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
    fn networks_are_counted_separately() {
        let now = Instant::now();
        let limiter = limiter(now);
        for (client, count) in [
            ("192.0.2.1", 5),
            ("192.0.2.2", 5),
            // The same address, mapped to IPv6.
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
    fn rejected_requests_of_a_network_do_not_count_against_its_site() {
        let now = Instant::now();
        let limiter = limiter(now);
        assert_eq!(served(&limiter, "2001:db8:0:1::1", 1000, now).0, 5);
        assert_eq!(served(&limiter, "2001:db8:0:2::1", 9, now).0, 3);
    }

    #[test]
    fn more_networks_than_are_tracked_cause_no_rejections() {
        let now = Instant::now();
        let limiter = limiter(now);
        assert_eq!(served(&limiter, "192.0.2.1", 9, now).0, 5);
        for number in 0..3 * u32::try_from(TRACKED_KEYS).unwrap() {
            let stranger = IpAddr::from((0x0b00_0000 + number).to_be_bytes());
            assert_eq!(limiter.count(stranger, now), Ok(()), "{stranger}");
        }
        // The network with the highest debt is still tracked.
        assert_eq!(served(&limiter, "192.0.2.1", 9, now).0, 0);
    }

    #[test]
    fn a_network_and_the_site_around_it_differ() {
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        let first = of("2001:db8::1");
        assert_ne!(Network::from_client(first), Network::from_site(first));
        assert_eq!(
            Network::from_site(first),
            Network::from_site(of("2001:db8:0:ffff::2"))
        );
        assert_ne!(
            Network::from_site(first),
            Network::from_site(of("2001:db8:1::1"))
        );
        let old = of("192.0.2.1");
        assert_eq!(Network::from_client(old), Network::from_site(old));
    }

    #[test]
    fn keys_are_counted_separately() {
        let now = Instant::now();
        let limiter = RateLimiter::new(Rate::new(1, 2).unwrap(), now);
        for (key, is_served) in [(1, true), (1, true), (1, false), (2, true)] {
            assert_eq!(limiter.count(&key, now).is_ok(), is_served, "{key}");
        }
        assert!(limiter.count(&1, now + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn requests_rejected_for_a_site_do_not_count_against_its_networks() {
        let now = Instant::now();
        let limiter = limiter(now);
        for network in ["2001:db8:0:1::1", "2001:db8:0:2::1"] {
            served(&limiter, network, 5, now);
        }
        assert_eq!(served(&limiter, "2001:db8:0:3::1", 9, now).0, 0);
        // By then the site allows 8 again, and the third network its own burst.
        let later = now + Duration::from_millis(400);
        assert_eq!(served(&limiter, "2001:db8:0:3::1", 9, later).0, 5);
    }

    #[test]
    fn debts_stay_when_the_rates_change() {
        let now = Instant::now();
        let rate = |per_second, burst| Rate::new(per_second, burst).unwrap();
        let old = limiter(now);
        assert_eq!(served(&old, "192.0.2.1", 5, now).0, 5);
        let larger = old.with_rates(rate(10, 8), rate(20, 16));
        assert_eq!(served(&larger, "192.0.2.1", 9, now).0, 3);
        assert_eq!(served(&larger, "192.0.2.2", 9, now).0, 8);
        // The old limiter still applies its own rate to the same debts.
        assert_eq!(served(&old, "192.0.2.2", 9, now).0, 0);
    }

    #[test]
    fn an_old_debt_is_reduced_to_the_new_burst() {
        let now = Instant::now();
        let slow = RateLimiter::new(Rate::new(1, 100).unwrap(), now);
        assert!((0..100).all(|_| slow.count(&1, now).is_ok()));
        // The debt is 100 s, of which the faster rate allows 1 s.
        let fast = slow.with_rate(Rate::new(10, 10).unwrap());
        let error = fast.count(&1, now).unwrap_err();
        assert_eq!(error.retry_after, 100 * MILLISECOND);
        assert!(fast.count(&1, now + 100 * MILLISECOND).is_ok());
    }

    #[test]
    fn retry_after_is_rounded_up_and_never_0() {
        for (wait, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2)] {
            assert_eq!(retry_after_seconds(Duration::from_millis(wait)), seconds);
        }
        assert_eq!(retry_after_seconds(Duration::from_micros(1)), 1);
    }
}

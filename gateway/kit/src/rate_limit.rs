//! Rate limits by key, in fixed memory: the generic cell rate algorithm (GCRA).
//!
//! Each event costs its key the time that the rate gives for one, and a key whose debt is larger than its burst waits. Of
//! each key one number is kept, the time at which its debt is paid.
//!
//! Memory is fixed: [`TRACKED_KEYS`] keys, 1.1 MB, allocated at the start. A key whose debt is paid is as good
//! as unknown. If more than that are in debt at once, a new one takes the place of the one that owes least among the
//! eight that share a set with it: that one begins anew, sooner than it should have by what it owed. So no key is
//! refused because of how many others there are, and the ones that are remembered longest are those that flood.
//!
//! Rates can change while the memory stays: a limiter with other rates shares the debts of the one that it was made from.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Keys that are tracked at the same time.
pub const TRACKED_KEYS: usize = SETS * WAYS;
/// A set is found by a key's hash under a secret of this process, so nobody can aim at one. Each has a lock of its own.
const SETS: usize = 8192;
/// Slots of a set.
const WAYS: usize = 8;

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// All the time.
    pub per_second: NonZeroU32,
    /// At once, after as long a rest as that takes to be regained.
    pub burst: NonZeroU32,
}

impl Rate {
    /// `None` if a number is 0.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Option<Self> {
        Some(Self {
            per_second: NonZeroU32::new(per_second)?,
            burst: NonZeroU32::new(burst)?,
        })
    }

    /// `factor` times as generous.
    #[must_use]
    pub fn times(self, factor: NonZeroU32) -> Self {
        Self {
            per_second: self.per_second.saturating_mul(factor),
            burst: self.burst.saturating_mul(factor),
        }
    }
}

/// Something happened too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    /// When the next one is served, if none comes before.
    pub retry_after: Duration,
}

/// One rate for every key.
#[derive(Debug)]
pub struct RateLimiter {
    pace: Pace,
    debts: Arc<Debts>,
}

impl RateLimiter {
    /// Nothing has happened by `now`, which is the earliest time that it is ever asked about.
    #[must_use]
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self {
            pace: Pace::new(rate),
            debts: Arc::new(Debts::new(now)),
        }
    }

    /// The same memory under another rate. A key that owes more than the new burst allows has used that up, and no more.
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
    /// The key has used up its burst. Refused events are not counted.
    pub fn count(&self, key: &impl Hash, now: Instant) -> Result<(), TooMany> {
        self.debts.take(key, self.pace, now)
    }
}

/// A rate for each network of clients, and a more generous one for each site.
#[derive(Debug)]
pub struct NetworkLimiter {
    network: Pace,
    site: Pace,
    debts: Arc<Debts>,
}

impl NetworkLimiter {
    /// Nobody has called by `now`, which is the earliest time that it is ever asked about.
    #[must_use]
    pub fn new(network: Rate, site: Rate, now: Instant) -> Self {
        Self {
            network: Pace::new(network),
            site: Pace::new(site),
            debts: Arc::new(Debts::new(now)),
        }
    }

    /// The same memory under other rates, as [`RateLimiter::with_rate`].
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
    /// Its network, or the IPv6 /48 around it, has used up its burst. Refused events are not counted against either,
    /// so that one network in a /48 takes no more of it than its own share.
    pub fn count(&self, client: IpAddr, now: Instant) -> Result<(), TooMany> {
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

/// A network of clients that are counted as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    /// Its length in bits: a /64 and the /48 around it can begin alike.
    prefix: u8,
}

impl Network {
    /// An IPv4 address, or an IPv6 /64: what one household or one machine has at least.
    #[must_use]
    pub fn from_client(client: IpAddr) -> Self {
        Self::around(client, 64)
    }

    /// An IPv4 address, or an IPv6 /48: what one site has.
    #[must_use]
    pub fn from_site(client: IpAddr) -> Self {
        Self::around(client, 48)
    }

    fn around(client: IpAddr, prefix: u8) -> Self {
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

/// What keys owe.
#[derive(Debug)]
struct Debts {
    sets: Box<[Mutex<[Slot; WAYS]>]>,
    hasher: RandomState,
    started: Instant,
}

/// A rate in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// What one event costs.
    cost: u64,
    /// How much a key may owe.
    credit: u64,
}

/// A key, and what it owes.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Its hash. That two of some 2^16 share one of 2^64 does not happen.
    key: u64,
    /// When its debt is paid, in nanoseconds since the start.
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

    /// Undoes a [`Self::take`] that was just made.
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

    fn take(&self, key: &impl Hash, pace: Pace, now: Instant) -> Result<(), TooMany> {
        let now = u64::try_from(now.saturating_duration_since(self.started).as_nanos());
        let now = now.unwrap_or(u64::MAX / 2);
        let key = self.hasher.hash_one(key);
        let mut slots = self.set(key).lock().unwrap_or_else(PoisonError::into_inner);
        let known = slots.iter().position(|slot| slot.key == key);
        let index = known.unwrap_or_else(|| {
            let owed = |index: &usize| slots[*index].paid_at;
            let least = (0..WAYS).min_by_key(owed).unwrap_or_default();
            slots[least] = Slot { key, paid_at: 0 };
            least
        });
        let slot = &mut slots[index];
        // Under an earlier rate the key may have been allowed to owe more.
        slot.paid_at = slot.paid_at.min(now + pace.credit);
        let paid_at = slot.paid_at.max(now) + pace.cost;
        let owed = paid_at - now;
        if owed > pace.credit {
            let retry_after = Duration::from_nanos(owed - pace.credit);
            return Err(TooMany { retry_after });
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

    /// How many of so many requests at once are served, and what the last one is told.
    fn served(
        limiter: &NetworkLimiter,
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
        for number in 0..3 * u32::try_from(TRACKED_KEYS).unwrap() {
            let stranger = IpAddr::from((0x0b00_0000 + number).to_be_bytes());
            assert_eq!(limiter.count(stranger, now), Ok(()), "{stranger}");
        }
        // Who owes most stays.
        assert_eq!(served(&limiter, "192.0.2.1", 9, now).0, 0);
    }

    #[test]
    fn a_network_and_the_site_around_it_are_not_mistaken_for_each_other() {
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
    fn keys_of_one_rate_are_counted_apart() {
        let now = Instant::now();
        let limiter = RateLimiter::new(Rate::new(1, 2).unwrap(), now);
        for (key, is_served) in [(1, true), (1, true), (1, false), (2, true)] {
            assert_eq!(limiter.count(&key, now).is_ok(), is_served, "{key}");
        }
        assert!(limiter.count(&1, now + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn a_site_that_is_full_costs_its_networks_nothing() {
        let now = Instant::now();
        let limiter = limiter(now);
        for network in ["2001:db8:0:1::1", "2001:db8:0:2::1"] {
            served(&limiter, network, 5, now);
        }
        assert_eq!(served(&limiter, "2001:db8:0:3::1", 9, now).0, 0);
        // By then the site has room for 10, and the third network all of its own.
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
        // One of an old snapshot still counts by its own rate, in the same memory.
        assert_eq!(served(&old, "192.0.2.2", 9, now).0, 0);
    }

    #[test]
    fn an_old_debt_is_no_larger_than_the_new_burst() {
        let now = Instant::now();
        let slow = RateLimiter::new(Rate::new(1, 100).unwrap(), now);
        assert!((0..100).all(|_| slow.count(&1, now).is_ok()));
        // It owes 100 s, of which the faster rate allows one.
        let fast = slow.with_rate(Rate::new(10, 10).unwrap());
        let told = fast.count(&1, now).unwrap_err();
        assert_eq!(told.retry_after, 100 * MILLISECOND);
        assert!(fast.count(&1, now + 100 * MILLISECOND).is_ok());
    }
}

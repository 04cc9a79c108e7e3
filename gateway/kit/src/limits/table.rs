//! The table of a rate limit. Several processes can share what their keys have used.
//!
//! A process that shares notes what each key has used since it last reported it. It reports that to a store that adds up
//! what all processes have used, and raises its own number to the store's. Between two reports it decides by its own
//! numbers alone, so no event waits for the store.

use std::{
    net::IpAddr,
    sync::OnceLock,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::{
    Exceeded, Network, Quota, Rate, SITE_FACTOR, TRACKED_KEYS,
    slots::{Pace, Slot, Slots},
};

/// A key that uses no more than this share of its rate, or of its burst, is not reported: of a flood of addresses that
/// send a request each, nothing is.
const INSIGNIFICANT_SHARE: u64 = 10;

/// Number of reports after which an unreported use is dropped, if it stayed below [`INSIGNIFICANT_SHARE`].
const MAX_AGE: u8 = 10;

/// Limit of what a store reports as used: more cannot be true, unless its clock was set back.
const MAX_STORED_USE: Duration = Duration::from_secs(3600);

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The rule that limits it: the same number in every process.
    pub rule: u64,
    /// Whom it limits.
    pub subject: Subject,
}

/// Whom a limit counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// An application, by its internal id.
    Application(i64),
    /// A network of clients.
    Network(Network),
    /// All requests together.
    All,
}

/// What a key has used and not reported yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// The key whose tokens were used.
    pub key: Key,
    /// The rate of the key's last event.
    pub rate: Rate,
    /// Number of tokens.
    pub count: u32,
    /// What is not refilled yet, in thousandths of its burst.
    pub fullness: u64,
}

impl Used {
    /// The time in which these tokens are refilled.
    #[must_use]
    pub fn refill_time(&self) -> Duration {
        Duration::from_nanos(Pace::new(self.rate).token * u64::from(self.count))
    }
}

/// Counts the events of keys with rates of their own. Costs 1.1 MB; 4.2 MB more once it is shared.
#[derive(Debug)]
pub struct RateTable {
    slots: Slots,
    /// The unreported use of the key in each slot; only if the table is shared. Locked after the slot.
    unreported: OnceLock<Box<[Mutex<Option<Unreported>>]>>,
}

/// What the key of a slot has used since the last report.
#[derive(Clone, Copy, Debug)]
struct Unreported {
    key: Key,
    rate: Rate,
    count: u32,
    /// Number of reports without this key since its first unreported event.
    age: u8,
}

impl RateTable {
    /// Creates a table in which no token is used. No later call may have an earlier time than `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            slots: Slots::new(now),
            unreported: OnceLock::new(),
        }
    }

    /// Begins to note what must be reported. Earlier notes are dropped.
    pub fn begin_sharing(&self) {
        let create = || (0..TRACKED_KEYS).map(|_| Mutex::default()).collect();
        for noted in self.unreported.get_or_init(create) {
            *noted.lock() = None;
        }
    }

    /// Counts an event of `key`. Costs no allocation, and the lock of one set; one more if the table is shared.
    ///
    /// # Errors
    ///
    /// No token is left. A rejected event uses none.
    pub fn count(&self, key: &Key, rate: Rate, now: Instant) -> Result<Quota, Exceeded> {
        let (pace, now) = (Pace::new(rate), self.slots.elapsed(now));
        let mut slot = self.slots.find_or_evict(key);
        let mut noted = self.unreported.get().map(|all| all[slot.position].lock());
        let is_noted = |noted: &Unreported| noted.key == *key && noted.rate == rate;
        let is_known = !slot.is_new
            && noted
                .as_deref()
                .is_some_and(|last| last.is_some_and(|entry| is_noted(&entry)));
        if !is_known {
            // Only other processes use more than the burst of the rate that this one counts by.
            slot.reduce(pace, now);
        }
        let taken = slot.use_token(pace, now);
        if let Some(noted) = noted.as_deref_mut() {
            let before = noted.filter(|_| is_known);
            let before = before.unwrap_or(Unreported {
                key: *key,
                rate,
                count: 0,
                age: 0,
            });
            let count = before.count.saturating_add(u32::from(taken.is_ok()));
            *noted = Some(Unreported { count, ..before });
        }
        taken
            .map(|used| pace.quota(rate, used))
            .map_err(|retry_after| Exceeded {
                retry_after,
                quota: pace.quota(rate, slot.used(now)),
            })
    }

    /// Undoes the last [`Self::count`] of the key, which was not rejected.
    pub fn give_back(&self, key: &Key, rate: Rate) {
        let Some(mut slot) = self.slots.find(key) else {
            return;
        };
        slot.give_back(Pace::new(rate));
        if let Some(all) = self.unreported.get()
            && let Some(noted) = &mut *all[slot.position].lock()
        {
            noted.count = noted.count.saturating_sub(1);
        }
    }

    /// Counts an event of a client's network and, for IPv6, of the /48 around it, which has four times the rate. The
    /// quota is the network's, or that which is used up.
    ///
    /// # Errors
    ///
    /// Either has no token left. A rejected event uses none of either, so that a network in a /48 takes no more than its own
    /// share.
    pub fn count_client(
        &self,
        rule: u64,
        client: IpAddr,
        rate: Rate,
        now: Instant,
    ) -> Result<Quota, Exceeded> {
        let (network, site) = client_keys(rule, client);
        let counted = self.count(&network, rate, now)?;
        if let Some(site) = site {
            let site = self.count(&site, rate.times(SITE_FACTOR), now);
            site.inspect_err(|_| self.give_back(&network, rate))?;
        }
        Ok(counted)
    }

    /// Undoes the last [`Self::count_client`], which was not rejected.
    pub fn give_back_client(&self, rule: u64, client: IpAddr, rate: Rate) {
        let (network, site) = client_keys(rule, client);
        self.give_back(&network, rate);
        if let Some(site) = site {
            self.give_back(&site, rate.times(SITE_FACTOR));
        }
    }

    /// The number of keys that have used tokens, for the metrics: less than a millisecond's work, with one set locked at a time.
    #[must_use]
    pub fn keys_in_use(&self, now: Instant) -> usize {
        self.slots.keys_in_use(now)
    }

    /// What must be reported: of the keys with a significant use, the `limit` that have used most.
    #[must_use]
    pub fn unreported(&self, limit: usize, now: Instant) -> Vec<Used> {
        let Some(all) = self.unreported.get() else {
            return Vec::new();
        };
        let (mut uses, now) = (Vec::new(), self.slots.elapsed(now));
        self.slots.for_each(|position, slot| {
            let mut noted = all[position].lock();
            let Some(noted) = noted.as_mut().filter(|noted| noted.count > 0) else {
                return;
            };
            if let Some(used) = noted.report_or_age(slot.used(now)) {
                uses.push(used);
                // At twice the limit: the list stays bounded, and each selection halves it, so all cost linear time.
                if uses.len() >= limit.saturating_mul(2) {
                    keep_fullest(&mut uses, limit);
                }
            }
        });
        keep_fullest(&mut uses, limit);
        uses
    }

    /// The use was reported. In all processes together, the key's tokens are refilled in `refilled_in`.
    pub fn reported(&self, used: &Used, refilled_in: Duration, now: Instant) {
        let now = self.slots.elapsed(now);
        self.with_noted(used, |noted, slot| {
            noted.count = noted.count.saturating_sub(used.count);
            noted.age = 0;
            let stored = refilled_in.min(MAX_STORED_USE).as_nanos();
            let stored = u64::try_from(stored).unwrap_or(0);
            // The store does not have the events since the report began.
            let since = Pace::new(used.rate).token * u64::from(noted.count);
            // Only raised: what this process has counted itself stays counted.
            slot.full_at = slot.full_at.max(now + stored + since);
        });
    }

    /// The use could not be reported. Tokens that are refilled by now never will be: otherwise an hour without a store
    /// would block a key for an hour afterwards.
    pub fn not_reported(&self, used: &Used, now: Instant) {
        let now = self.slots.elapsed(now);
        self.with_noted(used, |noted, slot| {
            let left = slot.used(now).div_ceil(Pace::new(used.rate).token);
            noted.count = noted.count.min(u32::try_from(left).unwrap_or(u32::MAX));
        });
    }

    fn with_noted(&self, used: &Used, act: impl FnOnce(&mut Unreported, &mut Slot)) {
        // A key that was evicted meanwhile has neither a slot nor a note.
        if let (Some(all), Some(mut slot)) = (self.unreported.get(), self.slots.find(&used.key)) {
            let mut noted = all[slot.position].lock();
            // With another rate since, the note has begun anew, and the report is about the old one.
            if let Some(noted) = noted.as_mut().filter(|noted| noted.rate == used.rate) {
                act(noted, &mut slot);
            }
        }
    }
}

impl Unreported {
    /// What to report of a key that has used this much, if it is significant. Otherwise it ages, and is dropped after some
    /// time.
    fn report_or_age(&mut self, used: u64) -> Option<Used> {
        let pace = Pace::new(self.rate);
        // A process can use no more in the time of two reports; the rest dates from an outage.
        let (per_second, burst) = (self.rate.per_second.get(), self.rate.burst.get());
        let most = burst.saturating_add(per_second.saturating_mul(2));
        self.count = self.count.min(most);
        let is_significant = u64::from(self.count) * INSIGNIFICANT_SHARE > u64::from(per_second)
            || used.saturating_mul(INSIGNIFICANT_SHARE) > pace.burst;
        if is_significant {
            return Some(Used {
                key: self.key,
                rate: self.rate,
                count: self.count,
                fullness: used.saturating_mul(1000) / pace.burst,
            });
        }
        self.age += 1;
        if self.age >= MAX_AGE {
            (self.count, self.age) = (0, 0);
        }
        None
    }
}

fn keep_fullest(uses: &mut Vec<Used>, limit: usize) {
    if uses.len() > limit {
        uses.select_nth_unstable_by_key(limit, |used| std::cmp::Reverse(used.fullness));
        uses.truncate(limit);
    }
}

fn client_keys(rule: u64, client: IpAddr) -> (Key, Option<Key>) {
    let key = |network| Key {
        rule,
        subject: Subject::Network(network),
    };
    let (network, site) = Network::and_site(client);
    (key(network), site.map(key))
}

#[cfg(test)]
mod tests;

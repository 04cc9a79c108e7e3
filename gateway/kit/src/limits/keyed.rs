//! Rate limits whose rate is given with each event, and whose debts several processes can share.
//!
//! A process that shares debts notes what each key has used since it last reported it. It reports that to a store that
//! adds up the debts of all processes, and raises its own debt to the store's answer. Between two reports it decides by
//! its own debts alone, so no event waits for the store.

use std::{
    net::IpAddr,
    num::NonZeroU32,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use super::{
    Network, Quota, QuotaExceeded, Rate, TRACKED_KEYS,
    debts::{Debts, Pace},
};

/// Rate and burst of an IPv6 /48, as a multiple of those of a /64 in it. Providers assign /48s by the thousand, so a
/// site needs limits of its own.
const SITE_FACTOR: NonZeroU32 = NonZeroU32::new(4).expect("it is not 0");

/// A key that uses no more than this share of its rate, or of its burst, is not reported: of a flood of addresses that
/// send a request each, nothing is.
const INSIGNIFICANT_SHARE: u64 = 10;

/// Number of reports after which an unreported use is forgotten, if it stayed below [`INSIGNIFICANT_SHARE`].
const MAX_AGE: u8 = 10;

/// Limit of a debt that a store reports: more cannot be true, unless its clock was set back.
const MAX_STORED_DEBT: Duration = Duration::from_secs(3600);

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
}

/// What a key has used and not reported yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// The key.
    pub key: Key,
    /// Its rate.
    pub rate: Rate,
    /// Number of events.
    pub count: u32,
    /// Its debt, in thousandths of its burst.
    pub fullness: u64,
}

impl Used {
    /// The debt that these events add.
    #[must_use]
    pub fn cost(&self) -> Duration {
        Duration::from_nanos(Pace::new(self.rate).cost * u64::from(self.count))
    }
}

/// The debts of keys with rates of their own. Costs 1.1 MB; 4.2 MB more once it is shared.
#[derive(Debug)]
pub struct KeyedDebts {
    debts: Debts,
    /// The unreported use of the key in each slot; only of shared debts. Locked after the slot.
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

impl KeyedDebts {
    /// Creates a table without debts. No later call may have an earlier time than `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            debts: Debts::new(now),
            unreported: OnceLock::new(),
        }
    }

    /// Begins to note what must be reported. Earlier notes are dropped.
    pub fn begin_sharing(&self) {
        let create = || (0..TRACKED_KEYS).map(|_| Mutex::default()).collect();
        for noted in self.unreported.get_or_init(create) {
            *lock(noted) = None;
        }
    }

    /// Counts an event of `key`. Costs no allocation, and the lock of one set; one more if the debts are shared.
    ///
    /// # Errors
    ///
    /// The key has used up its burst. A rejected event is not counted.
    pub fn count(&self, key: &Key, rate: Rate, now: Instant) -> Result<Quota, QuotaExceeded> {
        let (pace, now) = (Pace::new(rate), self.debts.elapsed(now));
        let mut slot = self.debts.find_or_evict(key);
        let mut noted = self.unreported.get().map(|all| lock(&all[slot.position]));
        let is_noted = |noted: &Unreported| noted.key == *key && noted.rate == rate;
        let is_known = !slot.is_new
            && noted
                .as_deref()
                .is_some_and(|one| one.is_some_and(|one| is_noted(&one)));
        if !is_known {
            // Only other processes raise a debt above the credit of the rate that it was counted by.
            slot.reduce(pace, now);
        }
        let taken = slot.take(pace, now);
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
            .map(|debt| pace.quota(rate, debt))
            .map_err(|retry_after| QuotaExceeded {
                retry_after,
                quota: pace.quota(rate, slot.debt(now)),
            })
    }

    /// Undoes the last [`Self::count`] of the key, which was not rejected.
    pub fn give_back(&self, key: &Key, rate: Rate) {
        let Some(mut slot) = self.debts.find(key) else {
            return;
        };
        slot.give_back(Pace::new(rate));
        if let Some(all) = self.unreported.get()
            && let Some(noted) = &mut *lock(&all[slot.position])
        {
            noted.count = noted.count.saturating_sub(1);
        }
    }

    /// Counts an event of a client's network and, for IPv6, of the /48 around it, which has four times the rate. The
    /// quota is the network's, or that which is used up.
    ///
    /// # Errors
    ///
    /// Either has used up its burst. A rejected event counts against neither.
    pub fn count_client(
        &self,
        rule: u64,
        client: IpAddr,
        rate: Rate,
        now: Instant,
    ) -> Result<Quota, QuotaExceeded> {
        let [network, site] = client_keys(rule, client);
        let counted = self.count(&network, rate, now)?;
        if site != network {
            let site = self.count(&site, rate.times(SITE_FACTOR), now);
            site.inspect_err(|_| self.give_back(&network, rate))?;
        }
        Ok(counted)
    }

    /// Undoes the last [`Self::count_client`], which was not rejected.
    pub fn give_back_client(&self, rule: u64, client: IpAddr, rate: Rate) {
        let [network, site] = client_keys(rule, client);
        self.give_back(&network, rate);
        if site != network {
            self.give_back(&site, rate.times(SITE_FACTOR));
        }
    }

    /// The number of keys with a debt, for the metrics: less than a millisecond's work, with one set locked at a time.
    #[must_use]
    pub fn keys_with_debt(&self, now: Instant) -> usize {
        self.debts.keys_with_debt(now)
    }

    /// What must be reported: of the keys with a significant use, the `limit` with the highest debts.
    #[must_use]
    pub fn unreported(&self, limit: usize, now: Instant) -> Vec<Used> {
        let Some(all) = self.unreported.get() else {
            return Vec::new();
        };
        let (mut found, now) = (Vec::new(), self.debts.elapsed(now));
        self.debts.for_each(|position, slot| {
            let mut noted = lock(&all[position]);
            let Some(noted) = noted.as_mut().filter(|noted| noted.count > 0) else {
                return;
            };
            if let Some(used) = noted.report_or_age(slot.debt(now)) {
                found.push(used);
                if found.len() >= limit.saturating_mul(2) {
                    keep_fullest(&mut found, limit);
                }
            }
        });
        keep_fullest(&mut found, limit);
        found
    }

    /// The use was reported, and the key has this debt in all processes together.
    pub fn reported(&self, used: &Used, debt: Duration, now: Instant) {
        let now = self.debts.elapsed(now);
        self.with_noted(used, |noted, slot| {
            noted.count = noted.count.saturating_sub(used.count);
            noted.age = 0;
            let debt = u64::try_from(debt.min(MAX_STORED_DEBT).as_nanos()).unwrap_or(0);
            // Events since the report began are not part of the store's debt.
            let since = Pace::new(used.rate).cost * u64::from(noted.count);
            slot.paid_at = slot.paid_at.max(now + debt + since);
        });
    }

    /// The use could not be reported. What is paid off by now never will be: otherwise an hour without a store would
    /// block a key for an hour afterwards.
    pub fn not_reported(&self, used: &Used, now: Instant) {
        let now = self.debts.elapsed(now);
        self.with_noted(used, |noted, slot| {
            let owed = slot.debt(now).div_ceil(Pace::new(used.rate).cost);
            noted.count = noted.count.min(u32::try_from(owed).unwrap_or(u32::MAX));
        });
    }

    fn with_noted(&self, used: &Used, act: impl FnOnce(&mut Unreported, &mut super::debts::Slot)) {
        // A key that was evicted meanwhile has neither a debt nor a note.
        if let (Some(all), Some(mut slot)) = (self.unreported.get(), self.debts.find(&used.key)) {
            let mut noted = lock(&all[slot.position]);
            if let Some(noted) = noted.as_mut().filter(|noted| noted.rate == used.rate) {
                act(noted, &mut slot);
            }
        }
    }
}

impl Unreported {
    /// What to report of a key with this debt, if it is significant. Otherwise it ages, and is forgotten after some time.
    fn report_or_age(&mut self, debt: u64) -> Option<Used> {
        let pace = Pace::new(self.rate);
        // A process can use no more in the time of two reports; the rest dates from an outage.
        let (per_second, burst) = (self.rate.per_second.get(), self.rate.burst.get());
        let most = burst.saturating_add(per_second.saturating_mul(2));
        self.count = self.count.min(most);
        let is_significant = u64::from(self.count) * INSIGNIFICANT_SHARE > u64::from(per_second)
            || debt.saturating_mul(INSIGNIFICANT_SHARE) > pace.credit;
        if is_significant {
            return Some(Used {
                key: self.key,
                rate: self.rate,
                count: self.count,
                fullness: debt.saturating_mul(1000) / pace.credit,
            });
        }
        self.age += 1;
        if self.age >= MAX_AGE {
            (self.count, self.age) = (0, 0);
        }
        None
    }
}

fn keep_fullest(found: &mut Vec<Used>, limit: usize) {
    if found.len() > limit {
        found.select_nth_unstable_by_key(limit, |used| std::cmp::Reverse(used.fullness));
        found.truncate(limit);
    }
}

fn client_keys(rule: u64, client: IpAddr) -> [Key; 2] {
    [Network::from_client(client), Network::from_site(client)].map(|network| Key {
        rule,
        subject: Subject::Network(network),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

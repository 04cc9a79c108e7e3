//! The counters of each thread.
//!
//! A worker thread counts in a shard of its own, and waits for no collection of it. A request of a version, application and
//! path that the shard knows allocates nothing and reads no clock: it costs about 110 instructions, and for its path 150
//! more, or 600 to 1,400 if segments of it look like data. A collection moves what was counted to both readers: the busiest applications, and the next batch.

use std::{
    fmt,
    hash::{Hash, Hasher},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use signpost_kit::clock::{Clock, Timestamp};
use signpost_protocol::{app::AppIdent, version::Version};

use super::{
    Counts, Day, NO_APPLICATION, OTHER_APPLICATIONS,
    batch::{Batch, LastClient, PathCounts, PathKey, RowKey},
    busiest::Busiest,
    paths::{self, Known, MAX_OF_APP},
};
use crate::{
    config::OTHER_PATHS,
    observe::{
        metrics::labels::{ClassCounts, status_class},
        outcome::Outcome,
        per_thread::{KeyHasher, KeyMap, PerThread},
    },
    request::Method,
};

/// Limit of the keys that a shard counts between two collections; half of it for unsigned requests, so that a flood of those
/// leaves room for signed ones. Requests of further applications are counted together.
pub(super) const MAX_KEYS: usize = 4096;

/// Limit of the paths that a shard counts between two collections, half of it for unsigned requests: 2 MB. Requests of
/// further paths are counted together.
pub(super) const MAX_PATHS: usize = 8192;

/// Limit of a user agent, in bytes. It is a client's text.
pub(super) const MAX_USER_AGENT: usize = 120;

/// Shown for each byte of a user agent that is not printable ASCII: a terminal might obey it.
const UNPRINTABLE: char = '?';

/// Counts requests by application and version.
pub struct Usage {
    threads: PerThread<Shard>,
    collected: Mutex<Collected>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Usage")
    }
}

/// What was collected from the threads.
#[derive(Debug)]
struct Collected {
    busiest: Busiest,
    /// Requests with a route, for the store.
    batch: Batch,
    patterns: Known,
    /// When the threads' counters were last read. What they have counted since is of that day.
    read_at: Timestamp,
}

/// What a thread has counted.
#[derive(Debug, Default)]
struct Shard {
    slots: KeyMap<UsageKey, Slot>,
    /// The number of paths in all of them.
    paths: usize,
    /// The pattern of the present request: its memory is used again.
    pattern: String,
}

/// What is counted apart. Strangers can create few keys: an application exists in the store, and a version in the
/// configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UsageKey {
    application: i64,
    /// The address of the [`Version`] in memory, which all backends of the version share. The slot keeps it there. 0 if the
    /// request has no route.
    version: usize,
    is_signed: bool,
}

/// The requests of a key.
#[derive(Debug)]
struct Slot {
    version: Option<Arc<Version>>,
    ident: Option<AppIdent>,
    by_source: Counts,
    by_class: ClassCounts,
    /// The client of the first request since the last collection; never a callback's, which is a user's browser.
    client: Option<IpAddr>,
    /// Its user agent. A slot that stays in use allocates it once.
    user_agent: String,
    /// By the hash of the other members of [`PathSlot`].
    paths: KeyMap<u64, PathSlot>,
}

/// The requests of a path.
#[derive(Clone, Debug)]
struct PathSlot {
    method: Method,
    pattern: Box<str>,
    /// Whether the configuration has it.
    is_configured: bool,
    is_bridged: bool,
    by_class: ClassCounts,
}

impl Usage {
    /// Counters without a request, of applications without a place in the metrics.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            threads: PerThread::default(),
            collected: Mutex::new(Collected {
                busiest: Busiest::default(),
                batch: Batch::default(),
                patterns: Known::default(),
                read_at: clock.now(),
            }),
            clock,
        }
    }

    /// Counts a request that has an application or a route. `user_agent` is called for few requests.
    pub fn count<'h>(&self, outcome: &Outcome<'_>, user_agent: impl FnOnce() -> Option<&'h [u8]>) {
        let learnt = &outcome.learnt;
        if learnt.app.is_none() && learnt.route.is_none() {
            return;
        }
        let version = learnt.route.map(|route| route.version.name());
        let key = UsageKey {
            application: learnt.app.map_or(NO_APPLICATION, |app| app.id.get()),
            version: version.map_or(0, |version| Arc::as_ptr(version).addr()),
            is_signed: learnt.is_signed,
        };
        let mut shard = self.threads.own();
        let Shard {
            slots,
            paths,
            pattern,
        } = &mut *shard;
        let slot = match slots.get_mut(&key) {
            Some(slot) => slot,
            None => add(slots, key, version, outcome),
        };
        slot.by_class[status_class(outcome.sent.status)] += 1;
        if let Some(route) = learnt.route {
            slot.by_source[route.source as usize] += 1;
            if let Some(method) = Method::from_bytes(outcome.method)
                && paths::is_counted(outcome)
            {
                let max = MAX_PATHS / if key.is_signed { 1 } else { 2 };
                // One client must not take the room of all others.
                let has_room = *paths < max && slot.paths.len() < MAX_OF_APP;
                let of = (method, route.is_bridged());
                let configured = route.version.pattern(method, outcome.compared);
                let class = status_class(outcome.sent.status);
                // Most paths have no data: they are their own patterns.
                if configured.is_some() || !slot.count_known(of, outcome.compared, class) {
                    paths::write_pattern(pattern, configured, outcome.compared);
                    let path = (&**pattern, configured.is_some());
                    *paths += usize::from(slot.count_path(of, path, class, has_room));
                }
            }
        }
        // One client between two collections is enough, and costs the other requests nothing.
        if slot.client.is_none() && slot.ident.is_some() {
            slot.client = Some(outcome.client);
            set_printable(&mut slot.user_agent, user_agent().unwrap_or_default());
        }
    }

    /// The number of keys, of all shards together.
    #[cfg(test)]
    pub(super) fn keys(&self) -> usize {
        self.threads.all().map(|shard| shard.slots.len()).sum()
    }

    /// Sets the limit of the applications that a scrape shows.
    pub fn show(&self, limit: usize) {
        self.collect().busiest.set_limit(limit);
    }

    /// The requests of the applications that were the busiest since the last scrape, and of all others.
    pub fn scrape(&self) -> Vec<(Box<str>, ClassCounts)> {
        self.collect().busiest.scrape()
    }

    /// Reads the counters of all threads. No thread waits.
    pub(super) fn read(&self) {
        drop(self.collect());
    }

    /// The number of requests in the next batch.
    pub(super) fn requests(&self) -> u64 {
        self.collect().batch.requests()
    }

    /// The next batch.
    pub(super) fn take_batch(&self) -> Batch {
        std::mem::take(&mut self.collect().batch)
    }

    /// Moves what the threads have counted to both readers: requests on the day of the last collection, the last of them
    /// now.
    fn collect(&self) -> MutexGuard<'_, Collected> {
        let now = self.clock.now();
        // First: one collection at a time. With two, both values of a thread could be locked, and its requests would
        // wait.
        let collected = self.collected.lock();
        let mut collected = collected.unwrap_or_else(PoisonError::into_inner);
        let day = Day::at(std::mem::replace(&mut collected.read_at, now));
        let mut moved = Vec::new();
        for mut shard in self.threads.all() {
            let mut paths = 0;
            shard.slots.retain(|key, slot| {
                // A key without a request since the last collection is dropped.
                let is_used = slot.by_class != ClassCounts::default();
                if is_used {
                    moved.push((*key, slot.take()));
                    paths += slot.paths.len();
                }
                is_used
            });
            shard.paths = paths;
            // The readers get them without the lock of the thread.
            drop(shard);
            for (key, slot) in moved.drain(..) {
                collected.add(day, now, key, slot);
            }
        }
        collected
    }
}

impl Slot {
    /// Takes what was counted; what the slot is for stays.
    fn take(&mut self) -> Self {
        // As a slot, a path without a request since the last collection is dropped.
        self.paths
            .retain(|_, path| path.by_class != ClassCounts::default());
        let paths = self.paths.clone();
        for path in self.paths.values_mut() {
            path.by_class = ClassCounts::default();
        }
        Self {
            paths,
            version: self.version.clone(),
            ident: self.ident,
            by_source: std::mem::take(&mut self.by_source),
            by_class: std::mem::take(&mut self.by_class),
            client: self.client.take(),
            user_agent: self.user_agent.clone(),
        }
    }

    /// Counts a request of a path that is known; false if it is not, or another path has its hash.
    fn count_known(&mut self, of: (Method, bool), pattern: &str, class: usize) -> bool {
        let path = self.paths.get_mut(&path_hash(of, pattern));
        match path.filter(|path| *path.pattern == *pattern) {
            Some(path) => path.by_class[class] += 1,
            None => return false,
        }
        true
    }

    /// Counts a request of a path, and returns whether that is new. Without room, and for two paths of one hash, all others
    /// are counted together.
    fn count_path(
        &mut self,
        of: (Method, bool),
        (pattern, is_configured): (&str, bool),
        class: usize,
        has_room: bool,
    ) -> bool {
        if self.count_known(of, pattern, class) {
            return false;
        }
        let own = path_hash(of, pattern);
        let (key, pattern) = match has_room && !self.paths.contains_key(&own) {
            true => (own, pattern),
            false => (path_hash(of, OTHER_PATHS), OTHER_PATHS),
        };
        let before = self.paths.len();
        let path = self.paths.entry(key).or_insert_with(|| PathSlot {
            method: of.0,
            pattern: pattern.into(),
            is_configured,
            is_bridged: of.1,
            by_class: ClassCounts::default(),
        });
        path.by_class[class] += 1;
        self.paths.len() > before
    }
}

impl Collected {
    fn add(&mut self, day: Day, now: Timestamp, key: UsageKey, slot: Slot) {
        match (slot.ident, key.application) {
            (Some(ident), id) => self.busiest.add(id, ident, key.is_signed, &slot.by_class),
            (None, OTHER_APPLICATIONS) => self.busiest.add_other(&slot.by_class),
            (None, _) => {}
        }
        let Some(version) = slot.version else { return };
        let row = RowKey {
            day,
            version: (*version).clone(),
            application: key.application,
            is_signed: key.is_signed,
        };
        let client = LastClient {
            ident: slot.ident,
            last_seen: now,
            address: slot.client,
            user_agent: slot.user_agent,
        };
        for path in slot.paths.into_values() {
            let of = (path.method, &*path.pattern);
            let patterns = &mut self.patterns;
            let by = (key.application, key.is_signed);
            let has_room = path.is_configured || patterns.has_room((day, &version), of, by);
            let path_key = PathKey {
                day,
                version: (*version).clone(),
                application: key.application,
                is_bridged: path.is_bridged,
                method: path.method,
                pattern: if has_room {
                    path.pattern
                } else {
                    OTHER_PATHS.into()
                },
            };
            let counts = PathCounts {
                by_class: path.by_class,
                last_seen: now,
            };
            self.batch.add_path(path_key, key.is_signed, counts);
        }
        self.batch.add(row, &slot.by_source, client);
    }
}

/// Adds a slot for a new key, or finds the slot of all further applications if the shard is full.
#[cold]
fn add<'s>(
    slots: &'s mut KeyMap<UsageKey, Slot>,
    key: UsageKey,
    version: Option<&Arc<Version>>,
    outcome: &Outcome<'_>,
) -> &'s mut Slot {
    let max = if key.is_signed {
        MAX_KEYS
    } else {
        MAX_KEYS / 2
    };
    let is_full = slots.len() >= max && key.application != NO_APPLICATION;
    let (key, ident) = if is_full {
        let other = UsageKey {
            application: OTHER_APPLICATIONS,
            ..key
        };
        (other, None)
    } else {
        (key, outcome.learnt.app.and_then(|app| app.ident))
    };
    slots.entry(key).or_insert_with(|| Slot {
        version: version.cloned(),
        ident,
        by_source: Counts::default(),
        by_class: ClassCounts::default(),
        client: None,
        user_agent: String::new(),
        paths: KeyMap::default(),
    })
}

/// A number for a path. The caller compares the patterns: a client can find two paths of one number.
fn path_hash((method, is_bridged): (Method, bool), pattern: &str) -> u64 {
    let mut hasher = KeyHasher::default();
    let bytes = pattern.as_bytes();
    hasher.write_u64((bytes.len() as u64) << 8 | (method as u64) << 1 | u64::from(is_bridged));
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hasher.write_u64(u64::from_le_bytes(*word));
    }
    // Of a longer path, the last eight bytes: faster than what is left of them, one by one.
    hasher.write_u64(match bytes.last_chunk::<8>() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    });
    hasher.finish()
}

/// Replaces `text` by the first bytes of a client's text, as printable ASCII.
fn set_printable(text: &mut String, sent: &[u8]) {
    text.clear();
    let printable = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => UNPRINTABLE,
    };
    text.extend(sent.iter().take(MAX_USER_AGENT).map(printable));
}

/// Two numbers, so that the hash is two multiplications.
impl Hash for UsageKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_i64(self.application << 1 | i64::from(self.is_signed));
        state.write_usize(self.version);
    }
}

//! The counters of each thread.
//!
//! A worker thread counts in a shard of its own, and waits for no batch that is collected from it. A request of a version
//! and application that the shard knows allocates nothing and reads no clock: it costs about 110 instructions.

use std::{
    hash::{Hash, Hasher},
    net::IpAddr,
    sync::Arc,
};

use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppIdent, version::Version};

use super::{
    Counts, NO_APPLICATION, OTHER_APPLICATIONS, SOURCES,
    batch::{Batch, Client, RowKey},
    day::Day,
    source_index,
};
use crate::{
    observe::{
        outcome::Outcome,
        per_thread::{KeyMap, PerThread},
    },
    phases::route::Route,
};

/// Limit of the keys that a shard counts between two batches; half of it for unsigned requests, so that a flood of those
/// leaves room for signed ones. Requests of further applications are counted together.
pub(super) const MAX_KEYS: usize = 4096;

/// Limit of a user agent, in bytes. It is a client's text.
pub(super) const MAX_USER_AGENT: usize = 120;

/// Shown for each byte of a user agent that is not printable ASCII: a terminal might obey it.
const UNPRINTABLE: char = '?';

/// Counts requests with a route since the last batch.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    threads: PerThread<Slots>,
}

type Slots = KeyMap<Key, Slot>;

/// What is counted apart. Strangers can create few keys: an application exists in the store, and a version in the
/// configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    application: i64,
    /// The address of the [`Version`] in memory, which all backends of the version share. The slot keeps it there.
    version: usize,
    is_signed: bool,
}

/// The requests of a key.
#[derive(Debug)]
struct Slot {
    version: Arc<Version>,
    ident: Option<AppIdent>,
    counts: Counts,
    /// The client of the first request since the last batch; never that of a callback, which is a user's browser.
    client: Option<IpAddr>,
    /// Its user agent. A slot that stays in use allocates it once.
    user_agent: String,
}

impl Usage {
    /// Counts a request if it has a route. `user_agent` is called for few requests.
    pub(crate) fn count<'h>(
        &self,
        outcome: &Outcome<'_>,
        user_agent: impl FnOnce() -> Option<&'h [u8]>,
    ) {
        let Some(route) = outcome.learnt.route else {
            return;
        };
        let key = Key {
            application: outcome
                .learnt
                .app
                .map_or(NO_APPLICATION, |app| app.id.get()),
            version: Arc::as_ptr(&route.backend.name.version).addr(),
            is_signed: outcome.learnt.is_signed,
        };
        let mut slots = self.threads.own();
        let slot = match slots.get_mut(&key) {
            Some(slot) => slot,
            None => add(&mut slots, key, route, outcome),
        };
        slot.counts[source_index(route.source)] += 1;
        if slot.client.is_none() && slot.ident.is_some() {
            slot.client = Some(outcome.client);
            set_printable(&mut slot.user_agent, user_agent().unwrap_or_default());
        }
    }

    /// The number of keys, of all shards together.
    #[cfg(test)]
    pub(super) fn keys(&self) -> usize {
        self.threads.all().map(|slots| slots.len()).sum()
    }

    /// Moves everything counted since the last call into a batch: requests on `day`, the last of them at `now`.
    pub(super) fn drain(&self, day: Day, now: Timestamp, batch: &mut Batch) {
        let mut drained = Vec::new();
        for mut slots in self.threads.all() {
            slots.retain(|key, slot| {
                let counts = std::mem::take(&mut slot.counts);
                // A key without a request since the last call is dropped.
                let is_used = counts.iter().any(|count| *count > 0);
                if is_used {
                    let client = Client {
                        ident: slot.ident,
                        last_seen: now,
                        address: slot.client.take(),
                        user_agent: slot.user_agent.clone(),
                    };
                    drained.push((*key, Arc::clone(&slot.version), counts, client));
                }
                is_used
            });
            // The batch is built without the lock.
            drop(slots);
            for (key, version, counts, client) in drained.drain(..) {
                let row = RowKey {
                    day,
                    version: (*version).clone(),
                    application: key.application,
                    is_signed: key.is_signed,
                };
                batch.add(row, &counts, client);
            }
        }
    }
}

/// Adds a slot for a new key, or finds that of all further applications if the shard is full.
#[cold]
fn add<'s>(slots: &'s mut Slots, key: Key, route: &Route, outcome: &Outcome<'_>) -> &'s mut Slot {
    let max = if key.is_signed {
        MAX_KEYS
    } else {
        MAX_KEYS / 2
    };
    let is_full = slots.len() >= max && key.application != NO_APPLICATION;
    let (key, ident) = if is_full {
        let other = Key {
            application: OTHER_APPLICATIONS,
            ..key
        };
        (other, None)
    } else {
        (key, outcome.learnt.app.and_then(|app| app.ident))
    };
    slots.entry(key).or_insert_with(|| Slot {
        version: Arc::clone(&route.backend.name.version),
        ident,
        counts: [0; SOURCES.len()],
        client: None,
        user_agent: String::new(),
    })
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
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_i64(self.application << 1 | i64::from(self.is_signed));
        state.write_usize(self.version);
    }
}

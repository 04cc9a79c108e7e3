//! Adds up what the keys of rate limits have used over all gateways on one store. `conf/guides/limits.md`.
//!
//! Once a second, each gateway reports what its keys have used, and learns what they have used of all gateways. Requests
//! never wait for it: between two reports each gateway decides by what it knows. If the store is unavailable, each
//! gateway counts by itself.

mod store;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use ring::hmac;
use signpost_kit::{
    limits::{Key, RateTable, Subject, Used},
    task::{Outcome, Task},
};
use signpost_proxy::{Gateway, program::RequestLimit};
use signpost_store::Store;
use tokio::time::{MissedTickBehavior, interval};

use self::store::{Added, HASH_BYTES, add_used, delete_refilled};

/// Interval of reports. With G gateways, a key is served at most G - 1 times its burst, and as often two intervals of its
/// rate, more often than by one gateway. `conf/guides/limits.md`.
const INTERVAL: Duration = Duration::from_secs(1);

/// Limit of the keys in a report, those that have used most: a flood of keys writes no more rows a second.
const MAX_KEYS: usize = 4096;

/// Reports from one deletion of rows whose tokens are refilled to the next. A gateway adds at most [`MAX_KEYS`] rows with each report.
const REPORTS_PER_DELETION: u32 = 10;

/// Shares what the keys of the current gateway have used with other processes.
pub(crate) struct RateSharing {
    current: Arc<ArcSwap<Gateway>>,
    store: Store,
    key: hmac::Key,
}

impl RateSharing {
    /// Shares over this store; `key` hides what the keys are.
    #[must_use]
    pub(crate) const fn new(current: Arc<ArcSwap<Gateway>>, store: Store, key: hmac::Key) -> Self {
        Self {
            current,
            store,
            key,
        }
    }

    /// Reports until the process ends. While nothing is shared, this does nothing.
    pub(crate) async fn run(self) {
        let mut task = Task::new(
            "rate limits cannot be shared, so this gateway counts by itself",
            "rate limits are shared again",
        );
        let mut turns = interval(INTERVAL);
        // After a store that was slow, no burst of reports catches up: one report has it all.
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reports = 0_u32;
        loop {
            turns.tick().await;
            let gateway = self.current.load_full();
            let Some(tables) = gateway.policy.rate_limits.shared() else {
                continue;
            };
            let mut outcome = self.report(tables.shared(Instant::now())).await;
            reports = reports.wrapping_add(1);
            if reports.is_multiple_of(REPORTS_PER_DELETION) && outcome.is_ok() {
                outcome = delete_refilled(&self.store).await.map(|()| true);
            }
            task.log(outcome);
        }
    }

    /// Reports what the keys have used, and applies what the store adds. `false` if there was nothing to report.
    async fn report(&self, tables: [&RateTable; RequestLimit::SHARED.len()]) -> Outcome {
        let now = Instant::now();
        let unreported = tables.map(|table| table.unreported(MAX_KEYS, now));
        let mut all: Vec<(usize, Used)> = unreported
            .into_iter()
            .enumerate()
            .flat_map(|(table, unreported)| unreported.into_iter().map(move |used| (table, used)))
            .collect();
        // Beyond the limit, the least used keys are left out: they are farthest from being rejected.
        all.sort_unstable_by_key(|(_, used)| std::cmp::Reverse(used.fullness));
        all.truncate(MAX_KEYS);
        if all.is_empty() {
            return Ok(false);
        }
        let added = all.iter().map(|(_, used)| Added {
            hash: self.hash(used),
            refill: used.refill_time(),
        });
        let added: Vec<_> = added.collect();
        let times = add_used(&self.store, added.clone()).await;
        // Read again: the store took its time, and tokens were refilled meanwhile.
        let now = Instant::now();
        for ((table, used), Added { hash, .. }) in all.iter().zip(&added) {
            match &times {
                Ok(times) => {
                    if let Some(refill) = times.get(hash) {
                        tables[*table].reported(used, *refill, now);
                    }
                }
                Err(_) => tables[*table].not_reported(used, now),
            }
        }
        times.map(|_| true)
    }

    /// The key in the store: the same at all gateways, and without the master key it does not tell an address.
    fn hash(&self, used: &Used) -> [u8; HASH_BYTES] {
        let Used { key, rate, .. } = used;
        let Key { rule, subject } = key;
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&rule.to_be_bytes());
        // What was used is of no use for another rate.
        context.update(&rate.per_second.get().to_be_bytes());
        context.update(&rate.burst.get().to_be_bytes());
        match subject {
            Subject::Application(id) => {
                // The letters keep the id of an application apart from the text of a network.
                context.update(b"a");
                context.update(&id.to_be_bytes());
            }
            Subject::All => {}
            Subject::Network(network) => {
                context.update(b"n");
                context.update(network.to_string().as_bytes());
            }
        }
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(context.sign().as_ref());
        hash
    }
}

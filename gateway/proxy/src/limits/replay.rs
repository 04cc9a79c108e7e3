//! The replay memory: accepted signatures that would still be valid if sent again. CONTRACT 3.

mod live_signs;
pub(crate) mod shared;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use signpost_protocol::{
    app::AppId,
    sign::{Sign, SignTime, Window},
};

use self::live_signs::{Halves, LiveSigns, SlotHash};

/// Stores the live signatures of every application, up to a limit per application; [`shared`], those of all gateways.
///
/// Applications are sharded over locks, each held for one lookup: 0.1 to 0.2 µs with up to 60,000 live signatures, of
/// the 20 µs that a request takes. So waits are rare, even if all requests are of one application.
#[derive(Debug)]
pub struct ReplayMemory {
    shards: [Shard; SHARDS],
    hash: SlotHash,
}

/// Limits of the replay memory.
#[derive(Clone, Copy, Debug)]
pub struct ReplayLimits {
    /// A signature is live up to this long after its `time`.
    pub window: Window,
    /// Limit of live signatures per application.
    pub entries_per_app: usize,
}

/// Number of locks: enough that requests of different applications seldom need the same one.
const SHARDS: usize = 64;

/// Aligned to its own cache lines, against false sharing: other processors use the neighbours.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<Apps>);

#[derive(Debug, Default)]
struct Apps {
    signs: BTreeMap<AppId, LiveSigns>,
    /// The number of signatures of all of them.
    stored: usize,
    /// The number of applications at which those without live signatures are removed.
    sweep_at: usize,
}

/// Minimum of applications in a shard for a sweep to be worthwhile.
const MIN_TO_SWEEP: usize = 4;

/// Why a signature was not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayInsertError {
    /// It is stored already: the request is a replay.
    Replayed,
    /// The application has reached its limit of live signatures. None is removed early: that would allow a replay.
    Full {
        /// Time until the first of them expires.
        until_room: Duration,
    },
}

impl ReplayMemory {
    /// An empty memory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard::default()),
            hash: SlotHash::new(),
        }
    }

    /// Inserts a verified signature, atomically: of concurrent requests with the same one, only one succeeds.
    ///
    /// # Errors
    ///
    /// It is stored already, or the application has reached its limit.
    pub fn insert(
        &self,
        app: AppId,
        sign: &Sign,
        time: SignTime,
        limits: ReplayLimits,
        now: SignTime,
    ) -> Result<(), ReplayInsertError> {
        let window = limits.window.duration();
        let window_millis = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        // The window is inclusive, so the signature is still live in that millisecond.
        let last_live = time.as_millis().saturating_add(window_millis);
        let now = now.as_millis();
        // Ids are serial numbers, so neighbours have different shards without a hash. Only verified signatures get
        // here: no stranger can fill an application's memory.
        let mut apps = self.shards[app.get() as usize % SHARDS].lock();
        let signs = apps.signs_of(app, now, self.hash);
        let before = signs.len();
        let inserted = signs.insert(
            Halves::from(sign),
            last_live,
            now,
            limits.entries_per_app,
            self.hash,
        );
        let after = signs.len();
        // An insertion also removes what has expired, so there may be fewer than before.
        apps.stored = apps.stored + after - before;
        inserted
    }

    /// The number of stored signatures. Expired ones count until the next request of their application.
    #[must_use]
    pub fn stored(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().stored).sum()
    }
}

impl Default for ReplayMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, Apps> {
        // A poisoned lock is used on: otherwise one panic would reject each signed request of these applications.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Apps {
    fn signs_of(&mut self, app: AppId, now: u64, hash: SlotHash) -> &mut LiveSigns {
        // Only a new application enlarges the map, so the requests of known ones never pay for a sweep.
        if self.signs.len() >= self.sweep_at && !self.signs.contains_key(&app) {
            self.sweep(now, hash);
        }
        self.signs.entry(app).or_default()
    }

    /// Removes applications without live signatures. The next sweep waits until their number has doubled, so that the
    /// amortized cost of a new application stays constant.
    fn sweep(&mut self, now: u64, hash: SlotHash) {
        self.signs.retain(|_, signs| !signs.is_empty_at(now, hash));
        self.stored = self.signs.values().map(LiveSigns::len).sum();
        self.sweep_at = MIN_TO_SWEEP.max(self.signs.len() * 2);
    }
}

#[cfg(test)]
mod tests;

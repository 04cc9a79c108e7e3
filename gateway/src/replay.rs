//! The replay memory: which signs were accepted and could still be accepted again. CONTRACT 3.

mod live_signs;

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gateway_protocol::{
    app::AppId,
    sign::{Sign, SignTime, Window},
};

use self::live_signs::{Halves, LiveSigns, PlaceHash};

/// Remembers the live signs of every application, up to a number for each. It is this gateway's own.
///
/// Applications are spread over locks, each held for one look-up: 0.1 to 0.2 µs with up to 60,000 live signs, of the
/// 20 µs that a request takes. So it is seldom waited for, even if all requests are of one application.
#[derive(Debug)]
pub struct ReplayMemory {
    shards: [Shard; SHARDS],
    hash: PlaceHash,
}

/// What is remembered, and how much of it.
#[derive(Clone, Copy, Debug)]
pub struct ReplayLimits {
    /// How long a sign is live, either way of its `time`.
    pub window: Window,
    /// Live signs of one application.
    pub entries_per_app: usize,
}

/// So many locks, that two requests of different applications seldom want the same one.
const SHARDS: usize = 64;

/// Alone in its cache lines: other processors use the neighbours.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<Apps>);

#[derive(Debug, Default)]
struct Apps {
    signs: BTreeMap<AppId, LiveSigns>,
    /// When there are so many, those without live signs are swept out.
    sweep_at: usize,
}

/// Below this a sweep of a shard is not worth its while.
const FEWEST_TO_SWEEP: usize = 4;

/// Why a sign was not taken into the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRemembered {
    /// It is there already.
    Replayed,
    /// The application's share is full of live signs; none is ever forgotten early.
    Full {
        /// When the first of them ends.
        until_room: Duration,
    },
}

impl ReplayMemory {
    /// An empty memory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard::default()),
            hash: PlaceHash::new(),
        }
    }

    /// Takes a verified sign in, at once and once only.
    ///
    /// # Errors
    ///
    /// It is there already, or there is no room.
    pub fn remember(
        &self,
        app: AppId,
        sign: &Sign,
        time: SignTime,
        limits: ReplayLimits,
        now: SignTime,
    ) -> Result<(), NotRemembered> {
        let window = limits.window.duration();
        let window_millis = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        // The edge of the window is inside, so the sign is live up to and in that millisecond.
        let last_live = time.as_millis().saturating_add(window_millis);
        let now = now.as_millis();
        let mut apps = self.shards[app.get() as usize % SHARDS].lock();
        apps.signs_of(app, now, self.hash).remember(
            Halves::from(sign),
            last_live,
            now,
            limits.entries_per_app,
            self.hash,
        )
    }
}

impl Default for ReplayMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, Apps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Apps {
    fn signs_of(&mut self, app: AppId, now: u64, hash: PlaceHash) -> &mut LiveSigns {
        if self.signs.len() >= self.sweep_at && !self.signs.contains_key(&app) {
            self.sweep(now, hash);
        }
        self.signs.entry(app).or_default()
    }

    /// Takes out who has no live sign. Twice as many must come before the next sweep, so that newcomers cost
    /// little however many there are.
    fn sweep(&mut self, now: u64, hash: PlaceHash) {
        self.signs.retain(|_, signs| !signs.is_empty_at(now, hash));
        self.sweep_at = FEWEST_TO_SWEEP.max(self.signs.len() * 2);
    }
}

#[cfg(test)]
mod tests;

//! The replay memory: which signs were accepted and could still be accepted again. CONTRACT 3.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, hash_map::Entry},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use gateway_protocol::{
    app::AppId,
    sign::{Sign, SignTime, Window},
};

/// The hash's bytes, filled up with zeros.
type Key = [u8; 32];

/// Remembers the live signs of every application, up to a number for each. It is this gateway's own.
#[derive(Debug)]
pub struct ReplayMemory {
    apps: RwLock<Apps>,
    entries_per_app: usize,
}

#[derive(Debug, Default)]
struct Apps {
    signs: HashMap<AppId, Arc<Mutex<LiveSigns>>>,
    /// When there are so many, those without live signs are swept out.
    sweep_at: usize,
}

/// Below this a sweep is not worth its while.
const FEWEST_TO_SWEEP: usize = 64;

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
    pub fn new(entries_per_app: usize) -> Self {
        Self {
            apps: RwLock::default(),
            entries_per_app,
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
        window: Window,
        now: SignTime,
    ) -> Result<(), NotRemembered> {
        let mut key = Key::default();
        key[..sign.as_bytes().len()].copy_from_slice(sign.as_bytes());
        let window_millis = u64::try_from(window.duration().as_millis()).unwrap_or(u64::MAX);
        // The edge of the window is inside, so the sign is live up to and in that millisecond.
        let last_live = time.as_millis().saturating_add(window_millis);
        let signs = self.signs_of(app, now);
        let mut signs = signs.lock().unwrap_or_else(PoisonError::into_inner);
        signs.remember(key, last_live, now.as_millis(), self.entries_per_app)
    }

    fn signs_of(&self, app: AppId, now: SignTime) -> Arc<Mutex<LiveSigns>> {
        let known = self.apps.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(signs) = known.signs.get(&app) {
            return Arc::clone(signs);
        }
        drop(known);
        let mut apps = self.apps.write().unwrap_or_else(PoisonError::into_inner);
        if apps.signs.len() >= apps.sweep_at {
            apps.sweep(now);
        }
        Arc::clone(apps.signs.entry(app).or_default())
    }
}

impl Apps {
    /// Takes out whom nobody is looking at and who has no live sign. Twice as many must come before the
    /// next sweep, so that newcomers cost little however many there are.
    fn sweep(&mut self, now: SignTime) {
        self.signs.retain(|_, signs| {
            let is_in_use = Arc::strong_count(signs) > 1;
            let mut signs = signs.lock().unwrap_or_else(PoisonError::into_inner);
            is_in_use || !signs.is_empty_at(now.as_millis())
        });
        self.sweep_at = FEWEST_TO_SWEEP.max(self.signs.len() * 2);
    }
}

/// One application's signs, and when each ends (UTC ms, the last one at which it is live).
#[derive(Debug, Default)]
struct LiveSigns {
    last_live: HashMap<Key, u64>,
    by_end: BinaryHeap<Reverse<(u64, Key)>>,
    /// The latest time that ended signs were forgotten at: one that had ended by then may have been one of them.
    forgotten_at: u64,
}

impl LiveSigns {
    fn remember(
        &mut self,
        key: Key,
        last_live: u64,
        now: u64,
        most: usize,
    ) -> Result<(), NotRemembered> {
        self.forget_ended(now);
        if last_live < self.forgotten_at {
            return Err(NotRemembered::Replayed);
        }
        let is_full = self.last_live.len() >= most;
        match self.last_live.entry(key) {
            Entry::Occupied(_) => Err(NotRemembered::Replayed),
            Entry::Vacant(_) if is_full => {
                let first_end = self.by_end.peek().map_or(now, |Reverse((end, _))| *end);
                let until_room = Duration::from_millis(first_end.saturating_sub(now) + 1);
                Err(NotRemembered::Full { until_room })
            }
            Entry::Vacant(place) => {
                place.insert(last_live);
                self.by_end.push(Reverse((last_live, key)));
                Ok(())
            }
        }
    }

    fn forget_ended(&mut self, now: u64) {
        self.forgotten_at = self.forgotten_at.max(now);
        while let Some(Reverse((end, key))) = self.by_end.peek()
            && *end < now
        {
            self.last_live.remove(key);
            self.by_end.pop();
        }
    }

    fn is_empty_at(&mut self, now: u64) -> bool {
        self.forget_ended(now);
        self.last_live.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_732_104_000_000;

    fn sign(byte: u8) -> Sign {
        Sign::from_hex(hex::encode([byte; 16]).as_bytes()).unwrap()
    }

    fn remember(
        memory: &ReplayMemory,
        app: i64,
        byte: u8,
        time: u64,
        now: u64,
    ) -> Result<(), NotRemembered> {
        let at = SignTime::from_millis;
        memory.remember(
            AppId::new(app),
            &sign(byte),
            at(time),
            Window::default(),
            at(now),
        )
    }

    #[test]
    fn a_sign_is_taken_once_for_each_application() {
        let memory = ReplayMemory::new(10);
        assert_eq!(remember(&memory, 1, 7, NOW, NOW), Ok(()));
        assert_eq!(
            remember(&memory, 1, 7, NOW, NOW + 1),
            Err(NotRemembered::Replayed)
        );
        assert_eq!(remember(&memory, 2, 7, NOW, NOW), Ok(()));
    }

    #[test]
    fn a_sign_is_kept_as_long_as_its_time_is_accepted() {
        let memory = ReplayMemory::new(1);
        let (early, end) = (NOW + 60_000, NOW + 120_000);
        assert_eq!(remember(&memory, 1, 7, early, NOW), Ok(()));
        assert_eq!(
            remember(&memory, 1, 7, early, end),
            Err(NotRemembered::Replayed)
        );
        let full = remember(&memory, 1, 8, end, end).unwrap_err();
        assert_eq!(
            full,
            NotRemembered::Full {
                until_room: Duration::from_millis(1)
            }
        );
        assert_eq!(remember(&memory, 1, 8, end, end + 1), Ok(()));
    }

    #[test]
    fn a_full_share_refuses_instead_of_forgetting() {
        let memory = ReplayMemory::new(2);
        remember(&memory, 1, 1, NOW, NOW).unwrap();
        remember(&memory, 1, 2, NOW, NOW).unwrap();
        let full = remember(&memory, 1, 3, NOW, NOW).unwrap_err();
        assert_eq!(
            full,
            NotRemembered::Full {
                until_room: Duration::from_millis(60_001)
            }
        );
        assert_eq!(
            remember(&memory, 1, 1, NOW, NOW),
            Err(NotRemembered::Replayed)
        );
        assert_eq!(remember(&memory, 2, 3, NOW, NOW), Ok(()));
        assert_eq!(remember(&memory, 1, 3, NOW + 60_001, NOW + 60_001), Ok(()));
    }

    #[test]
    fn a_sign_that_may_have_been_forgotten_is_not_taken_again() {
        let memory = ReplayMemory::new(10);
        assert_eq!(remember(&memory, 1, 7, NOW, NOW), Ok(()));
        // Somebody whose clock reading is a millisecond past the sign's end came first.
        assert_eq!(remember(&memory, 1, 8, NOW + 60_001, NOW + 60_001), Ok(()));
        assert_eq!(
            remember(&memory, 1, 7, NOW, NOW + 60_000),
            Err(NotRemembered::Replayed)
        );
    }

    #[test]
    fn applications_without_live_signs_leave_nothing_behind() {
        let memory = ReplayMemory::new(2);
        for app in 0..1000_i64 {
            let now = NOW + app.unsigned_abs() * 200_000;
            remember(&memory, app, 1, now, now).unwrap();
        }
        assert!(memory.apps.read().unwrap().signs.len() <= FEWEST_TO_SWEEP);
    }

    #[test]
    fn of_many_at_once_one_is_taken() {
        let memory = ReplayMemory::new(10);
        let taken = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| remember(&memory, 1, 7, NOW, NOW).is_ok()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .filter(|taken| *taken)
                .count()
        });
        assert_eq!(taken, 1);
    }
}

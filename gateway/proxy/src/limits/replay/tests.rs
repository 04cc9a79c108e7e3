//! Which signatures the replay memory accepts, and for how long it stores them.

use super::*;

const NOW: u64 = 1_732_104_000_000;

fn sign(byte: u8) -> Sign {
    Sign::from_hex(hex::encode([byte; 16]).as_bytes()).unwrap()
}

/// A memory with this limit per application.
struct Limited {
    memory: ReplayMemory,
    limits: ReplayLimits,
}

impl Limited {
    fn new(entries_per_app: usize) -> Self {
        Self {
            memory: ReplayMemory::new(),
            limits: ReplayLimits {
                window: Window::default(),
                entries_per_app,
            },
        }
    }
}

fn insert(
    memory: &Limited,
    app: i64,
    byte: u8,
    time: u64,
    now: u64,
) -> Result<(), ReplayInsertError> {
    let at = SignTime::from_millis;
    memory.memory.insert(
        AppId::new(app),
        &sign(byte),
        at(time),
        memory.limits,
        at(now),
    )
}

#[test]
fn a_sign_is_accepted_once_per_application() {
    let memory = Limited::new(10);
    assert_eq!(insert(&memory, 1, 7, NOW, NOW), Ok(()));
    assert_eq!(
        insert(&memory, 1, 7, NOW, NOW + 1),
        Err(ReplayInsertError::Replayed)
    );
    assert_eq!(insert(&memory, 2, 7, NOW, NOW), Ok(()));
}

#[test]
fn a_sign_is_stored_as_long_as_its_time_is_accepted() {
    let memory = Limited::new(1);
    let (early, end) = (NOW + 60_000, NOW + 120_000);
    assert_eq!(insert(&memory, 1, 7, early, NOW), Ok(()));
    assert_eq!(
        insert(&memory, 1, 7, early, end),
        Err(ReplayInsertError::Replayed)
    );
    let full = insert(&memory, 1, 8, end, end).unwrap_err();
    assert_eq!(
        full,
        ReplayInsertError::Full {
            until_room: Duration::from_millis(1)
        }
    );
    assert_eq!(insert(&memory, 1, 8, end, end + 1), Ok(()));
}

#[test]
fn at_the_limit_new_signs_are_refused_and_none_is_removed() {
    let memory = Limited::new(2);
    insert(&memory, 1, 1, NOW, NOW).unwrap();
    insert(&memory, 1, 2, NOW, NOW).unwrap();
    let full = insert(&memory, 1, 3, NOW, NOW).unwrap_err();
    assert_eq!(
        full,
        ReplayInsertError::Full {
            until_room: Duration::from_millis(60_001)
        }
    );
    assert_eq!(
        insert(&memory, 1, 1, NOW, NOW),
        Err(ReplayInsertError::Replayed)
    );
    assert_eq!(insert(&memory, 2, 3, NOW, NOW), Ok(()));
    assert_eq!(insert(&memory, 1, 3, NOW + 60_001, NOW + 60_001), Ok(()));
}

#[test]
fn a_sign_that_may_have_been_removed_is_not_accepted_again() {
    let memory = Limited::new(10);
    assert_eq!(insert(&memory, 1, 7, NOW, NOW), Ok(()));
    // A request that read the clock a millisecond after the signature's expiry came first.
    assert_eq!(insert(&memory, 1, 8, NOW + 60_001, NOW + 60_001), Ok(()));
    assert_eq!(
        insert(&memory, 1, 7, NOW, NOW + 60_000),
        Err(ReplayInsertError::Replayed)
    );
}

#[test]
fn a_sign_is_a_replay_with_any_other_time() {
    let memory = Limited::new(10);
    assert_eq!(insert(&memory, 1, 7, NOW, NOW), Ok(()));
    for time in [NOW - 60_000, NOW - 1_000, NOW + 1_000, NOW + 60_000] {
        assert_eq!(
            insert(&memory, 1, 7, time, NOW),
            Err(ReplayInsertError::Replayed)
        );
    }
}

#[test]
fn a_sign_is_still_a_replay_after_the_window_changes() {
    let mut memory = Limited::new(10);
    assert_eq!(insert(&memory, 1, 7, NOW, NOW), Ok(()));
    for seconds in [300, 1] {
        memory.limits.window = Window::from_seconds(seconds).unwrap();
        assert_eq!(
            insert(&memory, 1, 7, NOW, NOW + 1_000),
            Err(ReplayInsertError::Replayed)
        );
    }
}

#[test]
fn applications_without_live_signs_are_removed() {
    let memory = Limited::new(2);
    for app in 0..10_000_i64 {
        let now = NOW + app.unsigned_abs() * 200_000;
        insert(&memory, app, 1, now, now).unwrap();
    }
    let left: usize = memory
        .memory
        .shards
        .iter()
        .map(|shard| shard.lock().signs.len())
        .sum();
    assert!(left <= SHARDS * MIN_TO_SWEEP, "{left}");
}

#[test]
fn of_concurrent_inserts_one_succeeds() {
    let memory = Limited::new(10);
    let taken = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| insert(&memory, 1, 7, NOW, NOW).is_ok()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .filter(|taken| *taken)
            .count()
    });
    assert_eq!(taken, 1);
}

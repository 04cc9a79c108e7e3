//! What the memory takes, for how long, and from whom.

use super::*;

const NOW: u64 = 1_732_104_000_000;

fn sign(byte: u8) -> Sign {
    Sign::from_hex(hex::encode([byte; 16]).as_bytes()).unwrap()
}

/// A memory of so many signs an application.
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

fn remember(
    memory: &Limited,
    app: i64,
    byte: u8,
    time: u64,
    now: u64,
) -> Result<(), NotRemembered> {
    let at = SignTime::from_millis;
    memory.memory.remember(
        AppId::new(app),
        &sign(byte),
        at(time),
        memory.limits,
        at(now),
    )
}

#[test]
fn a_sign_is_taken_once_for_each_application() {
    let memory = Limited::new(10);
    assert_eq!(remember(&memory, 1, 7, NOW, NOW), Ok(()));
    assert_eq!(
        remember(&memory, 1, 7, NOW, NOW + 1),
        Err(NotRemembered::Replayed)
    );
    assert_eq!(remember(&memory, 2, 7, NOW, NOW), Ok(()));
}

#[test]
fn a_sign_is_kept_as_long_as_its_time_is_accepted() {
    let memory = Limited::new(1);
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
    let memory = Limited::new(2);
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
    let memory = Limited::new(10);
    assert_eq!(remember(&memory, 1, 7, NOW, NOW), Ok(()));
    // Somebody whose clock reading is a millisecond past the sign's end came first.
    assert_eq!(remember(&memory, 1, 8, NOW + 60_001, NOW + 60_001), Ok(()));
    assert_eq!(
        remember(&memory, 1, 7, NOW, NOW + 60_000),
        Err(NotRemembered::Replayed)
    );
}

#[test]
fn a_sign_is_remembered_whatever_time_comes_with_it_again() {
    let memory = Limited::new(10);
    assert_eq!(remember(&memory, 1, 7, NOW, NOW), Ok(()));
    for time in [NOW - 60_000, NOW - 1_000, NOW + 1_000, NOW + 60_000] {
        assert_eq!(
            remember(&memory, 1, 7, time, NOW),
            Err(NotRemembered::Replayed)
        );
    }
}

#[test]
fn a_sign_is_kept_when_the_window_changes() {
    let mut memory = Limited::new(10);
    assert_eq!(remember(&memory, 1, 7, NOW, NOW), Ok(()));
    for seconds in [300, 1] {
        memory.limits.window = Window::from_seconds(seconds).unwrap();
        assert_eq!(
            remember(&memory, 1, 7, NOW, NOW + 1_000),
            Err(NotRemembered::Replayed)
        );
    }
}

#[test]
fn applications_without_live_signs_leave_nothing_behind() {
    let memory = Limited::new(2);
    for app in 0..10_000_i64 {
        let now = NOW + app.unsigned_abs() * 200_000;
        remember(&memory, app, 1, now, now).unwrap();
    }
    let kept: usize = memory
        .memory
        .shards
        .iter()
        .map(|shard| shard.lock().signs.len())
        .sum();
    assert!(kept <= SHARDS * FEWEST_TO_SWEEP, "{kept}");
}

#[test]
fn of_many_at_once_one_is_taken() {
    let memory = Limited::new(10);
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

//! What is remembered, for how long, and what of it serves while the store is away.

use std::sync::Mutex;

use signpost_kit::clock::Timestamp;

use super::*;

const LIFETIME: Duration = Duration::from_secs(60);

/// Stands still until it is told to go on.
struct StoppedClock(Mutex<Instant>);

impl StoppedClock {
    fn later(&self, seconds: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(seconds);
    }
}

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        panic!("how late it is does not matter here");
    }

    fn instant(&self) -> Instant {
        *self.0.lock().unwrap()
    }
}

struct Memory {
    memory: ReadThrough<u8, u8>,
    clock: Arc<StoppedClock>,
}

impl Memory {
    fn new() -> Self {
        let clock = Arc::new(StoppedClock(Mutex::new(Instant::now())));
        let memory = ReadThrough::new(10, LIFETIME, Arc::clone(&clock) as Arc<dyn Clock>);
        Self { memory, clock }
    }

    /// What a request is told while the store has `stored`.
    async fn find(&self, stored: Option<u8>) -> Option<u8> {
        self.memory.find(1, async { Ok(stored) }).await.unwrap()
    }

    /// The same, without a store; `None` is an error.
    async fn find_without_store(&self) -> Option<u8> {
        let away = async { Err(StoreError::Busy) };
        match self.memory.find(1, away).await {
            Ok(found) => Some(found.expect("a store that is away knows of nothing that is not")),
            Err(error) => {
                assert!(matches!(error, StoreError::Busy));
                None
            }
        }
    }

    /// Fails the test if the store is asked.
    async fn find_remembered(&self) -> Option<u8> {
        let read = async { panic!("remembered") };
        self.memory.find(1, read).await.unwrap()
    }
}

#[tokio::test]
async fn a_found_value_is_remembered_and_forgotten() {
    let memory = Memory::new();
    assert_eq!(memory.find(None).await, None);
    assert_eq!(memory.find(Some(5)).await, Some(5));
    assert_eq!(memory.find_remembered().await, Some(5));
    memory.memory.forget(&1);
    assert_eq!(memory.find(None).await, None);
}

#[tokio::test]
async fn what_was_read_before_a_change_is_not_remembered_after_it() {
    let memory = Memory::new();
    let read = async {
        memory.memory.forget(&1);
        Ok(Some(5))
    };
    assert_eq!(memory.memory.find(1, read).await.unwrap(), Some(5));
    assert_eq!(memory.find(None).await, None);
}

#[tokio::test]
async fn an_old_value_is_read_again() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.clock.later(59);
    assert_eq!(memory.find_remembered().await, Some(5));
    memory.clock.later(1);
    assert_eq!(memory.find(Some(6)).await, Some(6));
    memory.clock.later(59);
    assert_eq!(memory.find_remembered().await, Some(6));
    memory.clock.later(1);
    assert_eq!(memory.find(None).await, None);
    assert_eq!(memory.find_without_store().await, None);
}

#[tokio::test]
async fn an_old_value_serves_where_it_cannot_be_read_again() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.clock.later(3600);
    assert_eq!(memory.find_without_store().await, Some(5));
    assert_eq!(memory.find_remembered().await, Some(5), "for a moment");
    memory.clock.later(1);
    assert_eq!(memory.find(Some(6)).await, Some(6));
}

#[tokio::test]
async fn a_value_read_just_before_an_outage_serves_for_five_minutes_of_it() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.clock.later(59);
    memory.memory.lose_feed();
    for seconds in [1, 60, 238] {
        memory.clock.later(seconds);
        assert_eq!(memory.find_without_store().await, Some(5), "{seconds}");
    }
    // Said again, it is the same outage.
    memory.memory.lose_feed();
    memory.clock.later(1);
    assert_eq!(memory.find_without_store().await, None);
}

#[tokio::test]
async fn after_five_minutes_without_changes_everything_is_read() {
    let memory = Memory::new();
    memory.memory.lose_feed();
    memory.clock.later(299);
    assert_eq!(memory.find(Some(5)).await, Some(5));
    assert_eq!(memory.find_remembered().await, Some(5));
    memory.clock.later(1);
    assert_eq!(memory.find(Some(6)).await, Some(6), "fresh, and untold");
    assert_eq!(memory.find(Some(7)).await, Some(7));
    assert_eq!(memory.find_without_store().await, None);
}

#[tokio::test]
async fn when_changes_are_heard_again_nothing_is_remembered_and_all_is_as_before() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.memory.lose_feed();
    memory.clock.later(3600);
    memory.memory.forget_all();
    assert_eq!(memory.find_without_store().await, None);
    assert_eq!(memory.find(Some(6)).await, Some(6));
    assert_eq!(memory.find_remembered().await, Some(6));
    memory.clock.later(3600);
    assert_eq!(memory.find_without_store().await, Some(6));
}

#[tokio::test]
async fn what_changed_while_it_could_not_be_read_does_not_serve() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.clock.later(60);
    let read = async {
        memory.memory.forget(&1);
        Err(StoreError::Busy)
    };
    assert!(memory.memory.find(1, read).await.is_err());
}

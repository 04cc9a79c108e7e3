//! What is cached, for how long, and what of it serves while the store does not answer.

use super::*;
use crate::clock::ManualClock;

const LIFETIME: Duration = Duration::from_secs(60);

type TestCache = FeedCache<u8, u8, StoreError>;

struct Memory {
    memory: TestCache,
    clock: ManualClock,
}

impl Memory {
    fn new() -> Self {
        Self::with(Unknown::LookedUp)
    }

    fn with(unknown: Unknown) -> Self {
        let clock = ManualClock::default();
        let settings = FeedCacheSettings {
            topic: Topic::Credential,
            entries: 10,
            lifetime: LIFETIME,
            unknown,
        };
        let memory = FeedCache::new(settings, Arc::new(clock.clone()));
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
            Ok(found) => {
                Some(found.expect("a store that does not answer knows of nothing that is not"))
            }
            Err(error) => {
                assert!(matches!(*error, StoreError::Busy));
                None
            }
        }
    }

    /// Fails the test if the store is asked.
    async fn find_cached(&self) -> Option<u8> {
        let read = async { panic!("cached") };
        self.memory.find(1, read).await.unwrap()
    }

    fn later(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn hears(&self, change: &Change) {
        self.memory.on_change(change, key_of);
    }
}

/// Keys of one byte; anything else is none.
fn key_of(key: &[u8]) -> Option<u8> {
    match key {
        [key] => Some(*key),
        _ => None,
    }
}

fn change_of(topic: Topic, key: &[u8]) -> Change {
    Change::Item {
        topic,
        key: key.to_vec(),
    }
}

#[tokio::test]
async fn a_found_value_is_cached_until_it_changes() {
    let memory = Memory::new();
    assert_eq!(memory.find(None).await, None);
    assert_eq!(memory.find(Some(5)).await, Some(5));
    assert_eq!(memory.find_cached().await, Some(5));
    memory.memory.invalidate(1);
    assert_eq!(memory.find(None).await, None);
}

#[tokio::test]
async fn what_was_read_before_a_change_is_not_cached_after_it() {
    let memory = Memory::new();
    let read = async {
        memory.memory.invalidate(1);
        Ok(Some(5))
    };
    assert_eq!(memory.memory.find(1, read).await.unwrap(), Some(5));
    assert_eq!(memory.find(None).await, None);
}

#[tokio::test]
async fn a_stale_value_is_read_again() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.later(60);
    assert_eq!(memory.find_cached().await, Some(5));
    memory.later(1);
    assert_eq!(memory.find(Some(6)).await, Some(6));
    memory.later(60);
    assert_eq!(memory.find_cached().await, Some(6));
    memory.later(1);
    assert_eq!(memory.find(None).await, None);
    assert_eq!(memory.find_without_store().await, None);
}

#[tokio::test]
async fn a_stale_value_serves_where_it_cannot_be_read_again() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.later(3600);
    assert_eq!(memory.find_without_store().await, Some(5));
    assert_eq!(memory.find_cached().await, Some(5), "for a moment");
    memory.later(1);
    assert_eq!(memory.find(Some(6)).await, Some(6));
}

#[tokio::test]
async fn a_value_read_just_before_an_outage_serves_for_five_minutes_of_it() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.later(59);
    memory.hears(&Change::Lost);
    for seconds in [1, 60, 239] {
        memory.later(seconds);
        assert_eq!(memory.find_without_store().await, Some(5), "{seconds}");
    }
    // Said again, it is the same outage.
    memory.hears(&Change::Lost);
    memory.later(1);
    assert_eq!(memory.find_without_store().await, None);
}

#[tokio::test]
async fn after_five_minutes_without_changes_everything_is_read() {
    let memory = Memory::new();
    memory.hears(&Change::Lost);
    memory.later(300);
    assert_eq!(memory.find(Some(5)).await, Some(5));
    assert_eq!(memory.find_cached().await, Some(5));
    memory.later(1);
    assert_eq!(memory.find(Some(6)).await, Some(6), "fresh, and untold");
    assert_eq!(memory.find(Some(7)).await, Some(7));
    assert_eq!(memory.find_without_store().await, None);
}

#[tokio::test]
async fn when_changes_are_heard_again_nothing_is_cached_and_all_is_as_before() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.hears(&Change::Lost);
    memory.later(3600);
    memory.hears(&Change::Everything);
    assert_eq!(memory.find_without_store().await, None);
    assert_eq!(memory.find(Some(6)).await, Some(6));
    assert_eq!(memory.find_cached().await, Some(6));
    memory.later(3600);
    assert_eq!(memory.find_without_store().await, Some(6));
}

#[tokio::test]
async fn what_changed_while_it_could_not_be_read_does_not_serve() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.later(61);
    let read = async {
        memory.memory.invalidate(1);
        Err(StoreError::Busy)
    };
    assert!(memory.memory.find(1, read).await.is_err());
}

#[tokio::test]
async fn that_there_is_nothing_is_cached_where_it_is_wanted() {
    let memory = Memory::with(Unknown::Cached);
    assert_eq!(memory.find(None).await, None);
    assert_eq!(memory.find_cached().await, None);
    memory.hears(&change_of(Topic::Credential, &[1]));
    assert_eq!(memory.find(Some(5)).await, Some(5));
}

#[tokio::test]
async fn only_changes_of_its_own_kind_count_and_an_unknown_key_means_all() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.hears(&change_of(Topic::Application, &[1]));
    memory.hears(&change_of(Topic::Credential, &[2]));
    assert_eq!(memory.find_cached().await, Some(5));
    for key in [&[1][..], b"", b"12"] {
        memory.hears(&change_of(Topic::Credential, key));
        assert_eq!(memory.find(None).await, None, "{key:?}");
        assert_eq!(memory.find(Some(5)).await, Some(5));
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_used_is_no_store_that_does_not_answer() {
    let memory = Memory::new();
    assert_eq!(memory.find(Some(5)).await, Some(5));
    memory.later(61);
    let read = async { Err(StoreError::Malformed("test")) };
    assert!(memory.memory.find(1, read).await.is_err());
    assert_eq!(memory.find_without_store().await, None);
}

#[tokio::test]
async fn a_full_cache_drops_values() {
    let memory = Memory::new();
    for key in 0..100 {
        let found = memory.memory.find(key, async { Ok(Some(key)) }).await;
        assert_eq!(found.unwrap(), Some(key));
    }
    memory.memory.cache.run_pending_tasks();
    assert!(memory.memory.cache.entry_count() <= 10);
}

//! What is cached, for how long, and which values are used while the store does not answer.

use std::pin::pin;

use super::*;
use crate::clock::ManualClock;

const LIFETIME: Duration = Duration::from_secs(60);

type TestCache = FeedCache<u8, u8, StoreError>;

struct Fixture {
    cache: TestCache,
    clock: ManualClock,
}

impl Fixture {
    fn new() -> Self {
        Self::with(UnknownKeys::LookedUp)
    }

    fn with(unknown_keys: UnknownKeys) -> Self {
        let clock = ManualClock::default();
        let settings = FeedCacheSettings {
            topic: Topic::Credential,
            entries: 10,
            lifetime: LIFETIME,
            unknown_keys,
        };
        let cache = FeedCache::new(settings, Arc::new(clock.clone()));
        Self { cache, clock }
    }

    /// The value that a request gets while the store has `stored`.
    async fn find(&self, stored: Option<u8>) -> Option<u8> {
        self.cache.find(1, async { Ok(stored) }).await.unwrap()
    }

    /// The same without a store; `None` is an error.
    async fn find_without_store(&self) -> Option<u8> {
        let unavailable = async { Err(StoreError::Busy) };
        match self.cache.find(1, unavailable).await {
            Ok(found) => {
                Some(found.expect("an unavailable store cannot report that a key is missing"))
            }
            Err(error) => {
                assert!(matches!(*error, StoreError::Busy));
                None
            }
        }
    }

    /// The cached value; fails the test if the store is queried.
    async fn find_cached(&self) -> Option<u8> {
        let read = async { panic!("cached") };
        self.cache.find(1, read).await.unwrap()
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn deliver(&self, change: &Change) {
        self.cache.on_change(change, keys_of);
    }

    /// The feed is lost, and returns at once.
    fn blip(&self) {
        self.deliver(&Change::Lost);
        self.deliver(&Change::Restored);
    }
}

async fn is_pending<T>(future: impl Future<Output = T>) -> bool {
    tokio::time::timeout(Duration::ZERO, future).await.is_err()
}

/// Keys are one byte; anything else does not decode.
fn keys_of(key: &[u8]) -> Option<[u8; 1]> {
    match key {
        [key] => Some([*key]),
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
    let fixture = Fixture::new();
    assert_eq!(fixture.find(None).await, None);
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    assert_eq!(fixture.find_cached().await, Some(5));
    fixture.cache.invalidate(1);
    assert_eq!(fixture.find(None).await, None);
}

#[tokio::test]
async fn a_value_read_before_a_change_is_not_cached_after_it() {
    let fixture = Fixture::new();
    let read = async {
        fixture.cache.invalidate(1);
        Ok(Some(5))
    };
    assert_eq!(fixture.cache.find(1, read).await.unwrap(), Some(5));
    assert_eq!(fixture.find(None).await, None);
}

#[tokio::test]
async fn a_stale_value_is_read_again() {
    let fixture = Fixture::new();
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    fixture.advance(60);
    assert_eq!(fixture.find_cached().await, Some(5));
    fixture.advance(1);
    assert_eq!(fixture.find(Some(6)).await, Some(6));
    fixture.advance(60);
    assert_eq!(fixture.find_cached().await, Some(6));
    fixture.advance(1);
    assert_eq!(fixture.find(None).await, None);
    assert_eq!(fixture.find_without_store().await, None);
}

#[tokio::test]
async fn a_stale_value_is_used_if_it_cannot_be_read_again() {
    let fixture = Fixture::new();
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    fixture.advance(3600);
    assert_eq!(fixture.find_without_store().await, Some(5));
    assert_eq!(fixture.find_cached().await, Some(5), "during the back-off");
    fixture.advance(1);
    assert_eq!(fixture.find(Some(6)).await, Some(6));
}

#[tokio::test]
async fn a_value_read_just_before_an_outage_is_used_for_five_minutes() {
    let fixture = Fixture::new();
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    fixture.advance(59);
    fixture.deliver(&Change::Lost);
    for seconds in [1, 60, 239] {
        fixture.advance(seconds);
        assert_eq!(fixture.find_without_store().await, Some(5), "{seconds}");
    }
    // Delivered again, it is the same outage.
    fixture.deliver(&Change::Lost);
    fixture.advance(1);
    assert_eq!(fixture.find_without_store().await, None);
}

#[tokio::test]
async fn after_five_minutes_without_the_feed_every_value_is_read() {
    let fixture = Fixture::new();
    fixture.deliver(&Change::Lost);
    fixture.advance(300);
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    assert_eq!(fixture.find_cached().await, Some(5));
    fixture.advance(1);
    assert_eq!(
        fixture.find(Some(6)).await,
        Some(6),
        "fresh, but the feed is lost"
    );
    assert_eq!(fixture.find(Some(7)).await, Some(7));
    assert_eq!(fixture.find_without_store().await, None);
}

#[tokio::test]
async fn when_the_feed_returns_a_value_is_read_again_before_it_is_used() {
    let fixture = Fixture::new();
    let fresh = || fixture.cache.fresh(&1);
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    let kept = fresh().unwrap();
    fixture.blip();
    assert!(fresh().is_none() && !fixture.cache.is_still_fresh(&kept));
    // All callers wait for the same read.
    let permit = tokio::sync::Semaphore::new(0);
    let read = async {
        permit.acquire().await.unwrap().forget();
        Ok(Some(6))
    };
    let (mut first, mut second) = (
        pin!(fixture.cache.find(1, read)),
        pin!(fixture.find_cached()),
    );
    assert!(is_pending(&mut first).await && is_pending(&mut second).await);
    permit.add_permits(1);
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first.unwrap(), second), (Some(6), Some(6)));
    assert_eq!(fixture.find_cached().await, Some(6));
    assert!(fresh().is_some());
}

#[tokio::test]
async fn a_value_is_used_if_the_store_is_lost_again_before_it_was_read() {
    for unknown_keys in [UnknownKeys::LookedUp, UnknownKeys::Cached] {
        let fixture = Fixture::with(unknown_keys);
        assert_eq!(fixture.find(Some(5)).await, Some(5));
        for _ in 0..3 {
            fixture.blip();
            assert_eq!(fixture.find_without_store().await, Some(5));
            assert_eq!(fixture.find_cached().await, Some(5), "during the back-off");
            fixture.deliver(&Change::Lost);
            assert_eq!(fixture.find_cached().await, Some(5), "during the back-off");
            fixture.advance(1);
            assert_eq!(fixture.find_without_store().await, Some(5));
            fixture.deliver(&Change::Restored);
        }
        // It was deleted meanwhile.
        assert_eq!(fixture.find(None).await, None);
        fixture.deliver(&Change::Lost);
        let found = fixture.cache.find(1, async { Err(StoreError::Busy) }).await;
        assert_eq!(found.is_ok(), unknown_keys == UnknownKeys::Cached);
    }
}

#[tokio::test]
async fn no_return_of_the_feed_prolongs_the_five_minutes_of_an_outage() {
    let fixture = Fixture::new();
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    for second in 0..600 {
        fixture.deliver(&Change::Lost);
        let (found, expected) = (
            fixture.find_without_store().await,
            (second <= 300).then_some(5),
        );
        assert_eq!(found, expected, "{second}");
        fixture.deliver(&Change::Restored);
        let found = fixture.find_without_store().await;
        assert_eq!(found, expected, "{second}");
        fixture.advance(1);
    }
    assert_eq!(fixture.find(Some(6)).await, Some(6));
    assert_eq!(fixture.find_cached().await, Some(6));
}

#[tokio::test]
async fn a_store_that_flaps_for_ten_minutes_serves_all_and_hides_no_change() {
    // The store answers for one of five seconds; the feed notices each loss and each return. The value changes while the
    // store does not answer.
    let fixture = Fixture::new();
    let mut known = fixture.find(Some(5)).await;
    for tenth in 1..6000 {
        fixture.clock.advance(Duration::from_millis(100));
        let stored = if tenth < 2_025 { 5 } else { 6 };
        match tenth % 50 {
            0 => fixture.deliver(&Change::Restored),
            10 => fixture.deliver(&Change::Lost),
            _ => {}
        }
        if tenth >= 50 && tenth % 50 < 10 {
            // The first caller after the return reads, and all get what it found.
            known = fixture.find(Some(stored)).await;
            assert_eq!(known, Some(stored), "{tenth}");
        } else {
            assert_eq!(fixture.find_without_store().await, known, "{tenth}");
        }
    }
    assert_eq!(known, Some(6));
}

#[tokio::test]
async fn a_read_from_before_the_return_of_the_feed_is_unconfirmed() {
    let fixture = Fixture::new();
    // Alone, it is better than nothing.
    let read = async {
        fixture.blip();
        Ok(Some(5))
    };
    assert_eq!(fixture.cache.find(1, read).await.unwrap(), Some(5));
    assert!(fixture.cache.fresh(&1).is_none());
    assert_eq!(fixture.find_without_store().await, Some(5));
    // But it replaces none that was read later.
    fixture.advance(1);
    let slow = async {
        fixture.blip();
        fixture.advance(1);
        assert_eq!(fixture.find(Some(6)).await, Some(6));
        Ok(Some(5))
    };
    assert_eq!(fixture.cache.find(1, slow).await.unwrap(), Some(5));
    assert_eq!(fixture.find_cached().await, Some(6));
}

#[tokio::test]
async fn a_resized_cache_knows_the_outages() {
    let fixture = Fixture::new();
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    fixture.blip();
    let resized = fixture.cache.resized(20);
    assert!(resized.fresh(&1).is_none());
    let found = resized.find(1, async { Err(StoreError::Busy) }).await;
    assert_eq!(found.unwrap(), Some(5));
    fixture.advance(301);
    let found = resized.find(1, async { Err(StoreError::Busy) }).await;
    assert!(found.is_err());
}

#[tokio::test]
async fn if_everything_may_have_changed_the_cache_is_emptied() {
    let fixture = Fixture::new();
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    fixture.deliver(&Change::Everything);
    assert_eq!(fixture.find_without_store().await, None);
    assert_eq!(fixture.find(Some(6)).await, Some(6));
    assert_eq!(fixture.find_cached().await, Some(6));
}

#[tokio::test]
async fn a_value_that_changed_during_a_failed_read_is_not_used() {
    let fixture = Fixture::new();
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    fixture.advance(61);
    let read = async {
        fixture.cache.invalidate(1);
        Err(StoreError::Busy)
    };
    assert!(fixture.cache.find(1, read).await.is_err());
}

#[tokio::test]
async fn the_absence_of_a_key_is_cached_if_configured() {
    let fixture = Fixture::with(UnknownKeys::Cached);
    assert_eq!(fixture.find(None).await, None);
    assert_eq!(fixture.find_cached().await, None);
    fixture.deliver(&change_of(Topic::Credential, &[1]));
    assert_eq!(fixture.find(Some(5)).await, Some(5));
}

#[tokio::test]
async fn other_topics_are_ignored_and_an_undecodable_key_invalidates_all() {
    let fixture = Fixture::new();
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    fixture.deliver(&change_of(Topic::Application, &[1]));
    fixture.deliver(&change_of(Topic::Credential, &[2]));
    assert_eq!(fixture.find_cached().await, Some(5));
    for key in [&[1][..], b"", b"12"] {
        fixture.deliver(&change_of(Topic::Credential, key));
        assert_eq!(fixture.find(None).await, None, "{key:?}");
        assert_eq!(fixture.find(Some(5)).await, Some(5));
    }
}

#[tokio::test]
async fn an_unusable_value_invalidates_the_stale_one() {
    let fixture = Fixture::new();
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    fixture.advance(61);
    let read = async { Err(StoreError::Malformed("test")) };
    assert!(fixture.cache.find(1, read).await.is_err());
    assert_eq!(fixture.find_without_store().await, None);
}

#[tokio::test]
async fn a_fresh_value_needs_no_lookup_and_a_stale_one_is_left_to_a_lookup() {
    let fixture = Fixture::new();
    let fresh = || fixture.cache.fresh(&1).map(|fresh| fresh.value);
    assert_eq!(fresh(), None);
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    assert_eq!(fresh(), Some(5));
    fixture.advance(61);
    assert_eq!(fresh(), None);
    assert_eq!(fixture.find(Some(6)).await, Some(6));
    assert_eq!(fresh(), Some(6));
    fixture.deliver(&Change::Lost);
    assert_eq!(fresh(), Some(6), "used for five minutes");
    fixture.advance(301);
    assert_eq!(fresh(), None);
    fixture.deliver(&Change::Restored);
    assert_eq!(fixture.find(Some(7)).await, Some(7));
    fixture.deliver(&change_of(Topic::Credential, &[1]));
    assert_eq!(fresh(), None);
}

#[tokio::test]
async fn a_value_kept_beside_the_cache_ends_with_any_change_and_by_age() {
    let fixture = Fixture::new();
    let changes = [
        change_of(Topic::Credential, &[1]),
        change_of(Topic::Credential, &[2]),
        change_of(Topic::Credential, b"all"),
        Change::Everything,
        Change::Restored,
    ];
    for change in changes {
        fixture.find(Some(5)).await;
        let kept = fixture.cache.fresh(&1).unwrap();
        fixture.deliver(&change_of(Topic::Application, &[1]));
        assert!(fixture.cache.is_still_fresh(&kept));
        fixture.deliver(&change);
        assert!(!fixture.cache.is_still_fresh(&kept), "{change:?}");
    }
    // What strangers can do, a lookup of an unknown key, ends nothing.
    fixture.find(Some(5)).await;
    let kept = fixture.cache.fresh(&1).unwrap();
    let unknown = fixture.cache.find(9, async { Ok(None) }).await;
    assert_eq!(unknown.unwrap(), None);
    assert!(fixture.cache.is_still_fresh(&kept));
    fixture.advance(61);
    assert!(!fixture.cache.is_still_fresh(&kept));
}

#[tokio::test]
async fn a_value_that_was_read_before_a_change_is_not_kept_after_it() {
    let fixture = Fixture::new();
    fixture.find(Some(5)).await;
    let kept = fixture.cache.fresh(&1).unwrap();
    // A change of another key during the lookup removes what the lookup has cached.
    let read = async {
        fixture.cache.changes.fetch_add(1, Ordering::AcqRel);
        Ok(Some(5))
    };
    fixture.cache.find(2, read).await.unwrap();
    assert!(!fixture.cache.is_still_fresh(&kept));
}

#[tokio::test]
async fn a_full_cache_drops_values() {
    let fixture = Fixture::new();
    for key in 0..100 {
        let found = fixture.cache.find(key, async { Ok(Some(key)) }).await;
        assert_eq!(found.unwrap(), Some(key));
    }
    assert!(fixture.cache.cache.count()[0] <= 10);
}

#[tokio::test]
async fn unknown_keys_evict_no_value() {
    let fixture = Fixture::with(UnknownKeys::Cached);
    let values = (0..10).map(|key| (key, Some(key)));
    assert!(fixture.cache.load(fixture.cache.begin_load(), values));
    for key in 10..200 {
        for _ in 0..5 {
            let unknown = fixture.cache.find(key, async { Ok(None) }).await;
            assert_eq!(unknown.unwrap(), None);
        }
    }
    let [values, unknown] = fixture.cache.cache.count();
    assert!(values == 10 && unknown <= 10, "{values} {unknown}");
    let read = async { panic!("cached") };
    assert_eq!(fixture.cache.find(9, read).await.unwrap(), Some(9));
}

#[tokio::test]
async fn values_that_are_loaded_while_one_changes_are_not_cached() {
    let fixture = Fixture::new();
    let load = fixture.cache.begin_load();
    fixture.deliver(&change_of(Topic::Credential, &[2]));
    assert!(!fixture.cache.load(load, [(1, Some(5)), (2, Some(6))]));
    assert_eq!(fixture.find_without_store().await, None);
    let load = fixture.cache.begin_load();
    assert!(fixture.cache.load(load, [(1, Some(5)), (2, None)]));
    assert_eq!(fixture.find_cached().await, Some(5));
}

#[tokio::test]
async fn a_load_that_a_change_made_useless_removes_nothing() {
    let fixture = Fixture::new();
    assert_eq!(fixture.find(Some(5)).await, Some(5));
    for change in [2, 3] {
        let load = fixture.cache.begin_load();
        // First the cached value is fresh, then it is unconfirmed.
        let values = [(1, Some(6)), (2, Some(7))].into_iter().inspect(|_| {
            fixture.deliver(&change_of(Topic::Credential, &[change]));
        });
        assert!(!fixture.cache.load(load, values));
        assert_eq!(fixture.find_without_store().await, Some(5));
        fixture.blip();
    }
    // An unconfirmed value is replaced.
    let load = fixture.cache.begin_load();
    assert!(fixture.cache.load(load, [(1, Some(8))]));
    assert_eq!(fixture.find_cached().await, Some(8));
}

#[tokio::test]
async fn restored_values_are_used_until_they_are_too_old_or_the_store_answers() {
    let (left, kept) = (Fixture::new(), Fixture::new());
    for fixture in [&left, &kept] {
        fixture.cache.restore(Duration::from_secs(200), [(1, 5)]);
        assert_eq!(fixture.find_without_store().await, Some(5));
        let time = fixture.cache.time_without_store();
        assert_eq!(time, Duration::from_secs(100));
    }
    left.advance(101);
    assert_eq!(left.find_without_store().await, None);
    assert_eq!(left.cache.time_without_store(), Duration::ZERO);
    kept.deliver(&Change::Restored);
    assert_eq!(kept.find_without_store().await, Some(5));
    kept.advance(2);
    assert_eq!(kept.find(Some(6)).await, Some(6));
}

#[tokio::test]
async fn lookups_are_counted_by_their_result() {
    let fixture = Fixture::with(UnknownKeys::Cached);
    let counts = |cache: &TestCache| {
        let CacheStatus { lookups, entries } = cache.status();
        let [hits, misses, stale] = Lookup::ALL.map(|result| lookups.value(result));
        [hits, misses, stale, entries]
    };
    assert_eq!(counts(&fixture.cache), [0; 4]);
    // Unknown, then known to be unknown.
    fixture.find(None).await;
    fixture.find_cached().await;
    assert_eq!(counts(&fixture.cache), [1, 1, 0, 1]);
    // A caller that needs a value goes on to `find`, which counts it.
    assert!(fixture.cache.fresh(&1).is_none());
    assert_eq!(counts(&fixture.cache), [1, 1, 0, 1]);
    fixture.cache.invalidate(1);
    fixture.find(Some(5)).await;
    assert!(fixture.cache.fresh(&1).is_some());
    fixture.cache.count_hit();
    assert_eq!(counts(&fixture.cache), [3, 2, 0, 1]);
    fixture.advance(61);
    assert_eq!(fixture.find_without_store().await, Some(5));
    assert_eq!(counts(&fixture.cache), [3, 2, 1, 1]);
    fixture.advance(61);
    fixture.find(Some(6)).await;
    assert_eq!(counts(&fixture.cache), [3, 3, 1, 1]);
    // Expired, and the store does not answer.
    fixture.cache.invalidate(1);
    assert_eq!(fixture.find_without_store().await, None);
    assert_eq!(counts(&fixture.cache), [3, 4, 1, 0]);
    let resized = fixture.cache.resized(20);
    resized.find(2, async { Ok(Some(1)) }).await.unwrap();
    assert_eq!(counts(&resized), [3, 5, 1, 1]);
    fixture.cache.clear();
    assert_eq!(fixture.cache.status().entries, 0);
}

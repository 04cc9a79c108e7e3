//! The cache while the store is available, silent or unavailable, with a manual clock.

use std::{
    pin::pin,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use signpost_kit::{cache::BACK_OFF, clock::ManualClock};
use signpost_protocol::app::AppId;
use signpost_store::StoreError;
use tokio::sync::Notify;

use super::*;
use crate::{directory::apps::AppState, testing::sealer};

const SECOND: Duration = Duration::from_secs(1);

fn ident() -> AppIdent {
    "a".repeat(24).parse().unwrap()
}

fn app(id: i64) -> App {
    App {
        id: AppId::new(id),
        ident: Some(ident()),
        state: AppState::Active,
        key: "ab".repeat(32).parse().unwrap(),
        previous_key: None,
        profile: None,
        default_version: None,
        rate_limit: None,
        extensions: Box::default(),
    }
}

/// How the store answers a lookup.
#[derive(Clone, Copy)]
enum Behaviour {
    /// It finds an application with this id.
    Has(i64),
    /// It finds none.
    HasNone,
    /// It does not answer until it is released, and then fails.
    Silent,
    /// It is unavailable.
    Unavailable,
    /// It finds a malformed record.
    Broken,
    /// It finds a key under a master key that this gateway does not know.
    OtherMasterKey,
}

struct FakeStore {
    behaviour: Mutex<Behaviour>,
    look_ups: AtomicU32,
    release: Notify,
}

#[async_trait]
impl AppStore for FakeStore {
    async fn find(&self, _: AppIdent) -> Result<Option<App>, AppStoreError> {
        self.look_ups.fetch_add(1, Ordering::Relaxed);
        let behaviour = *self.behaviour.lock().unwrap();
        match behaviour {
            Behaviour::Has(id) => Ok(Some(app(id))),
            Behaviour::HasNone => Ok(None),
            Behaviour::Silent => {
                self.release.notified().await;
                Err(StoreError::TimedOut.into())
            }
            Behaviour::Unavailable => Err(StoreError::Busy.into()),
            Behaviour::Broken => Err(AppStoreError::Malformed("test")),
            Behaviour::OtherMasterKey => {
                let id = sealer().current();
                Err(SealError::OtherMasterKey(id).into())
            }
        }
    }
}

/// A cache, its store, and its clock.
struct Scene {
    apps: Arc<CachedApps>,
    store: Arc<FakeStore>,
    clock: ManualClock,
}

impl Scene {
    fn new(behaviour: Behaviour) -> Self {
        let store = Arc::new(FakeStore {
            behaviour: Mutex::new(behaviour),
            look_ups: AtomicU32::new(0),
            release: Notify::new(),
        });
        let clock = ManualClock::default();
        let behind = Arc::clone(&store) as Arc<dyn AppStore>;
        let apps = CachedApps::with_clock(behind, 100, Arc::new(clock.clone()));
        Self { apps, store, clock }
    }

    /// With the store's answer cached at time 0.
    async fn cached(behaviour: Behaviour) -> Self {
        let scene = Self::new(behaviour);
        scene.find().await.unwrap();
        scene
    }

    fn set_behaviour(&self, behaviour: Behaviour) {
        *self.store.behaviour.lock().unwrap() = behaviour;
    }

    fn advance(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn notify(&self, change: &Change) {
        self.apps.subscriber()(change);
    }

    /// The found application's id.
    async fn find(&self) -> Result<Option<AppId>, Arc<AppStoreError>> {
        let found = self.apps.find(ident()).await?;
        Ok(found.map(|app| app.id))
    }

    async fn finds_id(&self, id: i64) -> bool {
        self.find().await.unwrap() == Some(AppId::new(id))
    }

    fn look_ups(&self) -> u32 {
        self.store.look_ups.load(Ordering::Relaxed)
    }
}

async fn is_pending<T>(future: impl Future<Output = T>) -> bool {
    tokio::time::timeout(Duration::ZERO, future).await.is_err()
}

#[tokio::test]
async fn an_entry_is_refreshed_after_five_minutes() {
    let scene = Scene::cached(Behaviour::Has(1)).await;
    scene.set_behaviour(Behaviour::Has(2));
    scene.advance(LIFETIME);
    assert!(scene.finds_id(1).await && scene.look_ups() == 1);
    scene.advance(SECOND);
    assert!(scene.finds_id(2).await && scene.look_ups() == 2);
    scene.advance(LIFETIME);
    assert!(scene.finds_id(2).await && scene.look_ups() == 2);
}

#[tokio::test]
async fn if_the_store_is_unavailable_an_entry_is_used_for_another_five_minutes() {
    for behaviour in [Behaviour::Has(1), Behaviour::HasNone] {
        let scene = Scene::cached(behaviour).await;
        let known = scene.find().await.unwrap();
        scene.advance(LIFETIME.saturating_sub(SECOND));
        scene.set_behaviour(Behaviour::Unavailable);
        scene.notify(&Change::Lost);
        for _ in 0..300 {
            scene.advance(SECOND);
            assert_eq!(scene.find().await.unwrap(), known);
        }
        scene.advance(SECOND);
        let error = scene.find().await.unwrap_err();
        assert!(matches!(*error, AppStoreError::Store(_)), "{error}");
        // A value that is read now is used, but not cached.
        scene.set_behaviour(Behaviour::Has(2));
        assert!(scene.finds_id(2).await);
        scene.set_behaviour(Behaviour::Unavailable);
        scene.find().await.unwrap_err();
        // After the feed is restored, it is cached.
        scene.notify(&Change::Restored);
        scene.set_behaviour(Behaviour::Has(3));
        assert!(scene.finds_id(3).await);
        scene.set_behaviour(Behaviour::Unavailable);
        scene.advance(LIFETIME + SECOND);
        assert!(scene.finds_id(3).await);
    }
}

#[tokio::test]
async fn after_the_feed_is_restored_an_entry_is_read_again_and_used_if_that_fails() {
    let scene = Scene::cached(Behaviour::Has(1)).await;
    scene.set_behaviour(Behaviour::Unavailable);
    for _ in 0..2 {
        scene.notify(&Change::Lost);
        assert!(scene.finds_id(1).await);
        scene.notify(&Change::Restored);
        assert!(scene.finds_id(1).await);
    }
    scene.advance(SECOND);
    scene.set_behaviour(Behaviour::Has(2));
    assert!(scene.finds_id(2).await);
}

#[tokio::test]
async fn only_one_caller_waits_for_a_silent_store() {
    let scene = Scene::cached(Behaviour::Has(1)).await;
    scene.set_behaviour(Behaviour::Silent);
    scene.advance(LIFETIME + SECOND);
    let mut first = pin!(scene.finds_id(1));
    assert!(is_pending(&mut first).await);
    for _ in 0..10 {
        assert!(scene.finds_id(1).await);
    }
    assert_eq!(scene.look_ups(), 2);
    scene.store.release.notify_one();
    assert!(first.await, "the waiting caller gets the stale entry, too");
    // It is retried only after the back-off.
    scene.advance(BACK_OFF.saturating_sub(Duration::from_millis(1)));
    assert!(scene.finds_id(1).await && scene.look_ups() == 2);
    scene.set_behaviour(Behaviour::Has(2));
    scene.advance(Duration::from_millis(1));
    assert!(scene.finds_id(2).await && scene.look_ups() == 3);
}

#[tokio::test]
async fn if_a_refreshing_caller_is_cancelled_the_next_one_refreshes() {
    let scene = Scene::cached(Behaviour::Has(1)).await;
    scene.set_behaviour(Behaviour::Silent);
    scene.advance(LIFETIME + SECOND);
    assert!(is_pending(scene.find()).await);
    scene.set_behaviour(Behaviour::Has(2));
    assert!(scene.finds_id(2).await);
}

#[tokio::test]
async fn an_entry_that_changed_during_its_refresh_is_not_used() {
    let scene = Scene::cached(Behaviour::Has(1)).await;
    scene.set_behaviour(Behaviour::Silent);
    scene.advance(LIFETIME + SECOND);
    let mut first = pin!(scene.find());
    assert!(is_pending(&mut first).await);
    scene.notify(&Change::Item {
        topic: Topic::Application,
        key: ident().as_str().as_bytes().to_vec(),
    });
    scene.store.release.notify_one();
    first.await.unwrap_err();
}

#[tokio::test]
async fn a_change_of_all_applications_invalidates_all_entries() {
    for behaviour in [Behaviour::Has(1), Behaviour::HasNone] {
        let scene = Scene::cached(behaviour).await;
        scene.set_behaviour(Behaviour::Has(2));
        scene.notify(&Change::Item {
            topic: Topic::Application,
            key: Vec::new(),
        });
        assert!(scene.finds_id(2).await);
    }
}

#[tokio::test]
async fn a_malformed_record_does_not_count_as_an_unavailable_store() {
    let scene = Scene::cached(Behaviour::Has(1)).await;
    scene.set_behaviour(Behaviour::Broken);
    scene.advance(LIFETIME + SECOND);
    for _ in 0..2 {
        let error = scene.find().await.unwrap_err();
        assert!(matches!(*error, AppStoreError::Malformed(_)), "{error}");
    }
}

#[tokio::test]
async fn what_is_cached_is_served_while_the_store_has_it_under_an_unknown_master_key() {
    let scene = Scene::cached(Behaviour::Has(1)).await;
    scene.set_behaviour(Behaviour::OtherMasterKey);
    scene.advance(LIFETIME + SECOND);
    assert!(scene.finds_id(1).await && scene.finds_id(1).await);
    assert!(scene.look_ups() > 1);
    // A change may be a key that was replaced, or the application's end.
    let (topic, key) = (Topic::Application, ident().as_str().as_bytes().to_vec());
    scene.notify(&Change::Item { topic, key });
    let error = scene.find().await.unwrap_err();
    assert!(matches!(*error, AppStoreError::Seal(_)), "{error}");
}

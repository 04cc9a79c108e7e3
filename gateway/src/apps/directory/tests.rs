//! What is remembered while the store is there, silent, or away. The time is the tests' own.

use std::{
    pin::pin,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use async_trait::async_trait;
use signpost_kit::{
    clock::{ManualClock, Timestamp},
    feed_cache::BACK_OFF,
};
use signpost_store::StoreError;
use tokio::sync::Notify;

use super::*;
use crate::apps::store::{AppSummary, AppUpdate, ImportOutcome, NewApp, Rotated, Rotation};

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
    }
}

/// What a store does when it is asked for an application.
#[derive(Clone, Copy)]
enum Manner {
    /// It has one of that id.
    Has(i64),
    /// It has none.
    HasNone,
    /// It says nothing until it is let go, and fails then.
    Silent,
    /// It fails.
    Away,
    /// It has a record that cannot be used.
    Broken,
}

struct FakeStore {
    manner: Mutex<Manner>,
    asked: AtomicU32,
    let_go: Notify,
}

#[async_trait]
impl AppStore for FakeStore {
    async fn find(&self, _: AppIdent) -> Result<Option<App>, AppStoreError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let manner = *self.manner.lock().unwrap();
        match manner {
            Manner::Has(id) => Ok(Some(app(id))),
            Manner::HasNone => Ok(None),
            Manner::Silent => {
                self.let_go.notified().await;
                Err(StoreError::TimedOut.into())
            }
            Manner::Away => Err(StoreError::Busy.into()),
            Manner::Broken => Err(AppStoreError::Malformed("test")),
        }
    }

    async fn create(&self, _: NewApp) -> Result<(), AppStoreError> {
        unreachable!("requests create nothing")
    }

    async fn import(&self, _: Vec<NewApp>) -> Result<ImportOutcome, AppStoreError> {
        unreachable!("requests administer nothing")
    }

    async fn taken(&self, _: Vec<AppIdent>) -> Result<Vec<AppIdent>, AppStoreError> {
        unreachable!("requests administer nothing")
    }

    async fn update(&self, _: AppUpdate) -> Result<bool, AppStoreError> {
        unreachable!("requests administer nothing")
    }

    async fn forget_previous(&self, _: Timestamp) -> Result<u64, AppStoreError> {
        unreachable!("requests administer nothing")
    }

    async fn summary(&self, _: AppIdent) -> Result<Option<AppSummary>, AppStoreError> {
        unreachable!("requests want no summary")
    }

    async fn list(&self) -> Result<Vec<AppSummary>, AppStoreError> {
        unreachable!("requests list nothing")
    }

    async fn rotate(&self, _: Rotation) -> Result<Rotated, AppStoreError> {
        unreachable!("requests rotate nothing")
    }

    async fn set_state(&self, _: AppIdent, _: AppState) -> Result<bool, AppStoreError> {
        unreachable!("requests change nothing")
    }

    async fn delete(&self, _: AppIdent) -> Result<bool, AppStoreError> {
        unreachable!("requests delete nothing")
    }
}

/// A memory, the store behind it, and the time.
struct Scene {
    apps: Arc<CachedApps>,
    store: Arc<FakeStore>,
    clock: ManualClock,
}

impl Scene {
    fn new(manner: Manner) -> Self {
        let store = Arc::new(FakeStore {
            manner: Mutex::new(manner),
            asked: AtomicU32::new(0),
            let_go: Notify::new(),
        });
        let clock = ManualClock::default();
        let behind = Arc::clone(&store) as Arc<dyn AppStore>;
        let apps = CachedApps::with_clock(behind, 100, Arc::new(clock.clone()));
        Self { apps, store, clock }
    }

    /// Has remembered what there is, at the beginning of time.
    async fn remembering(manner: Manner) -> Self {
        let scene = Self::new(manner);
        scene.finds().await.unwrap();
        scene
    }

    fn becomes(&self, manner: Manner) {
        *self.store.manner.lock().unwrap() = manner;
    }

    fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn hears(&self, change: &Change) {
        self.apps.subscriber()(change);
    }

    /// The found application's id.
    async fn finds(&self) -> Result<Option<AppId>, Arc<AppStoreError>> {
        let found = self.apps.find(ident()).await?;
        Ok(found.map(|app| app.id))
    }

    async fn finds_id(&self, id: i64) -> bool {
        self.finds().await.unwrap() == Some(AppId::new(id))
    }

    fn asked(&self) -> u32 {
        self.store.asked.load(Ordering::Relaxed)
    }
}

async fn is_pending<T>(future: impl Future<Output = T>) -> bool {
    tokio::time::timeout(Duration::ZERO, future).await.is_err()
}

#[tokio::test]
async fn a_record_is_read_again_after_five_minutes() {
    let scene = Scene::remembering(Manner::Has(1)).await;
    scene.becomes(Manner::Has(2));
    scene.pass(LIFETIME);
    assert!(scene.finds_id(1).await && scene.asked() == 1);
    scene.pass(SECOND);
    assert!(scene.finds_id(2).await && scene.asked() == 2);
    scene.pass(LIFETIME);
    assert!(scene.finds_id(2).await && scene.asked() == 2);
}

#[tokio::test]
async fn with_the_store_away_a_record_serves_five_minutes_more_however_old() {
    for manner in [Manner::Has(1), Manner::HasNone] {
        let scene = Scene::remembering(manner).await;
        let known = scene.finds().await.unwrap();
        scene.pass(LIFETIME.saturating_sub(SECOND));
        scene.becomes(Manner::Away);
        scene.hears(&Change::Lost);
        for _ in 0..300 {
            scene.pass(SECOND);
            assert_eq!(scene.finds().await.unwrap(), known);
        }
        scene.pass(SECOND);
        let error = scene.finds().await.unwrap_err();
        assert!(matches!(*error, AppStoreError::Store(_)), "{error}");
        // What is read then is right, and is not remembered.
        scene.becomes(Manner::Has(2));
        assert!(scene.finds_id(2).await);
        scene.becomes(Manner::Away);
        scene.finds().await.unwrap_err();
        // Heard of again, it is.
        scene.hears(&Change::Everything);
        scene.becomes(Manner::Has(3));
        assert!(scene.finds_id(3).await);
        scene.becomes(Manner::Away);
        scene.pass(LIFETIME + SECOND);
        assert!(scene.finds_id(3).await);
    }
}

#[tokio::test]
async fn when_changes_are_heard_of_again_nothing_from_before_serves() {
    let scene = Scene::remembering(Manner::Has(1)).await;
    scene.becomes(Manner::Has(2));
    scene.hears(&Change::Lost);
    assert!(scene.finds_id(1).await);
    scene.hears(&Change::Everything);
    assert!(scene.finds_id(2).await);
}

#[tokio::test]
async fn nobody_else_waits_for_a_silent_store() {
    let scene = Scene::remembering(Manner::Has(1)).await;
    scene.becomes(Manner::Silent);
    scene.pass(LIFETIME + SECOND);
    let mut first = pin!(scene.finds_id(1));
    assert!(is_pending(&mut first).await);
    for _ in 0..10 {
        assert!(scene.finds_id(1).await);
    }
    assert_eq!(scene.asked(), 2);
    scene.store.let_go.notify_one();
    assert!(first.await, "the old record serves who has waited, too");
    // Not again at once, but a while after it failed.
    scene.pass(BACK_OFF.saturating_sub(Duration::from_millis(1)));
    assert!(scene.finds_id(1).await && scene.asked() == 2);
    scene.becomes(Manner::Has(2));
    scene.pass(Duration::from_millis(1));
    assert!(scene.finds_id(2).await && scene.asked() == 3);
}

#[tokio::test]
async fn who_goes_away_while_reading_again_leaves_it_to_the_next() {
    let scene = Scene::remembering(Manner::Has(1)).await;
    scene.becomes(Manner::Silent);
    scene.pass(LIFETIME + SECOND);
    assert!(is_pending(scene.finds()).await);
    scene.becomes(Manner::Has(2));
    assert!(scene.finds_id(2).await);
}

#[tokio::test]
async fn what_changed_while_it_was_read_again_does_not_serve() {
    let scene = Scene::remembering(Manner::Has(1)).await;
    scene.becomes(Manner::Silent);
    scene.pass(LIFETIME + SECOND);
    let mut first = pin!(scene.finds());
    assert!(is_pending(&mut first).await);
    scene.hears(&Change::Item {
        topic: Topic::Application,
        key: ident().as_str().as_bytes().to_vec(),
    });
    scene.store.let_go.notify_one();
    first.await.unwrap_err();
}

#[tokio::test]
async fn a_change_of_all_applications_makes_all_be_read_again() {
    for manner in [Manner::Has(1), Manner::HasNone] {
        let scene = Scene::remembering(manner).await;
        scene.becomes(Manner::Has(2));
        scene.hears(&Change::Item {
            topic: Topic::Application,
            key: ALL_APPLICATIONS.to_vec(),
        });
        assert!(scene.finds_id(2).await);
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_used_is_no_store_that_is_away() {
    let scene = Scene::remembering(Manner::Has(1)).await;
    scene.becomes(Manner::Broken);
    scene.pass(LIFETIME + SECOND);
    for _ in 0..2 {
        let error = scene.finds().await.unwrap_err();
        assert!(matches!(*error, AppStoreError::Malformed(_)), "{error}");
    }
}

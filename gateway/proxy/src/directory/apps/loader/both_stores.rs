//! Which applications are cached, and what the snapshot has of them.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, pin::pin};

use futures_util::FutureExt;
use signpost_kit::{
    clock::{ManualClock, Timestamp},
    server::shutdown::LastWrite,
};
use signpost_protocol::{app::AppId, sign::AppKey};
use signpost_store::{
    Change, Topic, Value,
    tables::{
        applications::{self, ApplicationRow, ApplicationSettings},
        audit::{Action, Audit, Author, Entry},
    },
    testing::TestStore,
};
use tempfile::TempDir;

use super::*;
use crate::{
    directory::apps::{
        AppState,
        seal::{Slot, new_app_ident, new_app_key},
        snapshot::SnapshotError,
    },
    testing::sealer,
};

/// An application of the store.
struct Created {
    ident: AppIdent,
    key: AppKey,
}

fn audit(action: Action, ident: AppIdent) -> Audit {
    let author = Author {
        actor: "ada".to_owned(),
        origin: "test".to_owned(),
        reason: None,
    };
    let entry = Entry {
        subject: ident.to_string(),
        revision: 1,
        changes: "{}".to_owned(),
    };
    Audit::of_one(Timestamp::from_millis(1), author, action, entry)
}

async fn create(apps: &StoredApps, name: &str) -> Created {
    let (ident, key) = (new_app_ident().unwrap(), new_app_key().unwrap());
    let row = ApplicationRow {
        id: AppId::new(0),
        ident: ident.to_string(),
        name: name.to_owned(),
        state: AppState::Active.as_str().to_owned(),
        created_at: Timestamp::from_millis(1),
        key: apps.sealer().seal(&key, ident, Slot::Current).unwrap(),
        previous_key: None,
        previous_until: None,
        revision: 1,
        settings: ApplicationSettings {
            sign_profile: None,
            return_to_origins: "[]".to_owned(),
            default_version: None,
            rate_limit: None,
            extensions: None,
        },
    };
    let audit = audit(Action::CreateApp, ident);
    let inserted = applications::insert(apps.database(), vec![row], audit).await;
    inserted.unwrap();
    Created { ident, key }
}

struct Scene {
    store: StoredApps,
    apps: Arc<CachedApps>,
    loader: AppLoader,
    clock: ManualClock,
    folder: TempDir,
}

fn file(path: &Path, store: &str) -> SnapshotFile {
    SnapshotFile {
        path: path.join("applications.snapshot"),
        keys: sealer().snapshot_keys(),
        store: store.to_owned(),
    }
}

impl Scene {
    async fn new(test: &TestStore, entries: u64) -> Self {
        let store = StoredApps::new(test.open().await, sealer());
        let apps = CachedApps::new(Arc::new(store.clone()), entries);
        let (folder, clock) = (tempfile::tempdir().unwrap(), ManualClock::default());
        let snapshot = Some(file(folder.path(), "a"));
        let caches = Arc::clone(&apps.all);
        let time: Arc<dyn Clock> = Arc::new(clock.clone());
        let loader = AppLoader::new(store.clone(), caches, snapshot, time);
        Self {
            store,
            apps,
            loader,
            clock,
            folder,
        }
    }

    fn notify(&self, app: &Created) {
        let key = app.ident.as_str().as_bytes().to_vec();
        let topic = Topic::Application;
        self.apps.subscriber()(&Change::Item { topic, key });
    }

    async fn disable(&self, app: &Created) {
        let database = self.store.database();
        let row = applications::find(database, app.ident)
            .await
            .unwrap()
            .unwrap();
        let mut new = row.clone();
        new.state = AppState::Disabled.as_str().to_owned();
        new.revision += 1;
        let audit = audit(Action::DisableApp, app.ident);
        let disabled = applications::replace(database, &row, new, audit).await;
        assert!(disabled.unwrap());
        self.notify(app);
    }

    fn cached(&self) -> u64 {
        self.apps.cache.status().entries
    }

    fn path(&self) -> std::path::PathBuf {
        file(self.folder.path(), "a").path
    }

    /// The idents and states in the snapshot.
    fn read(&self) -> Vec<(AppIdent, AppState)> {
        let snapshot = file(self.folder.path(), "a")
            .read(100, &self.store)
            .unwrap();
        let apps = snapshot.apps.into_iter();
        apps.map(|(ident, app)| (ident, app.state)).collect()
    }
}

#[tokio::test]
async fn all_applications_are_cached_and_stay_so_when_they_change() {
    let test = TestStore::chosen();
    let mut scene = Scene::new(&test, 3).await;
    let (one, _) = (
        create(&scene.store, "one").await,
        create(&scene.store, "two").await,
    );
    scene.loader.turn().await.unwrap();
    assert_eq!(scene.cached(), 2);
    let three = create(&scene.store, "three").await;
    scene.disable(&one).await;
    scene.notify(&three);
    assert_eq!(scene.cached(), 1);
    scene.loader.turn().await.unwrap();
    assert_eq!(scene.cached(), 3);
    scene.apps.subscriber()(&Change::Everything);
    assert_eq!(scene.cached(), 0);
    scene.loader.turn().await.unwrap();
    assert_eq!(scene.cached(), 3);
    test.make_unavailable();
    let found = scene.apps.find(one.ident).await.unwrap().unwrap();
    assert_eq!(found.state, AppState::Disabled);
    // Nothing has changed, so nothing is read.
    scene.loader.turn().await.unwrap();
}

#[tokio::test]
async fn applications_that_do_not_fit_are_not_loaded_until_the_cache_is_larger() {
    let test = TestStore::chosen();
    let mut scene = Scene::new(&test, 1).await;
    create(&scene.store, "one").await;
    create(&scene.store, "two").await;
    scene.loader.turn().await.unwrap();
    assert_eq!(scene.cached(), 0);
    assert!(!scene.path().exists());
    scene.apps = scene.apps.resized(2);
    scene.loader.turn().await.unwrap();
    assert_eq!((scene.cached(), scene.read().len()), (2, 2));
}

#[tokio::test]
async fn the_snapshot_follows_changes_and_its_time_the_store() {
    let test = TestStore::chosen();
    let mut scene = Scene::new(&test, 100).await;
    let one = create(&scene.store, "one").await;
    scene.loader.turn().await.unwrap();
    let time = |scene: &Scene| {
        let snapshot = file(scene.folder.path(), "a").read(100, &scene.store);
        snapshot.unwrap().true_at
    };
    let first = time(&scene);
    assert_eq!(
        (first, scene.read()),
        (scene.clock.now(), vec![(one.ident, AppState::Active)])
    );
    let mode = fs::metadata(scene.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(scene.path()).unwrap();
    assert!(text.contains(one.ident.as_str()) && !text.contains(one.key.expose()));
    // The time is renewed while the change feed is read.
    let database = scene.store.database().clone();
    let watch = tokio::task::spawn_blocking(move || database.watch(Duration::default, drop));
    let _watch = watch.await.unwrap().unwrap();
    scene.clock.advance(Duration::from_secs(20));
    scene.loader.turn().await.unwrap();
    let renewed = time(&scene);
    assert!(renewed > first.plus(Duration::from_secs(10)) && renewed < scene.clock.now());
    // A change is written, but not more often than every half a minute; until then the time stays.
    scene.disable(&one).await;
    scene.clock.advance(Duration::from_secs(9));
    scene.loader.turn().await.unwrap();
    assert_eq!(
        (time(&scene), scene.read()),
        (renewed, vec![(one.ident, AppState::Active)])
    );
    scene.clock.advance(Duration::from_secs(1));
    scene.loader.turn().await.unwrap();
    assert_eq!(scene.read(), [(one.ident, AppState::Disabled)]);
    assert_eq!(time(&scene), scene.clock.now());
}

#[tokio::test]
async fn a_snapshot_that_was_removed_or_replaced_is_written_anew() {
    let test = TestStore::chosen();
    let mut scene = Scene::new(&test, 100).await;
    create(&scene.store, "one").await;
    scene.loader.turn().await.unwrap();
    let database = scene.store.database().clone();
    let watch = tokio::task::spawn_blocking(move || database.watch(Duration::default, drop));
    let _watch = watch.await.unwrap().unwrap();
    let remove: fn(&Path) = |path| fs::remove_file(path).unwrap();
    let replace: fn(&Path) = |path| {
        let other = path.with_extension("other");
        fs::write(&other, "another").unwrap();
        fs::rename(other, path).unwrap();
    };
    for lose in [remove, replace] {
        lose(&scene.path());
        scene.clock.advance(SNAPSHOT_INTERVAL);
        // The renewal finds it missing, then it is written.
        for _ in 0..2 {
            scene.loader.turn().await.unwrap();
        }
        assert_eq!(scene.read().len(), 1);
    }
}

#[tokio::test]
async fn applications_are_counted_again_when_they_change() {
    let test = TestStore::chosen();
    let mut scene = Scene::new(&test, 2).await;
    scene.loader.snapshot = None;
    create(&scene.store, "one").await;
    scene.loader.turn().await.unwrap();
    assert_eq!(scene.loader.fits, Some(true));
    for name in ["two", "three"] {
        let app = create(&scene.store, name).await;
        scene.notify(&app);
    }
    scene.clock.advance(COUNT_INTERVAL);
    scene.loader.turn().await.unwrap();
    assert_eq!(scene.loader.fits, Some(false));
    // One is removed.
    let delete = "DELETE FROM applications WHERE name = 'three'";
    let deleted = scene.store.database().execute(delete, Vec::new()).await;
    deleted.unwrap();
    scene.apps.subscriber()(&Change::Item {
        topic: Topic::Application,
        key: b"three".to_vec(),
    });
    scene.loader.turn().await.unwrap();
    assert_eq!(
        scene.loader.fits,
        Some(false),
        "not more than once a minute"
    );
    scene.clock.advance(COUNT_INTERVAL);
    scene.loader.turn().await.unwrap();
    assert_eq!((scene.loader.fits, scene.cached()), (Some(true), 2));
}

#[tokio::test]
async fn a_changed_or_foreign_snapshot_is_refused() {
    let test = TestStore::chosen();
    let mut scene = Scene::new(&test, 100).await;
    create(&scene.store, "one").await;
    let broken = create(&scene.store, "two").await;
    let name = broken.ident.as_str();
    let cut = format!("UPDATE applications SET key_sealed = $1 WHERE ident = '{name}'");
    let sealed = vec![Value::from(b"no key")];
    scene.store.database().execute(&cut, sealed).await.unwrap();
    scene.loader.turn().await.unwrap();
    // An application that the store would not give either is left out.
    let whole = fs::read(scene.path()).unwrap();
    let read = |of: &str, entries| file(scene.folder.path(), of).read(entries, &scene.store);
    assert_eq!(read("a", 1).unwrap().apps.len(), 1);
    assert!(matches!(read("another", 1), Err(SnapshotError::Refused)));
    for at in (0..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(scene.path(), changed).unwrap();
        assert!(matches!(read("a", 1), Err(SnapshotError::Refused)), "{at}");
        fs::write(scene.path(), &whole[..at]).unwrap();
        assert!(matches!(read("a", 1), Err(SnapshotError::Refused)), "{at}");
    }
    fs::remove_file(scene.path()).unwrap();
    assert!(matches!(read("a", 1), Err(SnapshotError::Unreadable(_))));
}

#[tokio::test]
async fn a_stop_is_told_that_the_snapshot_is_written_only_if_it_is() {
    for (fails, expected) in [("", true), ("store", false), ("file", false)] {
        let test = TestStore::chosen();
        let mut scene = Scene::new(&test, 100).await;
        create(&scene.store, "one").await;
        scene.loader.turn().await.unwrap();
        let two = create(&scene.store, "two").await;
        scene.notify(&two);
        match fails {
            "store" => test.make_unavailable(),
            "file" => fs::remove_dir_all(scene.folder.path()).unwrap(),
            _ => {}
        }
        let path = scene.path();
        let (last, requests) = LastWrite::new();
        // A stop waits for 5 s. On a busy machine, what is written may need more of them.
        let stops = if expected { 10 } else { 1 };
        let stop = async {
            let mut is_written = false;
            for _ in 0..stops {
                is_written = is_written || last.is_written().await;
            }
            is_written
        };
        let is_written = tokio::select! {
            is_written = stop => is_written,
            () = scene.loader.run(requests) => unreachable!("it never ends"),
        };
        assert_eq!(is_written, expected, "{fails}");
        let text = fs::read_to_string(path).unwrap_or_default();
        assert_eq!(text.contains(two.ident.as_str()), expected, "{fails}");
    }
}

#[tokio::test]
async fn a_stop_waits_for_no_snapshot_where_none_is_configured() {
    let test = TestStore::chosen();
    let mut scene = Scene::new(&test, 100).await;
    scene.loader.snapshot = None;
    let (last, requests) = LastWrite::new();
    let mut running = pin!(scene.loader.run(requests));
    // As while its store hangs: it is not run any further.
    assert!(running.as_mut().now_or_never().is_none());
    assert!(last.is_written().await);
}

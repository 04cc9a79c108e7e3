//! Rotations of the master key, on the chosen database.

use std::{sync::Arc, time::Duration};

use signpost_kit::secret::{Secret, SecretSource};
use signpost_protocol::{app::AppIdent, sign::AppKey};
use signpost_proxy::{
    AppStore, AppStoreError, MasterKey, Sealer,
    testing::{SnapshotError, SnapshotFile},
};
use signpost_store::{Store, testing::TestStore};

use super::*;
use crate::administration::{
    apps::{
        AdministrationError,
        both_stores::{administration, author, import, new_app, request},
    },
    summary::NewApp,
};

const HOUR: Duration = Duration::from_secs(3600);
const AT: Timestamp = Timestamp::from_millis(2);

fn master_key(digits: &str) -> Secret {
    SecretSource::from(&*digits.repeat(32)).read().unwrap()
}

/// The applications as a gateway with this master key sees them, and with one before.
fn apps_with(store: &Store, current: &str, previous: Option<&str>) -> StoredApps {
    let current = MasterKey::Given(master_key(current));
    let sealer = Sealer::from_config(&current, false).unwrap();
    let previous = previous.map(master_key);
    let sealer = sealer.with_previous(previous.as_ref()).unwrap();
    StoredApps::new(store.clone(), sealer)
}

struct Scene {
    old: StoredApps,
    both: StoredApps,
    new: StoredApps,
    store: Store,
    _test_store: TestStore,
}

impl Scene {
    async fn new() -> Self {
        let test_store = TestStore::chosen();
        let store = test_store.open().await;
        Self {
            old: apps_with(&store, "ab", None),
            both: apps_with(&store, "cd", Some("ab")),
            new: apps_with(&store, "cd", None),
            store,
            _test_store: test_store,
        }
    }

    async fn import(&self, count: usize) -> Vec<NewApp> {
        let apps: Vec<_> = (0..count)
            .map(|number| new_app(&number.to_string()))
            .collect();
        assert!(import(&self.old, apps.clone()).await.is_empty());
        apps
    }

    /// What the audit says of rotations, newest first.
    async fn audited(&self) -> Vec<String> {
        let filter = Filter {
            subject: Some("master-key".to_owned()),
            ..Filter::default()
        };
        let rows = audit::page(&self.store, filter, 10).await.unwrap();
        assert!(rows.iter().all(|row| row.action == "master-key.rotate"));
        rows.into_iter().map(|row| row.entry.changes).collect()
    }

    async fn changes(&self) -> i64 {
        let count = "SELECT count(*) FROM changes";
        let count: Option<(i64,)> = self.store.row(count, Vec::new()).await.unwrap();
        count.unwrap().0
    }
}

async fn rotate(apps: &StoredApps, ident: AppIdent) -> Result<AppKey, AdministrationError> {
    let apps = administration(apps.clone());
    apps.end_overlap(ident, request(1000)).await?;
    let rotated = apps.rotate(ident, HOUR, request(1000)).await;
    rotated.map(|(_, key)| key)
}

#[tokio::test]
async fn a_new_master_key_opens_all_keys_after_its_rotation_and_the_feed_has_nothing_of_it() {
    const APPS: usize = 2 * PAGE + 1;
    let scene = Scene::new().await;
    let mut apps = scene.import(APPS).await;
    let mut rotated = Vec::new();
    for app in &mut apps[..3] {
        rotated.push((app.ident, app.key.clone()));
        app.key = rotate(&scene.old, app.ident).await.unwrap();
    }
    let progress = MasterKeyRotation(scene.both.clone())
        .reseal_progress()
        .await
        .unwrap();
    let all = u64::try_from(APPS).unwrap();
    assert_eq!((progress.applications, progress.remaining), (all, all));
    let other = scene.new.find(apps[0].ident).await.unwrap_err();
    assert!(matches!(
        other,
        AppStoreError::Seal(SealError::OtherMasterKey(_))
    ));

    let (before, mut done) = (scene.changes().await, 0);
    let unreadable = MasterKeyRotation(scene.both.clone())
        .reseal_all(author(), AT, |replaced| done += replaced)
        .await;
    assert_eq!((unreadable.unwrap().count, done), (0, APPS));
    assert_eq!(scene.changes().await, before);
    assert_eq!(
        MasterKeyRotation(scene.both.clone())
            .reseal_progress()
            .await
            .unwrap()
            .remaining,
        0
    );
    for app in &apps {
        assert!(scene.new.find(app.ident).await.unwrap().unwrap().key == app.key);
    }
    for (ident, key) in rotated {
        let found = scene.new.find(ident).await.unwrap().unwrap();
        assert!(found.previous_key.unwrap().key == key);
    }
    // Once more, there is nothing to do.
    let again = MasterKeyRotation(scene.both.clone())
        .reseal_all(author(), AT, |_| panic!("nothing is replaced"))
        .await;
    assert_eq!(again.unwrap().count, 0);
}

#[tokio::test]
async fn a_key_that_changed_since_it_was_read_is_not_overwritten() {
    let scene = Scene::new().await;
    let apps = scene.import(3).await;
    let id = MasterKeyRotation(scene.new.clone()).master_key().bytes();
    let read = sealed_keys::page_by_another(&scene.store, id, i64::MAX, PAGE).await;
    let read = read
        .unwrap()
        .into_iter()
        .map(|row| MasterKeyRotation(scene.both.clone()).resealed(row));
    let resealed = read.collect::<Result<Vec<_>, _>>().unwrap();
    let rotated = rotate(&scene.old, apps[1].ident).await.unwrap();
    assert_eq!(
        sealed_keys::replace(&scene.store, resealed, None)
            .await
            .unwrap(),
        2
    );
    let found = scene.old.find(apps[1].ident).await.unwrap().unwrap();
    assert!(found.key == rotated && found.previous_key.unwrap().key == apps[1].key);
    // The next run takes it.
    MasterKeyRotation(scene.both.clone())
        .reseal_all(author(), AT, |_| {})
        .await
        .unwrap();
    let found = scene.new.find(apps[1].ident).await.unwrap().unwrap();
    assert!(found.key == rotated && found.previous_key.unwrap().key == apps[1].key);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotations_of_applications_during_that_of_the_master_key_are_kept() {
    let scene = Arc::new(Scene::new().await);
    let apps = scene.import(3 * PAGE).await;
    let idents: Vec<_> = apps.iter().step_by(150).map(|app| app.ident).collect();
    let rotating = Arc::clone(&scene);
    // Also by a process that still has the old master key only.
    let rotations = tokio::spawn(async move {
        let mut keys = Vec::new();
        for ident in idents {
            let by_old = rotate(&rotating.old, ident).await;
            let key = match by_old {
                Err(AdministrationError::Store(AppStoreError::Seal(_))) => {
                    rotate(&rotating.both, ident).await.unwrap()
                }
                key => key.unwrap(),
            };
            keys.push((ident, key));
        }
        keys
    });
    while !rotations.is_finished() {
        MasterKeyRotation(scene.both.clone())
            .reseal_all(author(), AT, |_| {})
            .await
            .unwrap();
    }
    MasterKeyRotation(scene.both.clone())
        .reseal_all(author(), AT, |_| {})
        .await
        .unwrap();
    for (ident, key) in rotations.await.unwrap() {
        assert!(scene.new.find(ident).await.unwrap().unwrap().key == key);
    }
    assert_eq!(
        MasterKeyRotation(scene.both.clone())
            .reseal_progress()
            .await
            .unwrap()
            .remaining,
        0
    );
}

#[tokio::test]
async fn what_no_master_key_opens_is_named_and_the_rest_is_sealed_anew() {
    let scene = Scene::new().await;
    let apps = scene.import(3).await;
    let stranger = new_app("stranger");
    let other = apps_with(&scene.store, "ef", None);
    assert!(import(&other, vec![stranger.clone()]).await.is_empty());
    let unreadable = MasterKeyRotation(scene.both.clone())
        .reseal_all(author(), AT, |_| {})
        .await
        .unwrap();
    assert_eq!(unreadable.count, 1);
    assert_eq!(unreadable.named[0].0, stranger.ident.as_str());
    assert_eq!(
        MasterKeyRotation(scene.both.clone())
            .reseal_progress()
            .await
            .unwrap()
            .remaining,
        1
    );
    assert!(scene.new.find(apps[2].ident).await.unwrap().is_some());
}

#[tokio::test]
async fn a_rotation_needs_two_different_master_keys() {
    let scene = Scene::new().await;
    scene.import(1).await;
    let missing = MasterKeyRotation(scene.old.clone())
        .reseal_all(author(), AT, |_| {})
        .await
        .unwrap_err();
    assert!(
        missing
            .to_string()
            .contains("previous_master_key is missing"),
        "{missing}"
    );
    let same = apps_with(&scene.store, "ab", Some("ab"));
    let same = MasterKeyRotation(same.clone())
        .reseal_all(author(), AT, |_| {})
        .await
        .unwrap_err();
    assert!(same.to_string().contains("the same key"), "{same}");
}

#[tokio::test]
async fn a_snapshot_is_written_under_the_new_master_key_and_read_with_either() {
    let scene = Scene::new().await;
    let app = scene.import(1).await.remove(0);
    let previous = rotate(&scene.old, app.ident).await;
    assert!(previous.is_ok());
    let folder = tempfile::tempdir().unwrap();
    let file = |apps: &StoredApps| SnapshotFile {
        path: folder.path().join("snapshot"),
        keys: apps.sealer().snapshot_keys(),
        store: "a".to_owned(),
    };
    let write = async |apps: &StoredApps| {
        let rows = applications::page(&scene.store, i64::MIN, PAGE)
            .await
            .unwrap();
        let new = file(apps).begin().unwrap().with(rows, apps).unwrap();
        file(apps).replace(new, Timestamp::from_millis(1)).unwrap();
    };
    let read = |apps: &StoredApps| {
        let snapshot = file(apps).read(10, apps)?;
        let mut apps = snapshot.apps.into_iter().map(|(_, app)| app);
        Ok::<_, SnapshotError>(apps.next().unwrap().previous_key.unwrap().key == app.key)
    };
    write(&scene.old).await;
    assert!(read(&scene.both).unwrap());
    assert!(matches!(read(&scene.new), Err(SnapshotError::Refused)));
    write(&scene.both).await;
    assert!(read(&scene.both).unwrap() && read(&scene.new).unwrap());
    assert!(matches!(read(&scene.old), Err(SnapshotError::Refused)));
}

#[tokio::test]
async fn each_rotation_has_one_row_of_the_audit_however_often_its_run_is_resumed() {
    let scene = Scene::new().await;
    MasterKeyRotation(scene.both.clone())
        .reseal_all(author(), AT, |_| {})
        .await
        .unwrap();
    assert!(scene.audited().await.is_empty(), "nothing was changed");
    scene.import(PAGE + 1).await;
    MasterKeyRotation(scene.both.clone())
        .reseal_all(author(), AT, |_| {})
        .await
        .unwrap();
    let (old, new) = (
        MasterKeyRotation(scene.old.clone()).master_key(),
        MasterKeyRotation(scene.new.clone()).master_key(),
    );
    let there = format!(r#"{{"master_key":["{old}","{new}"]}}"#);
    assert_eq!(scene.audited().await, [&*there]);
    let back = apps_with(&scene.store, "ab", Some("cd"));
    MasterKeyRotation(back.clone())
        .reseal_all(author(), AT, |_| {})
        .await
        .unwrap();
    let and_back = format!(r#"{{"master_key":["{new}","{old}"]}}"#);
    assert_eq!(scene.audited().await, [&*and_back, &*there]);
    import(&scene.new, vec![new_app("left over")]).await;
    MasterKeyRotation(back.clone())
        .reseal_all(author(), AT, |_| {})
        .await
        .unwrap();
    assert_eq!(scene.audited().await, [&*and_back, &*there]);
}

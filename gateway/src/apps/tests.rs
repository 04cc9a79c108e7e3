//! What every store of applications does, whichever it is; and what the directory makes of it.

use std::{
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use gateway_protocol::{
    app::AppIdent,
    sign::{SignProfile, SignTime},
};
use signpost_store::{Change, Store, Topic, testing::TestStore};

use super::{
    AppState,
    directory::CachedApps,
    postgres::PostgresAppStore,
    seal::{Sealer, new_app_ident, new_app_key},
    sqlite::SqliteAppStore,
    store::{AppStore, AppStoreError, NewApp, Rotated, Rotation},
};
use crate::config::{MasterKey, SecretSource};

const HOUR: Duration = Duration::from_secs(3600);

fn at(millis: u64) -> SignTime {
    SignTime::from_millis(millis)
}

fn sealer() -> Sealer {
    let key = SecretSource::from(&*"ab".repeat(32)).read().unwrap();
    Sealer::from_config(&MasterKey::Given(key), false).unwrap()
}

fn apps_of(store: &Store) -> Arc<dyn AppStore> {
    let profile = SignProfile::default();
    match store.clone() {
        Store::Sqlite(database) => Arc::new(SqliteAppStore::new(database, sealer(), profile)),
        Store::Postgres(database) => Arc::new(PostgresAppStore::new(database, sealer(), profile)),
    }
}

async fn apps(place: &TestStore) -> Arc<dyn AppStore> {
    apps_of(&place.open().await)
}

fn new_app(name: &str) -> NewApp {
    NewApp {
        ident: new_app_ident().unwrap(),
        key: new_app_key().unwrap(),
        name: name.to_owned(),
        profile: None,
        return_to_origins: Vec::new(),
        default_version: None,
        created_at: at(1_700_000_000_000),
    }
}

async fn create(apps: &Arc<dyn AppStore>, name: &str) -> NewApp {
    let app = new_app(name);
    apps.create(app.clone()).await.unwrap();
    app
}

fn rotation(ident: AppIdent, now: u64, overlap: Duration) -> Rotation {
    Rotation {
        ident,
        key: new_app_key().unwrap(),
        overlap,
        ends_running_overlap: false,
        now: at(now),
    }
}

#[tokio::test]
async fn an_application_is_found_as_it_was_made() {
    let place = TestStore::chosen();
    let apps = apps(&place).await;
    let plain = create(&apps, "Ein Name ☃").await;
    let rich = NewApp {
        profile: SignProfile::preset("wechat"),
        return_to_origins: vec!["https://app.example".to_owned()],
        default_version: Some("v2".parse().unwrap()),
        ..new_app("rich")
    };
    apps.create(rich.clone()).await.unwrap();
    let found = apps.find(plain.ident).await.unwrap().unwrap();
    assert!(found.key == plain.key && found.previous_key.is_none());
    assert_eq!(
        (found.state, found.default_version),
        (AppState::Active, None)
    );
    assert_eq!(found.profile, SignProfile::default());
    let found = apps.find(rich.ident).await.unwrap().unwrap();
    assert_eq!(Some(found.profile), rich.profile);
    assert_eq!(found.default_version, rich.default_version);
    assert!(apps.find(new_app_ident().unwrap()).await.unwrap().is_none());
    let all = apps.list().await.unwrap();
    let names: Vec<_> = all.iter().map(|app| &*app.name).collect();
    assert_eq!(names, ["Ein Name ☃", "rich"]);
    let shown = apps.summary(rich.ident).await.unwrap().unwrap();
    assert_eq!(shown.return_to, ["https://app.example"]);
    assert_eq!(
        (shown.state.as_str(), shown.created_at),
        ("active", 1_700_000_000_000)
    );
    assert_eq!(shown.default_version.as_deref(), Some("v2"));
    assert!(
        apps.summary(new_app_ident().unwrap())
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn more_are_listed_than_one_statement_reads() {
    const MANY: i64 = 25_000;
    let place = TestStore::chosen();
    let store = place.open().await;
    let columns = "applications (ident, name, state, created_at, key_sealed, return_to_origins)";
    match &store {
        Store::Sqlite(database) => {
            let insert = format!(
                "WITH RECURSIVE numbers(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers LIMIT {MANY}) \
                 INSERT INTO {columns} SELECT n, n, 'active', 0, x'00', '[]' FROM numbers"
            );
            let written = database.write(move |transaction| transaction.execute(&insert, []));
            written.await.unwrap();
        }
        Store::Postgres(database) => {
            let insert = format!(
                "INSERT INTO {columns} SELECT n, n, 'active', 0, 'x', '[]' FROM generate_series(1, {MANY}) AS n"
            );
            let session = database.session().await.unwrap();
            session.execute(&insert, &[]).await.unwrap();
        }
    }
    let all = apps_of(&store).list().await.unwrap();
    let names: Vec<i64> = all.iter().map(|app| app.name.parse().unwrap()).collect();
    assert!(names.into_iter().eq(1..=MANY));
}

#[tokio::test]
async fn an_application_is_switched_off_and_on_and_deleted() {
    let place = TestStore::chosen();
    let apps = apps(&place).await;
    let ident = create(&apps, "one").await.ident;
    for state in [AppState::Disabled, AppState::Active] {
        assert!(apps.set_state(ident, state).await.unwrap());
        assert_eq!(apps.find(ident).await.unwrap().unwrap().state, state);
    }
    assert!(apps.delete(ident).await.unwrap());
    assert!(apps.find(ident).await.unwrap().is_none());
    assert!(!apps.delete(ident).await.unwrap());
    assert!(!apps.set_state(ident, AppState::Active).await.unwrap());
}

#[tokio::test]
async fn a_rotation_keeps_the_old_key_for_its_overlap() {
    let place = TestStore::chosen();
    let apps = apps(&place).await;
    let app = create(&apps, "one").await;
    let first = rotation(app.ident, 1000, HOUR);
    assert_eq!(apps.rotate(first.clone()).await.unwrap(), Rotated::Done);
    let found = apps.find(app.ident).await.unwrap().unwrap();
    let previous = found.previous_key.unwrap();
    assert!(found.key == first.key && previous.key == app.key);
    assert_eq!(previous.until.as_millis(), 3_601_000);
    let shown = apps.summary(app.ident).await.unwrap().unwrap();
    assert_eq!(shown.previous_key_until, Some(3_601_000));

    // The last millisecond of the overlap is inside.
    let early = rotation(app.ident, 3_601_000, HOUR);
    let until = 3_601_000;
    assert_eq!(
        apps.rotate(early.clone()).await.unwrap(),
        Rotated::Overlapping { until }
    );
    assert!(apps.find(app.ident).await.unwrap().unwrap().key == first.key);
    let ending = Rotation {
        ends_running_overlap: true,
        ..early
    };
    assert_eq!(apps.rotate(ending.clone()).await.unwrap(), Rotated::Done);
    let late = rotation(app.ident, 7_201_001, Duration::ZERO);
    assert_eq!(apps.rotate(late.clone()).await.unwrap(), Rotated::Done);
    let found = apps.find(app.ident).await.unwrap().unwrap();
    assert!(found.key == late.key && found.previous_key.unwrap().key == ending.key);
    let unknown = rotation(new_app_ident().unwrap(), 0, HOUR);
    assert_eq!(apps.rotate(unknown).await.unwrap(), Rotated::Unknown);
}

#[tokio::test]
async fn of_rotations_at_once_one_happens() {
    let place = TestStore::chosen();
    let apps = apps(&place).await;
    let ident = create(&apps, "one").await.ident;
    let rotations: Vec<_> = (0..8)
        .map(|_| {
            let apps = Arc::clone(&apps);
            tokio::spawn(async move { apps.rotate(rotation(ident, 1000, HOUR)).await.unwrap() })
        })
        .collect();
    let mut done = 0;
    for rotation in rotations {
        match rotation.await.unwrap() {
            Rotated::Done => done += 1,
            other => assert_eq!(other, Rotated::Overlapping { until: 3_601_000 }),
        }
    }
    assert_eq!(done, 1);
}

#[tokio::test]
async fn a_name_that_not_every_store_can_hold_is_refused_by_all() {
    let place = TestStore::chosen();
    let apps = apps(&place).await;
    let refused = apps.create(new_app("a\0b")).await.unwrap_err();
    assert!(matches!(refused, AppStoreError::Name), "{refused}");
    assert!(apps.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn every_change_is_told_and_nothing_else() {
    let place = TestStore::chosen();
    let store = place.open().await;
    let (told, changes) = mpsc::channel();
    let _watch = store
        .watch(Duration::default, move |change| told.send(change).unwrap())
        .unwrap();
    let apps = apps(&place).await;
    let app = create(&apps, "one").await;
    let expect = |what: &str| {
        let change = changes.recv_timeout(Duration::from_secs(1));
        let expected = Change::Item {
            topic: Topic::Application,
            key: app.ident.as_str().as_bytes().to_vec(),
        };
        assert_eq!(change.as_ref(), Ok(&expected), "{what}");
    };
    expect("created");
    let unknown = new_app_ident().unwrap();
    apps.delete(unknown).await.unwrap();
    apps.rotate(rotation(app.ident, 1000, HOUR)).await.unwrap();
    expect("rotated");
    apps.rotate(rotation(app.ident, 1000, HOUR)).await.unwrap();
    apps.set_state(app.ident, AppState::Disabled).await.unwrap();
    expect("disabled");
    apps.delete(app.ident).await.unwrap();
    expect("deleted");
    let further = changes.recv_timeout(Duration::from_millis(200));
    assert_eq!(further, Err(mpsc::RecvTimeoutError::Timeout));
}

#[tokio::test]
async fn a_store_that_is_away_says_so_soon_and_comes_back() {
    let place = TestStore::chosen();
    let apps = apps(&place).await;
    let app = create(&apps, "one").await;
    let directory = CachedApps::new(Arc::clone(&apps), 100);
    directory.find(app.ident).await.unwrap().unwrap();
    apps.check().await.unwrap();
    place.take_away();
    let begun = Instant::now();
    apps.check().await.unwrap_err();
    assert!(apps.find(app.ident).await.is_err());
    assert!(directory.find(new_app_ident().unwrap()).await.is_err());
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert!(directory.find(app.ident).await.unwrap().is_some());
    place.bring_back();
    apps.check().await.unwrap();
    assert!(apps.find(app.ident).await.unwrap().is_some());
}

/// As at the start of the program, which opens the store on a runtime that ends, and then serves on several, each
/// driven by a thread of its own that is busy.
#[test]
fn connections_outlive_no_runtime_and_serve_on_others() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let place = TestStore::chosen();
    let first = runtime();
    let (apps, app) = first.block_on(async {
        let apps = apps(&place).await;
        let app = create(&apps, "one").await;
        (apps, app)
    });
    drop(first);
    let (second, third) = (runtime(), runtime());
    assert!(second.block_on(apps.find(app.ident)).unwrap().is_some());
    // The connection is the second's, driven by whoever runs that: a worker, which has other things to do as well.
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = std::thread::spawn(move || {
        second.block_on(async {
            while stopped.try_recv().is_err() {
                let busy = Instant::now();
                while busy.elapsed() < Duration::from_millis(2) {}
                tokio::task::yield_now().await;
            }
        });
    });
    let begun = Instant::now();
    for _ in 0..20 {
        assert!(third.block_on(apps.find(app.ident)).unwrap().is_some());
    }
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    stop.send(()).unwrap();
    worker.join().unwrap();
}

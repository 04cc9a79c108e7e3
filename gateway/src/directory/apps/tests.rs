//! Tests of the stores of applications, each run on the chosen database.

use std::{
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppIdent, sign::SignProfile};
use signpost_store::{Change, Store, Topic, testing::TestStore};

use super::{
    AppState,
    directory::CachedApps,
    seal::{SealError, Sealer, new_app_ident, new_app_key},
    store::{
        AppStore, AppStoreError, AppUpdate, Edit, ImportOutcome, NewApp, Rotation, RotationOutcome,
    },
    stored::StoredApps,
};
use crate::config::MasterKey;
use signpost_kit::secret::SecretSource;

const HOUR: Duration = Duration::from_secs(3600);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn sealer() -> Sealer {
    let key = SecretSource::from(&*"ab".repeat(32)).read().unwrap();
    Sealer::from_config(&MasterKey::Given(key), false).unwrap()
}

fn apps_of(store: &Store) -> StoredApps {
    StoredApps::new(store.clone(), sealer())
}

async fn apps(test_store: &TestStore) -> StoredApps {
    apps_of(&test_store.open().await)
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

async fn create(apps: &StoredApps, name: &str) -> NewApp {
    let app = new_app(name);
    apps.create(app.clone()).await.unwrap();
    app
}

fn rotation(ident: AppIdent, now: i64, overlap: Duration) -> Rotation {
    Rotation {
        ident,
        key: new_app_key().unwrap(),
        overlap,
        ends_running_overlap: false,
        now: at(now),
    }
}

#[tokio::test]
async fn an_application_is_found_as_it_was_created() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
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
    assert_eq!(found.profile, None);
    let found = apps.find(rich.ident).await.unwrap().unwrap();
    assert_eq!(found.profile.as_deref(), rich.profile.as_ref());
    assert_eq!(found.default_version, rich.default_version);
    assert!(apps.find(new_app_ident().unwrap()).await.unwrap().is_none());
    let all = apps.list().await.unwrap();
    let names: Vec<_> = all.iter().map(|app| &*app.name).collect();
    assert_eq!(names, ["Ein Name ☃", "rich"]);
    let shown = apps.summary(rich.ident).await.unwrap().unwrap();
    assert_eq!(shown.return_to, ["https://app.example"]);
    assert_eq!(
        (shown.state.as_str(), shown.created_at),
        ("active", at(1_700_000_000_000))
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
async fn a_list_reads_more_than_one_page() {
    const MANY: i64 = 25_000;
    let test_store = TestStore::chosen();
    let store = test_store.open().await;
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
async fn an_application_is_disabled_enabled_and_deleted() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
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
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let app = create(&apps, "one").await;
    let first = rotation(app.ident, 1000, HOUR);
    assert_eq!(
        apps.rotate(first.clone()).await.unwrap(),
        RotationOutcome::Done
    );
    let found = apps.find(app.ident).await.unwrap().unwrap();
    let previous = found.previous_key.unwrap();
    assert!(found.key == first.key && previous.key == app.key);
    assert_eq!(previous.until.as_millis(), 3_601_000);
    let shown = apps.summary(app.ident).await.unwrap().unwrap();
    assert_eq!(shown.previous_key_until, Some(at(3_601_000)));

    // The last millisecond of the overlap is inclusive.
    let early = rotation(app.ident, 3_601_000, HOUR);
    let until = at(3_601_000);
    assert_eq!(
        apps.rotate(early.clone()).await.unwrap(),
        RotationOutcome::Overlapping { until }
    );
    assert!(apps.find(app.ident).await.unwrap().unwrap().key == first.key);
    let ending = Rotation {
        ends_running_overlap: true,
        ..early
    };
    assert_eq!(
        apps.rotate(ending.clone()).await.unwrap(),
        RotationOutcome::Done
    );
    let late = rotation(app.ident, 7_201_001, Duration::ZERO);
    assert_eq!(
        apps.rotate(late.clone()).await.unwrap(),
        RotationOutcome::Done
    );
    let found = apps.find(app.ident).await.unwrap().unwrap();
    assert!(found.key == late.key && found.previous_key.unwrap().key == ending.key);
    let unknown = rotation(new_app_ident().unwrap(), 0, HOUR);
    assert_eq!(
        apps.rotate(unknown).await.unwrap(),
        RotationOutcome::Unknown
    );
}

#[tokio::test]
async fn of_concurrent_rotations_one_succeeds() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let ident = create(&apps, "one").await.ident;
    let rotations: Vec<_> = (0..8)
        .map(|_| {
            let apps = apps.clone();
            tokio::spawn(async move { apps.rotate(rotation(ident, 1000, HOUR)).await.unwrap() })
        })
        .collect();
    let mut done = 0;
    for rotation in rotations {
        match rotation.await.unwrap() {
            RotationOutcome::Done => done += 1,
            other => assert_eq!(
                other,
                RotationOutcome::Overlapping {
                    until: at(3_601_000)
                }
            ),
        }
    }
    assert_eq!(done, 1);
}

#[tokio::test]
async fn a_name_with_a_null_character_is_rejected_by_every_store() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let refused = apps.create(new_app("a\0b")).await.unwrap_err();
    assert!(matches!(refused, AppStoreError::Name), "{refused}");
    assert!(apps.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn every_change_is_notified_and_nothing_else() {
    let test_store = TestStore::chosen();
    let store = test_store.open().await;
    let (sender, changes) = mpsc::channel();
    let _watch = store
        .watch(Duration::default, move |change| {
            sender.send(change).unwrap()
        })
        .unwrap();
    let apps = apps(&test_store).await;
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
async fn an_unavailable_store_fails_fast_and_recovers() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let app = create(&apps, "one").await;
    let directory = CachedApps::new(Arc::new(apps.clone()), 100);
    directory.find(app.ident).await.unwrap().unwrap();
    test_store.make_unavailable();
    let begun = Instant::now();
    assert!(apps.find(app.ident).await.is_err());
    assert!(directory.find(new_app_ident().unwrap()).await.is_err());
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert!(directory.find(app.ident).await.unwrap().is_some());
    test_store.make_available();
    assert!(apps.find(app.ident).await.unwrap().is_some());
}

/// Like a start of the program: one runtime opens the store and ends, then several serve, each on its own busy thread.
#[test]
fn connections_end_with_their_runtime_and_can_be_used_from_others() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let test_store = TestStore::chosen();
    let first = runtime();
    let (apps, app) = first.block_on(async {
        let apps = apps(&test_store).await;
        let app = create(&apps, "one").await;
        (apps, app)
    });
    drop(first);
    let (second, third) = (runtime(), runtime());
    assert!(second.block_on(apps.find(app.ident)).unwrap().is_some());
    // The connection belongs to the second runtime, whose worker is busy with other tasks, too.
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

fn no_change(ident: AppIdent) -> AppUpdate {
    AppUpdate {
        ident,
        name: None,
        return_to_origins: None,
        profile: Edit::Keep,
        default_version: Edit::Keep,
        rate_limit: Edit::Keep,
    }
}

#[tokio::test]
async fn an_update_changes_only_the_given_settings() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let app = NewApp {
        profile: SignProfile::preset("wechat"),
        return_to_origins: vec!["https://app.example".to_owned()],
        default_version: Some("v2".parse().unwrap()),
        ..new_app("one")
    };
    apps.create(app.clone()).await.unwrap();
    let shown = async || serde_json::to_value(apps.summary(app.ident).await.unwrap()).unwrap();
    let mut expected = shown().await;
    let edits: [(AppUpdate, &str, serde_json::Value); 9] = [
        (
            AppUpdate {
                rate_limit: Edit::Set("100/200".parse().unwrap()),
                ..no_change(app.ident)
            },
            "rate_limit",
            "100/200".into(),
        ),
        (
            AppUpdate {
                rate_limit: Edit::Set("unlimited".parse().unwrap()),
                ..no_change(app.ident)
            },
            "rate_limit",
            "unlimited".into(),
        ),
        (
            AppUpdate {
                rate_limit: Edit::Unset,
                ..no_change(app.ident)
            },
            "rate_limit",
            serde_json::Value::Null,
        ),
        (
            AppUpdate {
                name: Some("two".to_owned()),
                ..no_change(app.ident)
            },
            "name",
            "two".into(),
        ),
        (
            AppUpdate {
                return_to_origins: Some(vec!["https://b.example".to_owned()]),
                ..no_change(app.ident)
            },
            "return_to",
            serde_json::json!(["https://b.example"]),
        ),
        (
            AppUpdate {
                default_version: Edit::Set("v1".parse().unwrap()),
                ..no_change(app.ident)
            },
            "default_version",
            "v1".into(),
        ),
        (
            AppUpdate {
                default_version: Edit::Unset,
                ..no_change(app.ident)
            },
            "default_version",
            serde_json::Value::Null,
        ),
        (
            AppUpdate {
                profile: Edit::Set(SignProfile::preset("top").unwrap()),
                ..no_change(app.ident)
            },
            "sign_profile",
            serde_json::to_value(SignProfile::preset("top")).unwrap(),
        ),
        (
            AppUpdate {
                profile: Edit::Unset,
                ..no_change(app.ident)
            },
            "sign_profile",
            serde_json::Value::Null,
        ),
    ];
    for (update, member, value) in edits {
        assert!(apps.update(update).await.unwrap());
        expected[member] = value;
        assert_eq!(shown().await, expected, "{member}");
    }
    assert!(apps.find(app.ident).await.unwrap().unwrap().key == app.key);
    let unknown = no_change(new_app_ident().unwrap());
    assert!(!apps.update(unknown).await.unwrap());
    let refused = AppUpdate {
        name: Some("a\0b".to_owned()),
        ..no_change(app.ident)
    };
    assert!(matches!(
        apps.update(refused).await,
        Err(AppStoreError::Name)
    ));
}

#[tokio::test]
async fn an_import_adds_all_or_nothing_and_notifies_once() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let there = create(&apps, "there").await;
    let store = test_store.open().await;
    let (sender, changes) = mpsc::channel();
    let _watch = store
        .watch(Duration::default, move |change| {
            sender.send(change).unwrap()
        })
        .unwrap();
    let named = |ident: &str, name: &str| NewApp {
        ident: ident.parse().unwrap(),
        default_version: Some("v2".parse().unwrap()),
        ..new_app(name)
    };
    let (one, two) = (named("team-1", "one"), named(&"x".repeat(64), "two"));
    let with_taken = vec![one.clone(), there.clone(), two.clone()];
    let refused = apps.import(with_taken).await.unwrap();
    assert_eq!(refused, ImportOutcome::Taken(vec![there.ident]));
    assert!(apps.find(one.ident).await.unwrap().is_none());

    let imported = apps.import(vec![one.clone(), two.clone()]).await.unwrap();
    assert_eq!(imported, ImportOutcome::Done);
    for app in [&one, &two] {
        let found = apps.find(app.ident).await.unwrap().unwrap();
        assert!(found.key == app.key && found.default_version == app.default_version);
    }
    let change = Change::Item {
        topic: Topic::Application,
        key: Vec::new(),
    };
    assert_eq!(changes.recv_timeout(Duration::from_secs(1)), Ok(change));
    let further = changes.recv_timeout(Duration::from_millis(200));
    assert_eq!(further, Err(mpsc::RecvTimeoutError::Timeout));
    let idents = vec![one.ident, new_app_ident().unwrap()];
    assert_eq!(apps.taken(&idents).await.unwrap(), [one.ident]);
    assert_eq!(apps.import(Vec::new()).await.unwrap(), ImportOutcome::Done);
}

/// Changes the database like an attacker without the master key.
async fn tamper(store: &Store, statement: &str) {
    match store {
        Store::Sqlite(database) => {
            let statement = statement.to_owned();
            let written = database.write(move |transaction| transaction.execute(&statement, []));
            written.await.unwrap();
        }
        Store::Postgres(database) => {
            let session = database.session().await.unwrap();
            session.execute(statement, &[]).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_rotated_key_cannot_be_put_back_nor_its_overlap_extended() {
    let test_store = TestStore::chosen();
    let store = test_store.open().await;
    let apps = apps_of(&store);
    for statement in [
        "UPDATE applications SET key_sealed = previous_sealed",
        "UPDATE applications SET previous_until = previous_until + 1",
        "UPDATE applications SET previous_sealed = key_sealed",
    ] {
        let app = create(&apps, "one").await;
        let rotation = rotation(app.ident, 1000, HOUR);
        assert_eq!(apps.rotate(rotation).await.unwrap(), RotationOutcome::Done);
        apps.find(app.ident).await.unwrap().unwrap();
        tamper(&store, statement).await;
        let error = apps.find(app.ident).await.unwrap_err();
        let is_refused = matches!(error, AppStoreError::Seal(SealError::NotOpened));
        assert!(is_refused, "{statement}: {error}");
        apps.delete(app.ident).await.unwrap();
    }
}

#[tokio::test]
async fn keys_whose_overlap_ended_long_ago_are_deleted() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let (one, two) = (create(&apps, "one").await, create(&apps, "two").await);
    apps.rotate(rotation(one.ident, 1000, HOUR)).await.unwrap();
    apps.rotate(rotation(two.ident, 2000, HOUR)).await.unwrap();
    assert_eq!(apps.delete_previous_keys(at(3_601_001)).await.unwrap(), 1);
    let previous = async |app: &NewApp| apps.find(app.ident).await.unwrap().unwrap().previous_key;
    assert!(previous(&one).await.is_none() && previous(&two).await.is_some());
}

/// Issue 9: in less than a minute with either database, even in a debug build.
#[tokio::test]
async fn a_hundred_thousand_applications_are_imported_in_less_than_a_minute() {
    const MANY: usize = 100_000;
    let test_store = TestStore::chosen();
    let mut settings = signpost_store::StoreSettings::new(test_store.address().clone());
    super::open::raise_statement_timeout(&mut settings);
    let apps = apps_of(&Store::open(&settings).await.unwrap());
    let administration = super::administration::tests::administration(apps.clone());
    let mut file = "ident,key,name,origins,profile,default_version\n".to_owned();
    for number in 0..MANY {
        use std::fmt::Write as _;
        let key = new_app_key().unwrap();
        let key = key.expose();
        writeln!(
            file,
            "team-{number},{key},Team {number},https://{number}.example,,v1"
        )
        .unwrap();
    }
    let begun = Instant::now();
    let imported = administration.import(file.as_bytes(), false, at(1)).await;
    let took = begun.elapsed();
    assert_eq!(imported.unwrap().applications, MANY);
    assert!(took < Duration::from_secs(60), "{took:?}");
    let last = "team-99999".parse().unwrap();
    let found = apps.find(last).await.unwrap().unwrap();
    let key = file
        .trim_end()
        .rsplit('\n')
        .next()
        .unwrap()
        .split(',')
        .nth(1);
    assert_eq!(Some(found.key.expose()), key);
    let again = administration.import(file.as_bytes(), false, at(1)).await;
    let text = again.unwrap_err().to_string();
    assert!(
        text.starts_with("line 2: ident: the store already has")
            && text.ends_with("99950 more problems"),
        "{text}"
    );
}

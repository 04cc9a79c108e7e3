//! Tests of the stores of applications, each run on the chosen database.

use std::{
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use signpost_kit::{clock::Timestamp, secret::SecretSource};
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
};
use signpost_proxy::{
    AppState, AppStore, AppStoreError, MasterKey, SealError, Sealer, StoredApps, new_app_ident,
    new_app_key, program::CachedApps,
};
use signpost_store::{
    Change, Store, Topic,
    tables::applications,
    testing::{CHANGE_TIMEOUT, TestStore},
};

use super::{
    apps::{
        AdministrationError, Listing,
        both_stores::{administration, author, import, names, new_app, request, sealed_apps},
    },
    reseal::MasterKeyRotation,
    rules::ProfileChoice,
    summary::NewApp,
};
use crate::operations::{apps::Update, input::Change as Edit};

const HOUR: Duration = Duration::from_secs(3600);

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

async fn apps(test_store: &TestStore) -> StoredApps {
    sealed_apps(test_store.open().await)
}

pub(super) async fn create(apps: &StoredApps, name: &str) -> NewApp {
    let app = new_app(name);
    let administration = administration(apps.clone());
    administration.create(app.clone(), author()).await.unwrap();
    app
}

/// Rotates as at this time, and ends no overlap.
async fn rotate(
    apps: &StoredApps,
    ident: AppIdent,
    now: i64,
) -> Result<AppKey, AdministrationError> {
    let administration = administration(apps.clone());
    let rotated = administration.rotate(ident, HOUR, request(now)).await;
    rotated.map(|(_, key)| key)
}

fn is_unknown<T>(outcome: Result<T, AdministrationError>) -> bool {
    matches!(
        outcome,
        Err(AdministrationError::Store(AppStoreError::Unknown(_)))
    )
}

#[tokio::test]
async fn an_application_is_found_as_it_was_created() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let plain = create(&apps, "Ein Name ☃").await;
    let rich = NewApp {
        profile: SignProfile::preset("wechat"),
        return_to: vec!["https://app.example".parse().unwrap()],
        default_version: Some("v2".parse().unwrap()),
        rate_limit: Some("7/9".parse().unwrap()),
        ..new_app("rich")
    };
    administration(apps.clone())
        .create(rich.clone(), author())
        .await
        .unwrap();
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
    assert_eq!(found.rate_limit, rich.rate_limit);
    assert!(apps.find(new_app_ident().unwrap()).await.unwrap().is_none());
    let apps = administration(apps);
    assert_eq!(names(&apps).await, ["Ein Name ☃", "rich"]);
    let shown = apps.show(rich.ident).await.unwrap();
    assert_eq!(shown.return_to, ["https://app.example"]);
    assert_eq!(
        (shown.state.as_str(), shown.created_at),
        ("active", at(1_700_000_000_000))
    );
    assert_eq!(shown.default_version.as_deref(), Some("v2"));
    let unknown = apps.show(new_app_ident().unwrap()).await;
    assert!(matches!(unknown, Err(AppStoreError::Unknown(_))));
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
    let apps = administration(sealed_apps(store.clone()));
    let mut listing = Listing {
        limit: 10_000,
        ..Listing::default()
    };
    let mut numbers = Vec::new();
    loop {
        let page = apps.list(&listing).await.unwrap();
        numbers.extend(page.apps.iter().map(|app| app.name.parse::<i64>().unwrap()));
        if page.next.is_none() {
            break;
        }
        listing.after = page.next;
    }
    assert!(numbers.into_iter().eq(1..=MANY));
}

#[tokio::test]
async fn an_application_is_disabled_enabled_and_deleted() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let ident = create(&apps, "one").await.ident;
    for state in [AppState::Disabled, AppState::Active] {
        administration(apps.clone())
            .set_state(ident, state, request(1))
            .await
            .unwrap();
        assert_eq!(apps.find(ident).await.unwrap().unwrap().state, state);
    }
    administration(apps.clone())
        .delete(ident, request(1))
        .await
        .unwrap();
    assert!(apps.find(ident).await.unwrap().is_none());
    assert!(is_unknown(
        administration(apps.clone()).delete(ident, request(1)).await
    ));
    assert!(is_unknown(
        administration(apps.clone())
            .set_state(ident, AppState::Active, request(1))
            .await
    ));
}

#[tokio::test]
async fn a_rotation_keeps_the_old_key_for_its_overlap() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let app = create(&apps, "one").await;
    let first = rotate(&apps, app.ident, 1000).await.unwrap();
    let found = apps.find(app.ident).await.unwrap().unwrap();
    let previous = found.previous_key.unwrap();
    assert!(found.key == first && previous.key == app.key);
    assert_eq!(previous.until.as_millis(), 3_601_000);
    let shown = administration(apps.clone()).show(app.ident).await.unwrap();
    assert_eq!(shown.previous_key_until, Some(at(3_601_000)));

    // The last millisecond of the overlap is inclusive.
    let early = rotate(&apps, app.ident, 3_601_000).await;
    assert!(matches!(
        early,
        Err(AdministrationError::Overlapping { minutes: 0 })
    ));
    assert!(apps.find(app.ident).await.unwrap().unwrap().key == first);
    let administration = administration(apps.clone());
    let ended = administration.end_overlap(app.ident, request(2000));
    assert_eq!(ended.await.unwrap().previous_key_until, Some(at(1999)));
    let previous = apps.find(app.ident).await.unwrap().unwrap().previous_key;
    assert!(previous.unwrap().key == app.key, "it is kept, for hints");
    let late = administration.rotate(app.ident, Duration::ZERO, request(2000));
    let (_, late) = late.await.unwrap();
    let found = apps.find(app.ident).await.unwrap().unwrap();
    assert!(found.key == late && found.previous_key.unwrap().key == first);
    let unknown = rotate(&apps, new_app_ident().unwrap(), 0).await;
    assert!(is_unknown(unknown));
}

#[tokio::test]
async fn of_concurrent_rotations_one_succeeds() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let ident = create(&apps, "one").await.ident;
    let rotations: Vec<_> = (0..8)
        .map(|_| {
            let apps = apps.clone();
            tokio::spawn(async move { rotate(&apps, ident, 1000).await })
        })
        .collect();
    let mut done = 0;
    for rotation in rotations {
        match rotation.await.unwrap() {
            Ok(_) => done += 1,
            Err(error) => assert!(matches!(
                error,
                AdministrationError::Overlapping { minutes: 60 }
            )),
        }
    }
    assert_eq!(done, 1);
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
        let change = changes.recv_timeout(CHANGE_TIMEOUT);
        let expected = Change::Item {
            topic: Topic::Application,
            key: app.ident.as_str().as_bytes().to_vec(),
        };
        assert_eq!(change.as_ref(), Ok(&expected), "{what}");
    };
    expect("created");
    let unknown = new_app_ident().unwrap();
    administration(apps.clone())
        .delete(unknown, request(1))
        .await
        .unwrap_err();
    rotate(&apps, app.ident, 1000).await.unwrap();
    expect("rotated");
    rotate(&apps, app.ident, 1000).await.unwrap_err();
    administration(apps.clone())
        .set_state(app.ident, AppState::Disabled, request(1))
        .await
        .unwrap();
    expect("disabled");
    administration(apps.clone())
        .delete(app.ident, request(1))
        .await
        .unwrap();
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
    // A busy machine may delay some.
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let begun = Instant::now();
        assert!(apps.find(app.ident).await.is_err());
        assert!(directory.find(new_app_ident().unwrap()).await.is_err());
        fastest = fastest.min(begun.elapsed());
    }
    assert!(fastest < Duration::from_secs(5), "{fastest:?}");
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
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
    stop.send(()).unwrap();
    worker.join().unwrap();
}

#[tokio::test]
async fn an_update_changes_only_the_given_settings() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let app = NewApp {
        profile: SignProfile::preset("wechat"),
        return_to: vec!["https://app.example".parse().unwrap()],
        default_version: Some("v2".parse().unwrap()),
        ..new_app("one")
    };
    administration(apps.clone())
        .create(app.clone(), author())
        .await
        .unwrap();
    let shown = async || {
        serde_json::to_value(administration(apps.clone()).show(app.ident).await.unwrap()).unwrap()
    };
    let mut expected = shown().await;
    let none = Update::default;
    let top = SignProfile::preset("top").unwrap();
    let edits: [(Update, &str, serde_json::Value); 12] = [
        (
            Update {
                rate_limit: Some(Edit::This("100/200".parse().unwrap())),
                ..none()
            },
            "rate_limit",
            "100/200".into(),
        ),
        (
            Update {
                rate_limit: Some(Edit::This("unlimited".parse().unwrap())),
                ..none()
            },
            "rate_limit",
            "unlimited".into(),
        ),
        (
            Update {
                rate_limit: Some(Edit::None),
                ..none()
            },
            "rate_limit",
            serde_json::Value::Null,
        ),
        (
            Update {
                // v0 is retired.
                extend: Some(vec![
                    "v1=2099-03-01".parse().unwrap(),
                    "v0=2099-01-01".parse().unwrap(),
                ]),
                ..none()
            },
            "extensions",
            serde_json::json!(["v0=2099-01-01T00:00:00Z", "v1=2099-03-01T00:00:00Z"]),
        ),
        (
            Update {
                extend: Some(vec!["v1=2099-04-01".parse().unwrap()]),
                ..none()
            },
            "extensions",
            serde_json::json!(["v0=2099-01-01T00:00:00Z", "v1=2099-04-01T00:00:00Z"]),
        ),
        (
            Update {
                extend: Some(vec!["v0=none".parse().unwrap(), "v1=none".parse().unwrap()]),
                ..none()
            },
            "extensions",
            serde_json::json!([]),
        ),
        (
            Update {
                name: "two".parse().ok(),
                ..none()
            },
            "name",
            "two".into(),
        ),
        (
            Update {
                return_to: Some(vec!["https://b.example".parse().unwrap()]),
                ..none()
            },
            "return_to",
            serde_json::json!(["https://b.example"]),
        ),
        (
            Update {
                default_version: Some(Edit::This("v1".parse().unwrap())),
                ..none()
            },
            "default_version",
            "v1".into(),
        ),
        (
            Update {
                default_version: Some(Edit::None),
                ..none()
            },
            "default_version",
            serde_json::Value::Null,
        ),
        (
            Update {
                profile: Some(Edit::This(ProfileChoice::from_preset(top.clone()))),
                ..none()
            },
            "sign_profile",
            serde_json::to_value(top).unwrap(),
        ),
        (
            Update {
                profile: Some(Edit::None),
                ..none()
            },
            "sign_profile",
            serde_json::Value::Null,
        ),
    ];
    let administration = administration(apps.clone());
    for (update, member, value) in edits {
        let updated = administration
            .update(app.ident, &update, request(1))
            .await
            .unwrap();
        expected[member] = value;
        expected["revision"] = (expected["revision"].as_i64().unwrap() + 1).into();
        assert_eq!(serde_json::to_value(updated).unwrap(), expected, "{member}");
        assert_eq!(shown().await, expected, "{member}");
    }
    assert!(apps.find(app.ident).await.unwrap().unwrap().key == app.key);
    for (extend, problem) in [
        ("v9=2099-03-01", "v0, v1, v2"),
        ("v1=1970-01-01", "in the future"),
    ] {
        let update = Update {
            extend: Some(vec![extend.parse().unwrap()]),
            ..none()
        };
        let refused = administration.update(app.ident, &update, request(1)).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(problem), "{refused}");
    }
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
    let one = named("team-1", "one");
    let two = NewApp {
        rate_limit: Some("7/9".parse().unwrap()),
        ..named(&"x".repeat(64), "two")
    };
    let with_taken = vec![one.clone(), there.clone(), two.clone()];
    let refused = import(&apps, with_taken).await;
    assert_eq!(refused, [there.ident]);
    assert!(apps.find(one.ident).await.unwrap().is_none());

    let imported = import(&apps, vec![one.clone(), two.clone()]).await;
    assert!(imported.is_empty());
    for app in [&one, &two] {
        let found = apps.find(app.ident).await.unwrap().unwrap();
        assert!(found.key == app.key && found.default_version == app.default_version);
        assert_eq!(found.rate_limit, app.rate_limit);
    }
    let change = Change::Item {
        topic: Topic::Application,
        key: Vec::new(),
    };
    assert_eq!(changes.recv_timeout(CHANGE_TIMEOUT), Ok(change));
    let further = changes.recv_timeout(Duration::from_millis(200));
    assert_eq!(further, Err(mpsc::RecvTimeoutError::Timeout));
    let idents = vec![one.ident, new_app_ident().unwrap()];
    assert_eq!(
        applications::taken(apps.database(), &idents).await.unwrap(),
        [one.ident]
    );
    assert!(import(&apps, Vec::new()).await.is_empty());
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
    let apps = sealed_apps(store.clone());
    for statement in [
        "UPDATE applications SET key_sealed = previous_sealed",
        "UPDATE applications SET previous_until = previous_until + 1",
        "UPDATE applications SET previous_sealed = key_sealed",
    ] {
        let app = create(&apps, "one").await;
        rotate(&apps, app.ident, 1000).await.unwrap();
        apps.find(app.ident).await.unwrap().unwrap();
        tamper(&store, statement).await;
        let error = apps.find(app.ident).await.unwrap_err();
        let is_refused = matches!(error, AppStoreError::Seal(SealError::NotOpened));
        assert!(is_refused, "{statement}: {error}");
        administration(apps.clone())
            .delete(app.ident, request(1))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn keys_whose_overlap_ended_long_ago_are_deleted() {
    let test_store = TestStore::chosen();
    let apps = apps(&test_store).await;
    let (one, two) = (create(&apps, "one").await, create(&apps, "two").await);
    rotate(&apps, one.ident, 1000).await.unwrap();
    rotate(&apps, two.ident, 2000).await.unwrap();
    assert_eq!(
        applications::delete_previous_keys(apps.database(), at(3_601_001))
            .await
            .unwrap(),
        1
    );
    let previous = async |app: &NewApp| apps.find(app.ident).await.unwrap().unwrap().previous_key;
    assert!(previous(&one).await.is_none() && previous(&two).await.is_some());
}

/// Five minutes are for a busy machine: alone, 100,000 take a few seconds with either database, even in a debug build.
#[tokio::test]
async fn twenty_thousand_applications_are_imported_and_sealed_anew() {
    const MANY: usize = 20_000;
    let test_store = TestStore::chosen();
    let mut settings = test_store.settings();
    signpost_proxy::program::raise_statement_timeout(&mut settings);
    let apps = sealed_apps(Store::open(&settings).await.unwrap());
    let administration = administration(apps.clone());
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
    let imported = administration
        .import(file.as_bytes(), false, author(), at(1))
        .await;
    let took = begun.elapsed();
    assert_eq!(imported.unwrap().applications, MANY);
    assert!(took < Duration::from_secs(300), "{took:?}");
    let last = "team-19999".parse().unwrap();
    let found = apps.find(last).await.unwrap().unwrap();
    let key = file
        .trim_end()
        .rsplit('\n')
        .next()
        .unwrap()
        .split(',')
        .nth(1);
    assert_eq!(Some(found.key.expose()), key);
    let again = administration
        .import(file.as_bytes(), false, author(), at(1))
        .await;
    let text = again.unwrap_err().to_string();
    assert!(
        text.starts_with("line 2: ident: the store already has")
            && text.ends_with("19950 more problems"),
        "{text}"
    );
    // As many are sealed under another master key.
    let key = SecretSource::from(&*"cd".repeat(32)).read().unwrap();
    let before = SecretSource::from(&*"ab".repeat(32)).read().unwrap();
    let sealer = Sealer::from_config(&MasterKey::Given(key), false).unwrap();
    let sealer = sealer.with_previous(Some(&before)).unwrap();
    let begun = Instant::now();
    let both = StoredApps::new(apps.database().clone(), sealer);
    MasterKeyRotation(both.clone())
        .reseal_all(author(), Timestamp::from_millis(1), |_| {})
        .await
        .unwrap();
    let took = begun.elapsed();
    assert_eq!(
        MasterKeyRotation(both.clone())
            .reseal_progress()
            .await
            .unwrap()
            .remaining,
        0
    );
    assert!(took < Duration::from_secs(300), "{took:?}");
}

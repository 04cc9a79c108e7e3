//! From requests to the store, on the store of this run.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use signpost_kit::clock::{Clock, ManualClock};
use signpost_protocol::{app::AppId, request_id::RequestId};
use signpost_store::{
    Store,
    tables::usage::{OfPaths, StoredClient, StoredUsage, read, read_path_users, read_paths},
    testing::TestStore,
};

use super::{
    batch::{Batch, MAX_BATCH_KEYS, RowKey},
    counters::{MAX_KEYS, MAX_USER_AGENT},
    paths::{MAX_OF_APP, MAX_PATTERNS},
    store,
    writer::UsageWriter,
    *,
};
use crate::{
    config::{BackendIndex, Versions, tests::versions},
    directory::apps::App,
    observe::outcome::{Learnt, Outcome, Sent},
    phases::route::Route,
    request::{ids::RequestIds, rejection::Rejection},
};

const TWO: &str =
    "[versions.v1]\nbackend = '127.0.0.1:1'\n[versions.v2]\nbackend = '127.0.0.1:2'\n";
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Counters, and what requests refer to.
struct Counting {
    usage: Arc<Usage>,
    clock: ManualClock,
    versions: Versions,
    id: RequestId,
}

impl Counting {
    fn new() -> Self {
        let clock = ManualClock::default();
        Self {
            usage: Arc::new(Usage::new(Arc::new(clock.clone()))),
            clock,
            versions: versions(TWO),
            id: RequestIds::default().next(),
        }
    }

    fn writer(&self, store: &Store) -> UsageWriter {
        let clock = Arc::new(self.clock.clone());
        let (writer, _) = UsageWriter::new(Arc::clone(&self.usage), store.clone(), clock).unwrap();
        writer
    }

    fn route(&self, version: &str, source: VersionSource) -> Route {
        let version = self.versions.named(version.as_bytes()).unwrap();
        Route::new(Arc::clone(version), BackendIndex::OWN, source)
    }

    fn count(&self, app: Option<&Arc<App>>, is_signed: bool, route: &Route) {
        self.count_from(CLIENT, "app/1.0", app, is_signed, route);
    }

    fn count_from(
        &self,
        client: IpAddr,
        user_agent: &str,
        app: Option<&Arc<App>>,
        is_signed: bool,
        route: &Route,
    ) {
        let outcome = Outcome {
            client,
            learnt: Learnt {
                app,
                is_signed,
                route: Some(route),
                form: &[],
            },
            ..Outcome::unrouted(&self.id)
        };
        self.usage.count(&outcome, || Some(user_agent.as_bytes()));
    }

    /// Counts a request by its path.
    fn count_path(&self, app: Option<&Arc<App>>, is_signed: bool, request: &str, status: u16) {
        let (method, path) = request.split_once(' ').unwrap();
        let route = self.route("v1", VersionSource::Header);
        let rejected = Rejection::SignMissing(None);
        let outcome = Outcome {
            method: method.as_bytes(),
            compared: path,
            learnt: Learnt {
                app,
                is_signed,
                route: Some(&route),
                form: &[],
            },
            sent: Sent {
                status,
                ..Sent::default()
            },
            rejection: (status == 403).then_some(&rejected),
            ..Outcome::unrouted(&self.id)
        };
        self.usage.count(&outcome, || None);
    }

    /// What was counted since the last call.
    fn batch(&self) -> Batch {
        self.usage.take_batch()
    }

    async fn stored(&self, store: &Store) -> StoredUsage {
        let day = Day::at(self.clock.now());
        read(
            store,
            day.minus(KEEP_DAYS - 1).number()..=day.number(),
            None,
        )
        .await
        .unwrap()
    }
}

fn app(id: i64) -> Arc<App> {
    let key = "4283fefc63f0cd0e873a0000c6d07ef7".parse().unwrap();
    Arc::new(App {
        id: AppId::new(id),
        ident: Some(format!("app-{id}").parse().unwrap()),
        ..App::single(key)
    })
}

/// All requests, as `version application signed source=number`, sorted.
fn counts(stored: &StoredUsage) -> Vec<String> {
    let counts = stored.counts.iter().map(|count| {
        let signed = if count.is_signed {
            "signed"
        } else {
            "unsigned"
        };
        let (version, application) = (&count.version, count.application);
        format!(
            "{version} {application} {signed} {}={}",
            count.source, count.requests
        )
    });
    let mut counts: Vec<_> = counts.collect();
    counts.sort();
    counts
}

fn total(stored: &StoredUsage) -> u64 {
    stored.counts.iter().map(|count| count.requests).sum()
}

fn client_of(stored: &StoredUsage, application: i64, is_signed: bool) -> &StoredClient {
    let mut clients = stored.clients.iter();
    let is_it = |one: &&StoredClient| one.application == application && one.is_signed == is_signed;
    clients.find(is_it).unwrap()
}

/// They run on SQLite and on Postgres.
mod both_stores {
    use signpost_kit::clock::Timestamp;

    use super::*;

    /// A path, as the store counts it.
    struct Counted {
        method: String,
        path: String,
        requests: u64,
        client_errors: u64,
        server_errors: u64,
        applications: u64,
        last_seen: Timestamp,
    }

    signpost_store::from_row! {
        Counted { method, path, requests, client_errors, server_errors, applications, last_seen }
    }

    #[tokio::test]
    async fn requests_are_counted_by_their_paths() {
        let (test, counting) = (TestStore::chosen(), Counting::new());
        let store = test.open().await;
        let (one, other) = (app(1), app(2));
        let mut writer = counting.writer(&store);
        for id in 0..3 {
            counting.count_path(Some(&one), true, &format!("GET /orders/{id}/lines"), 200);
        }
        counting.count_path(Some(&one), true, "GET /orders/9/lines", 404);
        counting.count_path(Some(&other), true, "GET /orders/9/lines", 502);
        counting.count_path(Some(&other), true, "POST /orders", 201);
        // Anyone can send these; only those that succeed show what is used.
        counting.count_path(Some(&one), false, "GET /open", 302);
        counting.count_path(None, false, "GET /login", 200);
        counting.count_path(Some(&one), false, "GET /admin.php", 404);
        counting.count_path(Some(&one), false, "GET /wp-login", 403);
        counting.count_path(Some(&one), true, "BREW /coffee", 400);
        writer.turn().await;
        let first = counting.clock.now();
        counting.clock.advance(Duration::from_secs(60));
        counting.count_path(Some(&other), true, "POST /orders", 201);
        writer.turn().await;
        let of = |since: i64| OfPaths {
            since,
            version: Some("v1"),
            is_own: true,
            ..OfPaths::default()
        };
        let paths = read_paths::<Counted>(&store, &of(0)).await.unwrap();
        let shown = paths.iter().map(|path| {
            format!(
                "{} {} {} {} {} by {}",
                path.method,
                path.path,
                path.requests,
                path.client_errors,
                path.server_errors,
                path.applications
            )
        });
        let shown: Vec<_> = shown.collect();
        let expected = [
            "GET /login 1 0 0 by 0",
            "GET /open 1 0 0 by 1",
            "GET /orders/*/lines 5 1 1 by 2",
            "POST /orders 2 0 0 by 1",
        ];
        assert_eq!(shown, expected);
        assert_eq!(paths[2].last_seen, first);
        let late = read_paths::<Counted>(&store, &of(first.as_millis() + 1))
            .await
            .unwrap();
        assert_eq!((late.len(), late[0].requests), (1, 2));
        let users = read_path_users(&store, &of(0), 2).await.unwrap();
        let users = users
            .iter()
            .map(|user| (user.application, user.ident.as_deref(), user.requests));
        let users: Vec<_> = users.collect();
        assert_eq!(users, [(1, Some("app-1"), 4), (2, Some("app-2"), 2)]);
        counting
            .clock
            .advance(Duration::from_secs(u64::from(KEEP_DAYS) * 86_400));
        store::delete_old(&store, counting.clock.now())
            .await
            .unwrap();
        assert!(
            read_paths::<Counted>(&store, &of(0))
                .await
                .unwrap()
                .is_empty()
        );
    }

    #[tokio::test]
    async fn a_client_that_invents_paths_fills_no_table() {
        let (test, counting) = (TestStore::chosen(), Counting::new());
        let (store, one) = (test.open().await, app(1));
        let mut writer = counting.writer(&store);
        let word = |number: usize| {
            let letters = [number / 676, number / 26 % 26, number % 26];
            let letters = letters.map(|letter| char::from(b'a' + u8::try_from(letter).unwrap()));
            format!("GET /{}", String::from_iter(letters))
        };
        for number in 0..2 * MAX_PATTERNS {
            counting.count_path(Some(&one), true, &word(number), 200);
            if number % 300 == 0 {
                writer.turn().await;
            }
        }
        writer.turn().await;
        let paths = read_paths::<Counted>(&store, &OfPaths::default())
            .await
            .unwrap();
        assert_eq!(paths.len(), MAX_OF_APP + 1);
        let other = paths.iter().find(|path| path.path == "other").unwrap();
        assert_eq!(other.requests, (2 * MAX_PATTERNS - MAX_OF_APP) as u64);
    }

    #[tokio::test]
    async fn requests_are_counted_by_version_application_signature_and_source() {
        let (test, counting) = (TestStore::chosen(), Counting::new());
        let store = test.open().await;
        let (one, other) = (app(1), app(2));
        let named = counting.route("v1", VersionSource::Header);
        for _ in 0..3 {
            counting.count(Some(&one), true, &named);
        }
        counting.count(Some(&one), false, &named);
        counting.count(Some(&one), true, &counting.route("v1", VersionSource::App));
        counting.count(
            Some(&other),
            true,
            &counting.route("v2", VersionSource::Default),
        );
        counting.count(
            Some(&other),
            true,
            &counting.route("v2", VersionSource::Unknown),
        );
        counting.count(None, false, &counting.route("v1", VersionSource::State));
        // Rejected before it had a route.
        let rejected = Outcome {
            learnt: Learnt {
                app: Some(&one),
                is_signed: true,
                ..Learnt::default()
            },
            ..Outcome::unrouted(&counting.id)
        };
        counting.usage.count(&rejected, || None);
        let mut writer = counting.writer(&store);
        writer.turn().await;
        counting.count(Some(&one), true, &named);
        writer.turn().await;
        // Nothing is counted twice.
        writer.turn().await;
        let stored = counting.stored(&store).await;
        let expected = [
            "v1 0 unsigned state=1",
            "v1 1 signed app=1",
            "v1 1 signed header=4",
            "v1 1 unsigned header=1",
            "v2 2 signed default=1",
            "v2 2 signed unknown=1",
        ];
        assert_eq!(counts(&stored), expected);
        assert_eq!(stored.began_at, Some(counting.clock.now()));
        let client = client_of(&stored, 1, true);
        assert_eq!(client.ident.as_deref(), Some("app-1"));
        assert_eq!(client.address.as_deref(), Some("192.0.2.1"));
        assert_eq!(client.user_agent.as_deref(), Some("app/1.0"));
        // A callback is a user's browser.
        let callbacks = client_of(&stored, NO_APPLICATION, false);
        assert_eq!(
            (&callbacks.address, callbacks.user_agent.as_deref()),
            (&None, Some(""))
        );
    }

    #[tokio::test]
    async fn only_the_last_client_is_kept_and_an_unsigned_one_replaces_no_signed_one() {
        let (test, counting) = (TestStore::chosen(), Counting::new());
        let store = test.open().await;
        let (one, route) = (app(1), counting.route("v1", VersionSource::Header));
        let mut writer = counting.writer(&store);
        let hostile = format!("a\u{1b}[2J\r\n{}", "x".repeat(300));
        for (last, agent, is_signed) in [
            (1, "first", true),
            (2, &*hostile, true),
            (3, "anyone", false),
        ] {
            let address = IpAddr::from([192, 0, 2, last]);
            counting.count_from(address, agent, Some(&one), is_signed, &route);
            counting.clock.advance(Duration::from_secs(5));
            writer.turn().await;
        }
        let stored = counting.stored(&store).await;
        assert_eq!(stored.clients.len(), 2);
        let signed = client_of(&stored, 1, true);
        assert_eq!(signed.address.as_deref(), Some("192.0.2.2"));
        let agent = signed.user_agent.as_deref().unwrap();
        assert!(
            agent.starts_with("a?[2J??xxx") && agent.len() == MAX_USER_AGENT,
            "{agent}"
        );
        let unsigned = client_of(&stored, 1, false);
        assert_eq!(unsigned.address.as_deref(), Some("192.0.2.3"));
        assert_eq!(unsigned.last_seen, counting.clock.now());
    }

    #[tokio::test]
    async fn a_batch_that_is_written_again_counts_once() {
        let (test, counting) = (TestStore::chosen(), Counting::new());
        let store = test.open().await;
        counting.count(
            Some(&app(1)),
            true,
            &counting.route("v1", VersionSource::Header),
        );
        let (batch, now) = (Arc::new(counting.batch()), counting.clock.now());
        for (writer, sequence, expected) in [
            (1, 1, 1),
            (1, 1, 1),
            (2, 1, 2),
            (1, 2, 3),
            (1, 1, 3),
            (1, 2, 3),
        ] {
            store::add(&store, (&[writer; 16], sequence), &batch, now)
                .await
                .unwrap();
            let stored = counting.stored(&store).await;
            assert_eq!(total(&stored), expected, "{writer} {sequence}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_batch_that_is_written_twice_at_once_counts_once_and_gateways_add_up() {
        let (test, counting) = (TestStore::chosen(), Counting::new());
        let store = test.open().await;
        for id in 1..=50 {
            counting.count(
                Some(&app(id)),
                true,
                &counting.route("v1", VersionSource::Header),
            );
        }
        let (batch, now) = (Arc::new(counting.batch()), counting.clock.now());
        let mut writing = tokio::task::JoinSet::new();
        for number in 0..8_u8 {
            let (store, batch) = (store.clone(), Arc::clone(&batch));
            writing.spawn(
                async move { store::add(&store, (&[number % 4; 16], 1), &batch, now).await },
            );
        }
        for outcome in writing.join_all().await {
            outcome.unwrap();
        }
        assert_eq!(total(&counting.stored(&store).await), 4 * 50);
    }

    #[tokio::test]
    async fn counts_of_an_outage_are_written_later_and_once() {
        let (test, counting) = (TestStore::chosen(), Counting::new());
        let store = test.open().await;
        let (one, route) = (app(1), counting.route("v1", VersionSource::Header));
        let mut writer = counting.writer(&store);
        writer.turn().await;
        test.make_unavailable();
        for _ in 0..3 {
            counting.count(Some(&one), true, &route);
            writer.turn().await;
        }
        test.make_available();
        counting.count(Some(&one), true, &route);
        // The first call may still get a pooled connection that was closed.
        writer.turn().await;
        writer.flush().await;
        assert_eq!(
            counts(&counting.stored(&store).await),
            ["v1 1 signed header=4"]
        );
    }

    #[tokio::test]
    async fn requests_are_of_the_day_on_which_they_were_counted_and_kept_for_90_days() {
        let (test, counting) = (TestStore::chosen(), Counting::new());
        let store = test.open().await;
        let (one, route) = (app(1), counting.route("v1", VersionSource::Header));
        let mut writer = counting.writer(&store);
        counting.count(Some(&one), true, &route);
        let first = Day::at(counting.clock.now());
        // The batch is closed at midnight.
        counting.clock.advance(first.rest(counting.clock.now()));
        writer.turn().await;
        counting.count(Some(&one), true, &route);
        counting.count(Some(&one), true, &route);
        writer.turn().await;
        let day = Duration::from_secs(86_400);
        let second = Day::at(counting.clock.now());
        for (day, expected) in [(first, 1), (second, 2)] {
            assert_eq!(
                total(
                    &read(&store, day.number()..=day.number(), None)
                        .await
                        .unwrap()
                ),
                expected
            );
        }
        for (days, counted) in [(u32::from(KEEP_DAYS) - 2, 3), (1, 2), (1, 0)] {
            counting.clock.advance(day * days);
            // A writer that starts now deletes at its first turn.
            counting.writer(&store).turn().await;
            let stored = read(
                &store,
                first.number()..=Day::at(counting.clock.now()).number(),
                None,
            )
            .await
            .unwrap();
            assert_eq!(total(&stored), counted);
            assert_eq!(stored.clients.len(), usize::from(counted > 0));
        }
    }
}
/// The requests of a label, of all classes.
fn shown(usage: &Usage, label: &str) -> Option<u64> {
    let shown = usage.scrape();
    let found = shown.iter().find(|(shown, _)| **shown == *label);
    found.map(|(_, counts)| counts.iter().sum())
}

#[test]
fn a_scrape_and_a_batch_read_the_same_counts() {
    let counting = Counting::new();
    counting.usage.show(1);
    let route = counting.route("v1", VersionSource::Header);
    let [one, two] = [1, 2].map(app);
    counting.count(Some(&one), true, &route);
    counting.usage.read();
    counting.count(Some(&two), true, &route);
    assert_eq!(shown(&counting.usage, "app-1"), Some(1));
    counting.count(Some(&one), true, &route);
    // Without a route, a request is in no batch.
    let rejected = Outcome {
        learnt: Learnt {
            app: Some(&one),
            ..Learnt::default()
        },
        ..Outcome::unrouted(&counting.id)
    };
    counting.usage.count(&rejected, || None);
    assert_eq!(counting.batch().requests(), 3);
    assert_eq!(shown(&counting.usage, "app-1"), Some(3));
    assert_eq!(shown(&counting.usage, "app-2"), None);
    assert_eq!(shown(&counting.usage, "other"), Some(1));
}

#[test]
fn a_flood_of_applications_is_counted_together_and_no_request_is_lost() {
    let counting = Counting::new();
    let route = counting.route("v1", VersionSource::Header);
    let flood = i64::try_from(MAX_KEYS).unwrap() + 500;
    let apps: Vec<_> = (1..=flood).map(app).collect();
    for _ in 0..2 {
        for app in &apps {
            counting.count(Some(app), true, &route);
        }
    }
    counting.count(None, false, &counting.route("v1", VersionSource::State));
    let batch = counting.batch();
    let all = 2 * u64::try_from(flood).unwrap();
    assert_eq!(batch.requests(), all + 1);
    // Those without a place, and those that the shard had no room for.
    assert_eq!(shown(&counting.usage, "other"), Some(all));
    assert_eq!(batch.counts.len(), MAX_KEYS + 2);
    let others = batch
        .counts
        .iter()
        .find(|(key, _)| key.application == OTHER_APPLICATIONS);
    assert_eq!(others.unwrap().1[0], 1000);
    // Keys without requests are dropped.
    assert!(counting.batch().counts.is_empty());
    let mut sum = Batch::default();
    for id in 0..i64::try_from(MAX_BATCH_KEYS).unwrap() + 700 {
        let (key, client) = (
            batch.counts.iter().next().unwrap().0,
            batch.clients.iter().next().unwrap().1,
        );
        let key = RowKey {
            application: id + 1,
            ..key.clone()
        };
        sum.add(key, &[1, 0, 0, 0, 0, 0, 0], client.clone());
    }
    assert_eq!(sum.requests(), u64::try_from(MAX_BATCH_KEYS).unwrap() + 700);
    assert_eq!(sum.counts.len(), MAX_BATCH_KEYS + 1);
    let (_, client) = sum
        .clients
        .iter()
        .find(|((_, id, _), _)| *id == OTHER_APPLICATIONS)
        .unwrap();
    assert_eq!((client.address, &*client.user_agent), (None, ""));
}

#[test]
fn a_flood_of_unsigned_requests_leaves_room_for_signed_ones() {
    let counting = Counting::new();
    let route = counting.route("v1", VersionSource::Header);
    for id in 1..=i64::try_from(MAX_KEYS).unwrap() {
        counting.count(Some(&app(id)), false, &route);
    }
    let signed = app(1);
    counting.count(Some(&signed), true, &route);
    let batch = counting.batch();
    let is_of_signed = |key: &RowKey| key.is_signed && key.application == signed.id.get();
    assert!(batch.counts.iter().any(|(key, _)| is_of_signed(key)));
    assert_eq!(batch.counts.len(), MAX_KEYS / 2 + 2);
}

#[test]
fn a_flood_of_paths_leaves_those_of_others_and_of_the_configuration() {
    let mut counting = Counting::new();
    counting.versions = versions(
        "[versions.v1]\nbackend = '127.0.0.1:1'\nroutes = [{ path = '/stock/**', backend = '127.0.0.1:2' }]\n",
    );
    let (one, other) = (app(1), app(2));
    for number in 0..20_000_u32 {
        let letters = [0, 5, 10, 15].map(|bits| char::from(b'a' + (number >> bits & 15) as u8));
        let request = format!("GET /{}", String::from_iter(letters));
        counting.count_path(Some(&one), true, &request, 200);
        if number % 10_000 == 0 {
            counting.count_path(Some(&other), true, "GET /quiet", 200);
            counting.count_path(Some(&one), true, "GET /stock/1", 200);
            drop(counting.batch());
        }
    }
    counting.count_path(Some(&other), true, "GET /quiet", 200);
    counting.count_path(Some(&other), true, "POST /quiet/new", 200);
    counting.count_path(Some(&one), true, "GET /stock/1", 200);
    let batch = counting.batch();
    assert!(
        batch.paths.len() <= MAX_PATTERNS + 3,
        "{}",
        batch.paths.len()
    );
    let counted = |application, pattern: &str| {
        let paths = batch.paths.iter();
        let of =
            paths.filter(|(key, _)| (key.application, &*key.pattern) == (application, pattern));
        of.map(|(_, counts)| counts.by_class.iter().sum::<u64>())
            .sum::<u64>()
    };
    assert_eq!((counted(2, "/quiet"), counted(2, "/quiet/new")), (1, 1));
    assert_eq!((counted(1, "/stock/**"), counted(2, "other")), (1, 0));
    assert_eq!(
        batch
            .paths
            .values()
            .map(|path| path.by_class.iter().sum::<u64>())
            .sum::<u64>(),
        batch.requests()
    );
}

#[test]
fn the_backends_of_a_version_are_one_key() {
    let mut counting = Counting::new();
    counting.versions = versions(
        "[versions.v1]\nbackend = '127.0.0.1:1'\nroutes = [{ path = '/a', backend = '127.0.0.1:2' }]\n",
    );
    let version = counting.versions.named(b"v1").unwrap();
    let one = app(1);
    for index in [BackendIndex::OWN, version.routed("/a").unwrap()] {
        let route = Route::new(Arc::clone(version), index, VersionSource::Header);
        counting.count(Some(&one), true, &route);
    }
    assert_eq!(counting.usage.keys(), 1);
    assert_eq!(counting.batch().requests(), 2);
}

#[test]
fn all_threads_are_counted() {
    let counting = Counting::new();
    let (one, route) = (app(1), counting.route("v1", VersionSource::Header));
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| (0..50).for_each(|_| counting.count(Some(&one), true, &route)));
        }
    });
    assert_eq!(counting.batch().requests(), 5000);
}

#[test]
fn a_reload_keeps_the_counts_of_a_version() {
    let (mut counting, one) = (Counting::new(), app(1));
    counting.count(
        Some(&one),
        true,
        &counting.route("v1", VersionSource::Header),
    );
    counting.versions = versions(TWO);
    counting.count(
        Some(&one),
        true,
        &counting.route("v1", VersionSource::Header),
    );
    let batch = counting.batch();
    let counts: Vec<_> = batch.counts.iter().collect();
    assert_eq!((counts.len(), counts[0].1[0]), (1, 2));
}

#[test]
fn counting_a_known_key_allocates_nothing() {
    let counting = Counting::new();
    let (one, route) = (app(1), counting.route("v1", VersionSource::Header));
    counting.count(Some(&one), true, &route);
    drop(counting.batch());
    // The user agent is stored again, in the same memory.
    let cost = allocation_counter::measure(|| {
        for _ in 0..1000 {
            counting.count(Some(&one), true, &route);
        }
    });
    assert_eq!(cost.count_total, 0, "{cost:?}");
}

#[test]
fn a_time_is_written_in_utc() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_800, "2000-03-01T00:00:00Z"),
        (1_709_164_800, "2024-02-29T00:00:00Z"),
        (1_735_689_599, "2024-12-31T23:59:59Z"),
        (1_795_375_509, "2026-11-22T19:25:09Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
    ] {
        assert_eq!(
            rfc3339(Timestamp::from_millis(seconds * 1000)),
            text,
            "{seconds}"
        );
    }
}

#[test]
fn a_day_ends_at_midnight() {
    let day = Day::at(Timestamp::from_millis(1_795_375_509_000));
    let end = day.begin().plus(Duration::from_secs(86_400));
    assert_eq!(Day::at(end), Day(day.number() + 1));
    let last = Timestamp::from_millis(end.as_millis() - 1);
    assert_eq!(Day::at(last), day);
    assert_eq!(day.rest(last), Duration::from_millis(1));
    assert_eq!(day.minus(3).number(), day.number() - 3);
}

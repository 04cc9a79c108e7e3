//! What versions have of their own: settings, state, tasks, metrics, and the JSON of the library's answers.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use axum::Json;
use serde::Serialize;
use serde_json::{Value, json};
use signpost_kit::{config::Loaded, read_all, secret::Secret};
use utoipa::ToSchema;

use super::*;
use crate::{
    Account, Endpoints, LoginError, Own, Routes, Version, Versions,
    config::Config,
    http::{Configured, request::Parameters, views::View},
    testing::TestService,
    views::{Check, LoginResult, PollingLogin, RenewedCredential, SentEvent},
};

/// A version with all that one can have.
struct Shop;

struct Settings {
    word: String,
    size: u64,
    token: Option<Secret>,
}

impl OwnSettings for Settings {
    const EXAMPLE: &'static str = "[own]\n# What it says.\nword = \"hello\"\n# How often.\nsize = 3\n# For the shop.\n# token = \"file:x\"\n";

    fn read(own: &mut Section<'_>) -> Read<Self> {
        read_all!(Settings {
            word: own.parsed("word", "hello", "a text"),
            size: own.number("size", 1..=9, 3),
            token: own.secret("token"),
        })
    }
}

struct Counts {
    calls: AtomicU64,
    sold: Counter,
    hit: Counter,
    took: Histogram,
    /// What its task has seen of the settings, and 100 once it was told to stop.
    seen: watch::Receiver<u64>,
}

impl OwnState<Settings> for Counts {
    async fn start(start: &Start<Settings>) -> Result<Self, StartError> {
        if start.settings().borrow().word == "broken" {
            return Err("nothing is on sale".into());
        }
        let (mut settings, stopping) = (start.settings(), start.stopping());
        let (see, seen) = watch::channel(settings.borrow().size);
        start.spawn(async move {
            tokio::pin!(stopping);
            loop {
                tokio::select! {
                    Ok(()) = settings.changed() => {
                        see.send_replace(settings.borrow_and_update().size);
                    }
                    () = &mut stopping => break,
                }
            }
            see.send_replace(100);
        });
        let [hit, _] = start.counters("lookups", "Lookups", "result", ["hit", "miss"])?;
        Ok(Self {
            calls: AtomicU64::new(0),
            sold: start.counter("sold", "What was sold")?,
            hit,
            took: start.histogram("sale_seconds", "Sales")?,
            seen,
        })
    }
}

#[derive(Serialize, ToSchema)]
struct Renamed {
    renamed: Value,
}

fn renamed(value: impl Serialize) -> Renamed {
    Renamed {
        renamed: json!(value),
    }
}

impl Version for Shop {
    const NAME: &'static str = "v9.x";
    type Settings = Settings;
    type State = Counts;

    fn endpoints() -> Endpoints<Self> {
        Endpoints::new()
            .get("/calls", calls)
            .get("/sell", sell)
            .get("/seen", seen)
    }

    fn account(account: &Account) -> impl View {
        renamed(account.username.as_str())
    }

    fn login_result(result: &LoginResult) -> impl View {
        renamed((Self::account(&result.account), result.created))
    }

    fn check(check: &Check) -> impl View {
        renamed((check.status(), check.login().map(Self::login_result)))
    }

    fn polling_login(login: PollingLogin) -> impl View {
        renamed((login.token, login.interval))
    }

    fn sent_event(event: SentEvent) -> impl View {
        renamed(event.event)
    }

    fn renewed(credential: RenewedCredential) -> impl View {
        renamed(credential.expires_in)
    }

    fn logged_out() -> impl View {
        renamed("out")
    }
}

async fn calls(own: Own<Shop>) -> Json<Value> {
    let calls = own.state.calls.fetch_add(1, Relaxed);
    let token = own.settings.token.as_ref().map(Secret::expose);
    Json(json!([own.settings.word, own.settings.size, calls, token]))
}

async fn sell(own: Own<Shop>) -> Result<Json<()>, LoginError> {
    own.state.sold.add(2);
    own.state.hit.add(1);
    own.state.took.observe(Duration::from_millis(1));
    Ok(Json(()))
}

/// Waits until the task has seen a size.
async fn seen(own: Own<Shop>, parameters: Parameters) -> Result<Json<u64>, LoginError> {
    let size = parameters.number("size", 0..=100)?;
    let mut seen = own.state.seen.clone();
    let found = seen.wait_for(|seen| Some(*seen) == size).await;
    Ok(Json(found.map_or(0, |found| *found)))
}

/// A version without anything of its own.
struct Plain;

impl Version for Plain {
    const NAME: &'static str = "v8";
    type Settings = ();
    type State = ();
}

fn several() -> Versions {
    Versions::choosing(|_, all| Routes::clone(&all[0].1))
        .with::<Plain>()
        .with::<Shop>()
}

/// The keys that have problems, and the whole message.
fn problems(versions: &Versions, toml: &str) -> (Vec<String>, String) {
    let provider = crate::testing::config_text_with_provider("http://127.0.0.1:1", "");
    let text = format!("prefix = \"Acme\"\n{toml}\n{provider}");
    let read: Result<Loaded<(Config, Configured)>, _> =
        Config::parse(Path::new("v9.toml"), &text, |root| versions.read(root));
    let Err(error) = read else {
        return (Vec::new(), String::new());
    };
    let keys = error.keys().into_iter().map(str::to_owned).collect();
    (keys, error.to_string())
}

#[tokio::test]
async fn a_state_outlives_a_reload_and_belongs_to_one_service() {
    let service = TestService::with::<Shop>("own.word = \"one\"").await;
    let other = TestService::new::<Shop>().await;
    assert_eq!(
        service.get("/calls").await.json(),
        json!(["one", 3, 0, null])
    );
    service
        .reload("[own]\nword = \"two\"\nsize = 5\ntoken = \"key\"")
        .await;
    assert_eq!(
        service.get("/calls").await.json(),
        json!(["two", 5, 1, "key"])
    );
    assert_eq!(
        other.get("/calls").await.json(),
        json!(["hello", 3, 0, null])
    );
}

#[tokio::test]
async fn a_task_sees_reloads_and_the_stop_waits_for_it() {
    let service = TestService::new::<Shop>().await;
    service.reload("own.size = 7").await;
    assert_eq!(service.get("/seen?size=7").await.json(), 7);
    service.stop().await;
    assert_eq!(service.get("/seen?size=100").await.json(), 100);
}

#[tokio::test]
async fn a_state_that_cannot_be_made_ends_the_start() {
    let start = async |toml: &str| {
        let service = TestService::new::<Plain>().await.service();
        let provider = crate::testing::config_text_with_provider("http://127.0.0.1:1", "");
        let text = format!("prefix = \"Acme\"\n{toml}\n{provider}");
        let versions = Versions::one::<Shop>();
        let read = Config::parse(Path::new("v9.toml"), &text, |root| versions.read(root));
        let routes = read.unwrap().config.1.routes(&service).await;
        routes.map_err(|error| format!("{error:#}"))
    };
    let error = start("own.word = \"broken\"").await.unwrap_err();
    assert_eq!(error, "version v9.x cannot start: nothing is on sale");
    assert!(start("").await.is_ok());
}

#[test]
fn all_problems_of_a_file_are_reported_at_once() {
    let toml = "listen = 1\n[own]\nword = \"x\"\nsize = 10\nszie = 1\ntoken = \"file:/nowhere\"";
    let (mut keys, message) = problems(&Versions::one::<Shop>(), toml);
    keys.sort();
    assert_eq!(keys, ["listen", "own.size", "own.szie", "own.token"]);
    for line in [
        "v9.toml:5: own.size: found 10; allowed: a whole number from 1 to 9",
        "v9.toml:6: own.szie: unknown key; did you mean size?",
    ] {
        assert!(message.contains(line), "{message}");
    }
}

#[test]
fn each_version_reads_its_own_table() {
    let keys = |versions: &Versions, toml: &str| problems(versions, toml).0;
    assert!(keys(&Versions::one::<Shop>(), "own.size = 1").is_empty());
    assert!(keys(&Versions::one::<Plain>(), "").is_empty());
    assert_eq!(keys(&Versions::one::<Plain>(), "own.size = 1"), ["own"]);
    let several = several();
    assert!(keys(&several, "").is_empty());
    assert!(keys(&several, "own.\"v9.x\".size = 1").is_empty());
    for (toml, key) in [
        ("own.size = 1", "own.size"),
        ("own.v8.size = 1", "own.v8"),
        ("own.\"v9.x\".size = 0", "own.v9.x.size"),
    ] {
        assert_eq!(keys(&several, toml), [key]);
    }
}

#[test]
fn the_command_keys_lists_them_with_their_comments() {
    let listed = |versions: &Versions| {
        let keys = Config::keys(|root| versions.read(root), &versions.examples());
        let own = keys.into_iter().filter(|key| key.key.starts_with("own"));
        own.map(|key| format!("{}: {} {:?}", key.key, key.meaning, key.default))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        listed(&Versions::one::<Shop>()),
        [
            "own.word: What it says. Some(\"\\\"hello\\\"\")",
            "own.size: How often. Some(\"3\")",
            "own.token: For the shop. None",
        ]
    );
    let of_several = listed(&several());
    assert_eq!(of_several.len(), 3, "{of_several:?}");
    assert!(of_several[2].starts_with("own.v9.x.token: For the shop."));
    assert!(listed(&Versions::one::<Plain>()).is_empty());
}

#[test]
#[should_panic(expected = "no example explains own.size")]
fn a_key_without_a_comment_fails_the_test_of_the_example() {
    struct Unexplained;
    impl OwnSettings for Unexplained {
        const EXAMPLE: &'static str = "[own]\nsize = 3\n";

        fn read(own: &mut Section<'_>) -> Read<Self> {
            own.number("size", 1..=9, 3).map(|_| Self)
        }
    }
    struct Careless;
    impl Version for Careless {
        const NAME: &'static str = "v9";
        type Settings = Unexplained;
        type State = ();
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/v1.toml");
    let _ = crate::testing::example::<Careless>(file);
}

#[tokio::test]
async fn metrics_have_the_versions_prefix() {
    let service = TestService::new::<Shop>().await;
    service.get("/sell").await;
    let metrics = service.metrics();
    for line in [
        "# HELP signpost_own_v9_x_sold_total What was sold",
        "# TYPE signpost_own_v9_x_sold_total counter",
        "signpost_own_v9_x_sold_total 2",
        "signpost_own_v9_x_lookups_total{result=\"hit\"} 1",
        "signpost_own_v9_x_lookups_total{result=\"miss\"} 0",
        "signpost_own_v9_x_sale_seconds_count 1",
    ] {
        let is_there = metrics.lines().any(|one| one.starts_with(line));
        assert!(is_there, "{line}: {metrics}");
    }
}

#[tokio::test]
async fn a_metric_has_a_name_of_its_own() {
    let (service, settings) = (
        TestService::new::<Plain>().await.service(),
        watch::channel(Arc::new(())).1,
    );
    let start = Start::<()>::new("v8", service, settings);
    start.counter("a", "A").unwrap();
    let twice = start
        .histogram("a_seconds", "A")
        .and(start.counter("a", "A"));
    let twice = twice.unwrap_err().to_string();
    assert_eq!(twice, "metric \"a\": made twice; allowed: once");
    for bad in [
        "",
        "A",
        "a b",
        "1",
        "_a",
        "a_total",
        &*"a".repeat(65).leak(),
    ] {
        let error = start.counter(bad, "A").unwrap_err().to_string();
        assert!(error.contains("not a name"), "{error}");
    }
    assert!(start.histogram("duration", "A").is_err());
    assert!(start.counters("b", "B", "a b", ["c"]).is_err());
}

#[tokio::test]
async fn a_version_writes_every_answer_in_its_own_way() {
    let service = TestService::new::<Shop>().await;
    let begun = service.post("/login", []).await.json();
    let token = begun["renamed"][0].as_str().unwrap();
    assert_eq!(begun["renamed"][1], 2);
    let check = service.post("/check", [("token", token)]).await;
    assert_eq!(check.json(), json!({ "renamed": ["pending", null] }));
    let ada = service.logged_in("ada");
    let user = ada.get("/user").await;
    assert_eq!(user.json(), json!({ "renamed": "ada" }));
    let sent = ada.post("/event/send", [("event", "a.b")]).await;
    assert_eq!(sent.json(), json!({ "renamed": "a.b" }));
    let renewed = ada.post("/user/renew", []).await;
    assert_eq!(renewed.json(), json!({ "renamed": 30 * 24 * 60 * 60 }));
    let out = ada.post("/user/logout", []).await;
    assert_eq!(out.json(), json!({ "renamed": "out" }));
    assert_eq!(ada.get("/user").await.problem(), "authorization_invalid");
    assert_eq!(service.logged_in("ada").get("/user").await.status, 200);
    let result = LoginResult {
        account: crate::testing::account("ada"),
        authorization: String::new(),
        expires_in: 1,
        created: true,
    };
    let check = Check {
        status: crate::views::CheckStatus::Complete(Box::new(result)),
        expires_in: 1,
    };
    assert_eq!(
        serde_json::to_value(Shop::check(&check)).unwrap(),
        json!({ "renamed": ["complete", { "renamed": [{ "renamed": "ada" }, true] }] })
    );
}

#[tokio::test]
async fn a_path_of_the_library_ends_the_start() {
    struct Taken;
    impl Version for Taken {
        const NAME: &'static str = "v9";
        type Settings = ();
        type State = ();

        fn endpoints() -> Endpoints<Self> {
            Endpoints::new().get("/user", async || "mine")
        }
    }
    let started = tokio::spawn(TestService::new::<Taken>()).await;
    let message = started.err().unwrap().into_panic();
    let message = message.downcast::<String>().unwrap();
    assert!(
        message.contains("the login library has this path"),
        "{message}"
    );
}

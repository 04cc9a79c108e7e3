//! The API as its clients call it, on both stores.

mod apps;
mod audit;
mod backends;
mod config;
mod idempotency;
mod requests;
mod roles;
mod tokens;
mod versions;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{ConnectInfo, Request},
    response::Response,
};
use futures_util::{future::join_all, stream};
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use signpost_kit::{
    clock::{Clock, SystemClock},
    reload::ReloadHandle,
};
use signpost_protocol::app::AppIdent;
use signpost_proxy::{
    Gateway, StoredApps,
    testing::{MINIMAL, gateway, load},
};
use signpost_store::{Store, testing::TestStore};
use tempfile::TempDir;
use tokio::time::timeout;
use tower::ServiceExt;

use super::{Api, router};
use crate::administration::{
    apps::both_stores::{author, sealed_apps},
    tokens::{NewToken, Role, Tokens},
};

/// An API, and a token for each role.
pub(crate) struct Scene {
    pub api: Arc<Api>,
    pub router: Router,
    /// The folder of its file, `gateway.toml`.
    pub(super) folder: TempDir,
    pub(super) reload: ReloadHandle,
    pub current: Arc<ArcSwap<Gateway>>,
    pub store: Store,
    pub(super) apps: StoredApps,
    pub(super) tokens: Tokens,
}

/// The ident of the console's application.
const CONSOLE: &str = "console";
/// The field of a JSON body.
const JSON: (&str, &str) = ("content-type", "application/json");

/// The application of the console, if there is one.
fn console() -> Option<AppIdent> {
    Some(CONSOLE.parse().unwrap())
}

/// A request with a token and further fields.
fn request(
    method: &str,
    path: &str,
    token: &str,
    fields: &[(&str, &str)],
    body: impl Into<Body>,
) -> Request {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    let fields = fields.iter();
    let request = fields.fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    request.body(body.into()).unwrap()
}

/// A response.
#[derive(Debug)]
pub(crate) struct Called {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// The body, if it is JSON.
    pub(crate) body: Value,
    pub(super) text: String,
}

impl Called {
    /// Reads a response; of a stream, which does not end, only the head.
    async fn read(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let is_stream = parts.headers[header::CONTENT_TYPE] == "text/event-stream";
        let body = if is_stream { Body::empty() } else { body };
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Self {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
            text: String::from_utf8(bytes.into()).unwrap(),
        }
    }

    /// The code of its problem.
    pub(super) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

impl Scene {
    pub(crate) async fn new(test_store: &TestStore) -> Self {
        let store = test_store.open().await;
        let (apps, tokens) = (sealed_apps(store.clone()), Tokens::new(store.clone()));
        let mut gateway = gateway(load(MINIMAL).unwrap());
        let state = Arc::get_mut(&mut gateway.state).unwrap();
        state.records.watch = Some(Arc::default());
        let current = Arc::new(ArcSwap::from_pointee(gateway));
        let (folder, reload) = config::reload_of(MINIMAL);
        let api = Api::new(apps.clone(), &current, reload.clone(), console());
        let api = Arc::new(api);
        Self {
            router: router(&api),
            api,
            folder,
            reload,
            current,
            store,
            apps,
            tokens,
        }
    }

    /// An API that differs by what it reloads.
    fn router_with(&self, reload: ReloadHandle) -> Router {
        router(&Arc::new(Api::new(
            self.apps.clone(),
            &self.current,
            reload,
            console(),
        )))
    }

    /// All turns of calls, by other tokens than a test has.
    pub(crate) async fn all_turns(&self) -> impl Sized {
        let turns = &self.api.turns;
        (turns.take(-1).await, turns.take(-2).await)
    }

    /// The text of a new token with this role.
    pub(crate) async fn token(&self, role: Role) -> String {
        self.token_of(&format!("the {}", role.as_str()), role).await
    }

    /// The text of a new token with this name.
    pub(crate) async fn token_of(&self, name: &str, role: Role) -> String {
        let at = SystemClock.now();
        let new = NewToken {
            name: name.to_owned(),
            role,
            expires_at: at.plus(Duration::from_secs(3600)),
        };
        let (_, secret) = self.tokens.create(new, author(), at).await.unwrap();
        secret.expose().to_owned()
    }

    /// Calls with a token. A POST without a body sends an empty object.
    pub(super) async fn call(&self, method: &str, path: &str, token: &str, body: Value) -> Called {
        let request = match method {
            "POST" => request(method, path, token, &[JSON], body.to_string()),
            _ => request(method, path, token, &[], Body::empty()),
        };
        self.send(request).await
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Called {
        self.call("GET", path, token, Value::Null).await
    }

    pub(super) async fn post(&self, path: &str, token: &str, body: Value) -> Called {
        self.call("POST", path, token, body).await
    }

    pub(super) async fn send(&self, request: Request) -> Called {
        Called::read(self.respond(request).await).await
    }

    async fn respond(&self, mut request: Request) -> Response {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        request.extensions_mut().get_or_insert(ConnectInfo(address));
        let Ok(response) = self.router.clone().oneshot(request).await;
        response
    }

    /// The description that it serves.
    pub(super) async fn document(&self) -> Value {
        let request = Request::get("/api/v1/openapi.json").body(Body::empty());
        self.send(request.unwrap()).await.body
    }
}

#[tokio::test]
async fn problems_are_written_in_the_callers_language() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    for (language, title) in [
        ("en", "A token is required"),
        ("de, ja;q=0.5", "トークンが必要です"),
        ("zh-CN", "需要令牌"),
        ("zh-TW", "需要權杖"),
        ("ko", "토큰이 필요합니다"),
    ] {
        let request = Request::get("/api/v1/apps").header(header::ACCEPT_LANGUAGE, language);
        let called = scene.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(called.status, StatusCode::UNAUTHORIZED);
        assert_eq!(called.body["title"], title);
        assert_eq!(called.body["type"], "/problems/token_missing");
        assert_eq!(
            called.headers[header::CONTENT_TYPE],
            "application/problem+json"
        );
        assert_eq!(
            called.headers[header::WWW_AUTHENTICATE],
            "Bearer realm=\"management\""
        );
        assert_eq!(called.headers[header::CACHE_CONTROL], "no-store");
        assert_eq!(
            called.headers["x-request-id"],
            called.body["request_id"].as_str().unwrap()
        );
    }
}

#[tokio::test]
async fn what_a_problem_refers_to_is_served_to_anyone() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let get = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        scene.send(request).await
    };
    let about = get("/problems/revision_stale").await;
    assert_eq!(
        (about.status.as_u16(), &about.body["status"]),
        (200, &json!(412))
    );
    for path in ["/problems/unknown", "/problems/%FF"] {
        assert_eq!(get(path).await.code(), "not_found");
    }
}

#[tokio::test]
async fn a_call_waits_for_its_turn_and_is_rejected_in_the_end() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Viewer).await;
    let turns = scene.all_turns().await;
    let call = scene.get("/api/v1/apps", &token);
    tokio::pin!(call);
    assert!(
        timeout(Duration::from_millis(200), &mut call)
            .await
            .is_err()
    );
    drop(turns);
    assert_eq!(call.await.status, StatusCode::OK);
    let _turns = scene.all_turns().await;
    let call = scene.get("/api/v1/apps", &token);
    tokio::pin!(call);
    let asked = || scene.store.statistics().succeeded.count();
    let before = asked();
    while asked() == before {
        let waiting = timeout(Duration::from_millis(20), &mut call).await;
        assert!(waiting.is_err());
    }
    let waiting = timeout(Duration::from_millis(200), &mut call).await;
    assert!(waiting.is_err());
    // It has asked the store already: nothing but its turn is awaited.
    tokio::time::pause();
    let rejected = call.await;
    assert_eq!(rejected.code(), "rate_limited");
    assert_eq!(rejected.headers[header::RETRY_AFTER], "10");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_takes_no_turn() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let mut slow = Vec::new();
    for name in ["a", "b", "c"] {
        let token = scene.token_of(name, Role::Operator).await;
        let never = stream::pending::<Result<&[u8], std::io::Error>>();
        slow.push(scene.send(create(&token, Body::from_stream(never))));
    }
    let mut slow = Box::pin(join_all(slow));
    let waiting = timeout(Duration::from_millis(200), &mut slow).await;
    assert!(waiting.is_err());
    let token = scene.token(Role::Admin).await;
    let called = scene.get("/api/v1/apps", &token).await;
    assert_eq!(called.status, StatusCode::OK);
}

fn create(token: &str, body: Body) -> Request {
    Request::post("/api/v1/apps/create")
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(body)
        .unwrap()
}

#[tokio::test]
async fn a_body_that_breaks_off_is_malformed() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Operator).await;
    let broken = std::io::Error::other("the connection has ended");
    let pieces = stream::iter([Ok("{\"name\""), Err(broken)]);
    let called = scene.send(create(&token, Body::from_stream(pieces))).await;
    assert_eq!(called.code(), "request_malformed");
}

#[tokio::test]
async fn other_paths_and_methods_are_problems() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let token = scene.token(Role::Admin).await;
    let called = scene.get("/api/v1/nothing", &token).await;
    assert_eq!((called.status.as_u16(), called.code()), (404, "not_found"));
    for (method, path, allow) in [
        ("POST", "/api/v1/apps", "GET, HEAD"),
        ("DELETE", "/api/v1/apps", "GET, HEAD"),
        ("OPTIONS", "/api/v1/apps", "GET, HEAD"),
        ("GET", "/api/v1/apps/create", "POST"),
        ("PUT", "/api/v1/apps/one/update", "POST"),
    ] {
        let called = scene.call(method, path, &token, json!({})).await;
        assert_eq!(
            called.status,
            StatusCode::METHOD_NOT_ALLOWED,
            "{method} {path}"
        );
        assert_eq!(called.headers[header::ALLOW], allow, "{method} {path}");
        let text = format!("This path accepts only {allow}.");
        assert!(called.text.contains(&text), "{called:?}");
        assert!(
            !called
                .headers
                .contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN)
        );
    }
    let head = scene.call("HEAD", "/api/v1/apps", &token, json!({})).await;
    assert_eq!((head.status.as_u16(), &*head.text), (200, ""));
}

//! Tests of all routes, without a network in front: requests as a gateway forwards them, a real store, and a fake
//! provider.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    body::{Body, to_bytes},
    response::IntoResponse,
    routing::{get, post},
};
use http::{HeaderMap, Request, StatusCode, header};
use serde_json::Value;
use signpost_kit::clock::{Clock, ManualClock};
use tower::ServiceExt;

use super::*;
use crate::{
    Account, LoginError, Timestamp,
    http::views::View,
    testing::{self, TestStore},
};

mod abandoned_claims;
mod choice;
mod document;
mod flaky_store;
mod metrics;
mod own_endpoints;
mod own_endpoints_errors;
mod own_tables;
mod polling;
mod redirect;
mod reload;
mod store_faults;
mod users;

/// A version for these tests.
struct Test;

#[derive(serde::Serialize, utoipa::ToSchema)]
struct TestAccount {
    username: String,
    name_of_this_version: String,
}

impl Version for Test {
    const NAME: &'static str = "v1";
    type Settings = ();
    type State = ();

    fn account(account: &Account) -> impl View {
        TestAccount {
            username: account.username.as_str().to_owned(),
            name_of_this_version: account.provider.clone(),
        }
    }
}

/// Nothing of its own.
fn nothing<V: Version<Settings = (), State = ()>>() -> Own<V> {
    Own {
        settings: Arc::new(()),
        state: Arc::new(()),
    }
}

/// The routes of a version without settings and state, as a tower service.
fn router<V: Version<Settings = (), State = ()>>(service: Arc<Service>) -> Router {
    let routes = super::router::<V>(service, nothing(), V::endpoints()).unwrap();
    Router::new().fallback(async move |request| routes.serve(request).await)
}

/// Begins a redirect login of a browser.
const WITH_RETURN_TO: &str = "/login?return_to=https://app.example/";

/// One running service.
struct Setup {
    router: Router,
    service: Arc<Service>,
    clock: ManualClock,
    store: TestStore,
}

impl Setup {
    async fn new() -> Self {
        Self::with("").await
    }

    /// `more` is inserted above the sections of the configuration.
    async fn with(more: &str) -> Self {
        let provider = provider().await;
        let text = format!(
            "prefix = \"Acme\"\n{more}\n[application]\nname = \"Shop\"\nreturn_to = [\"https://app.example\"]\n{}",
            testing::config_text_with_provider(&provider, "")
        );
        let config = testing::parse(&text);
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = TestStore::new().await;
        let clock = ManualClock::default();
        let service = Service::new(config, store.store(), Arc::new(clock.clone())).unwrap();
        Self {
            router: router::<Test>(Arc::clone(&service)),
            service,
            clock,
            store,
        }
    }

    fn later(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// A request as the gateway forwards it in single-application mode.
    async fn call(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        let mut all = vec![("x-gateway-app-id", "0")];
        all.extend(headers);
        self.raw(method, target, &all).await
    }

    /// A browser's unsigned request, with cookies.
    async fn browse(&self, target: &str, cookie: &str) -> Response {
        self.raw(
            "GET",
            target,
            &[("accept", "text/html"), ("cookie", cookie)],
        )
        .await
    }

    /// As [`Self::browse`], for a client that takes data and no pages.
    async fn follow(&self, target: &str, cookie: &str) -> Response {
        self.raw("GET", target, &[("cookie", cookie)]).await
    }

    async fn raw(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// Readiness gives the store a second, in which a busy machine may not respond.
    async fn until_ready(&self) {
        let ready =
            async { while self.raw("GET", "/readyz", &[]).await.status != StatusCode::OK {} };
        let ready = tokio::time::timeout(Duration::from_secs(20), ready).await;
        ready.expect("the service is ready");
    }

    async fn send(&self, request: Request<Body>) -> Response {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 1 << 20).await.unwrap();
        Response {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }
}

struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Response {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{} {}", self.status, self.body))
    }

    fn header(&self, name: header::HeaderName) -> &str {
        self.headers
            .get(&name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The cookie that it sets, as a browser sends it back.
    fn cookie(&self) -> String {
        self.header(header::SET_COOKIE)
            .split(';')
            .next()
            .unwrap()
            .to_owned()
    }

    /// The `state` in its redirect to the provider.
    fn state(&self) -> String {
        assert_eq!(self.status, StatusCode::FOUND, "{}", self.body);
        let url = url::Url::parse(self.header(header::LOCATION)).unwrap();
        assert_eq!(url.path(), "/site/oauth2/authorize");
        url.query_pairs()
            .find(|(name, _)| name == "state")
            .unwrap()
            .1
            .into_owned()
    }

    #[track_caller]
    fn assert_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        if self.header(header::CONTENT_TYPE).starts_with("text/html") {
            assert!(
                self.body.contains(&format!("<code>{code}</code>")),
                "{}",
                self.body
            );
        } else {
            assert_eq!(self.json()["code"], code, "{}", self.body);
        }
    }
}

/// A fake provider: the code is the name of the user, and `fail` makes it fail.
async fn provider() -> String {
    let app = Router::new()
        .route(
            "/site/oauth2/access_token",
            post(async |body: String| {
                let code = url::form_urlencoded::parse(body.as_bytes())
                    .find(|(name, _)| name == "code")
                    .unwrap()
                    .1
                    .into_owned();
                match code.as_str() {
                    "fail" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                    _ => axum::Json(
                        serde_json::json!({ "access_token": code, "token_type": "bearer" }),
                    )
                    .into_response(),
                }
            }),
        )
        .route(
            "/2.0/user",
            get(async |headers: HeaderMap| {
                let user = headers["authorization"]
                    .to_str()
                    .unwrap()
                    .replace("Bearer ", "");
                axum::Json(serde_json::json!({ "uuid": format!("{{{user}}}") }))
            }),
        );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

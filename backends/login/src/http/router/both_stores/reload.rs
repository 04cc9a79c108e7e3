//! Reloads while requests and logins are in flight.

use std::sync::Mutex;

use tokio::sync::Notify;

use super::{
    polling::{begin, check, confirm},
    *,
};

impl Setup {
    /// Reloads: `more` is inserted above the sections, `provider` is the provider's client secret.
    fn reload(&mut self, address: &str, more: &str, provider: &str) {
        let text = format!(
            "prefix = \"Acme\"\n{more}\n[application]\nname = \"Shop\"\n{}",
            testing::config_text_with_provider(address, "").replace("\"secret\"", provider)
        );
        self.service = self.service.reloaded(testing::parse(&text)).unwrap();
        self.router = router::<Test>(Arc::clone(&self.service));
    }
}

/// A provider that records the client secrets it receives, and waits for `go_on` before it responds.
#[derive(Clone, Default)]
struct SlowProvider {
    secrets: Arc<Mutex<Vec<String>>>,
    asked: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl SlowProvider {
    async fn start(&self) -> String {
        let own = self.clone();
        let token = async move |headers: HeaderMap| {
            let basic = headers["authorization"].to_str().unwrap().to_owned();
            own.secrets.lock().unwrap().push(basic);
            own.asked.notify_one();
            own.go_on.notified().await;
            axum::Json(serde_json::json!({ "access_token": "a", "token_type": "bearer" }))
        };
        let user = async || axum::Json(serde_json::json!({ "uuid": "{me}" }));
        let app = Router::new()
            .route("/site/oauth2/access_token", post(token))
            .route("/2.0/user", get(user));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    fn secrets(&self) -> Vec<String> {
        self.secrets.lock().unwrap().clone()
    }
}

fn basic(secret: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    format!("Basic {}", STANDARD.encode(format!("id:{secret}")))
}

#[tokio::test]
async fn a_request_ends_on_the_snapshot_that_it_began_with() {
    let mut setup = Setup::new().await;
    let provider = SlowProvider::default();
    let address = provider.start().await;
    setup.reload(&address, "login.credential_ttl_seconds = 100", "\"first\"");
    let begun = setup.call("GET", "/login", &[]).await;
    let callback = format!("/login?state={}&code=me", begun.state());
    let old = setup.router.clone();
    let request = Request::get(&callback)
        .header("cookie", begun.cookie())
        .body(Body::empty())
        .unwrap();
    let in_flight = tokio::spawn(old.oneshot(request));
    provider.asked.notified().await;
    setup.reload(&address, "login.credential_ttl_seconds = 200", "\"second\"");
    provider.go_on.notify_one();
    let response = in_flight.await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let result: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(result["expires_in"], 100);

    let begun = setup.call("GET", "/login", &[]).await;
    let callback = format!("/login?state={}&code=me", begun.state());
    provider.go_on.notify_one();
    let done = setup.follow(&callback, &begun.cookie()).await;
    assert_eq!(done.json()["expires_in"], 200, "{}", done.body);
    assert_eq!(provider.secrets(), [basic("first"), basic("second")]);
}

#[tokio::test]
async fn logins_in_flight_survive_and_are_finished_with_the_new_secret() {
    let mut setup = Setup::new().await;
    let provider = SlowProvider::default();
    let address = provider.start().await;
    setup.reload(&address, "", "\"first\"");
    let polling = begin(&setup).await;
    let cookie = confirm(&setup, &polling).await;
    let redirect = setup.call("GET", "/login", &[]).await;
    setup.reload(&address, "", "\"second\"");
    for (state, cookie) in [
        (polling.state.clone(), cookie),
        (redirect.state(), redirect.cookie()),
    ] {
        provider.go_on.notify_one();
        let callback = format!("/login?state={state}&code=me");
        let done = setup.follow(&callback, &cookie).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.body);
    }
    assert_eq!(check(&setup, &polling.token).await["status"], "complete");
    assert_eq!(provider.secrets(), [basic("second"), basic("second")]);
}

#[tokio::test]
async fn a_waiting_check_is_woken_by_a_login_that_a_later_snapshot_finishes() {
    let mut setup = Setup::new().await;
    let address = provider().await;
    setup.reload(&address, "", "\"first\"");
    let begun = begin(&setup).await;
    let cookie = confirm(&setup, &begun).await;
    let request = Request::post(format!("/check?token={}&wait=30", begun.token))
        .header("x-gateway-app-id", "0")
        .body(Body::empty())
        .unwrap();
    let waiting = tokio::spawn(setup.router.clone().oneshot(request));
    setup.reload(&address, "", "\"second\"");
    let callback = format!("/login?state={}&code=me", begun.state);
    setup.browse(&callback, &cookie).await;
    let woken = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    let body = woken.unwrap().unwrap().unwrap().into_body();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let result: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(result["status"], "complete");
}

#[tokio::test]
async fn limits_change_and_their_counts_stay() {
    let mut setup = Setup::new().await;
    let limits = |burst| format!("limits.starts_per_second = 1\nlimits.starts_burst = {burst}");
    let provider = "http://127.0.0.1:1";
    setup.reload(provider, &limits(2), "\"s\"");
    for _ in 0..2 {
        begin(&setup).await;
    }
    let refused = setup.call("POST", "/login", &[]).await;
    refused.assert_problem(429, "rate_limited");
    setup.reload(provider, &limits(3), "\"s\"");
    begin(&setup).await;
    let refused = setup.call("POST", "/login", &[]).await;
    refused.assert_problem(429, "rate_limited");
}

#[tokio::test]
async fn header_names_and_the_gateways_secret_change() {
    const SECRET: &str = "4283fefc63f0cd0e873a0000c6d07ef7";
    let mut setup = Setup::new().await;
    let provider = provider().await;
    setup.reload(&provider, "", "\"s\"");
    let begun = setup.call("GET", "/login", &[]).await;
    let callback = format!("/login?state={}&code=me", begun.state());
    let done = setup.follow(&callback, &begun.cookie()).await.json();
    let credential = done["authorization"].as_str().unwrap().to_owned();
    let more = format!("gateway_secret = \"{SECRET}\"\nheaders.authorization = \"Other-Auth\"");
    setup.reload(&provider, &more, "\"s\"");
    let without = setup.call("GET", "/user", &[]).await;
    without.assert_problem(403, "gateway_required");
    let secret = ("x-gateway-secret", SECRET);
    let named = |name| [secret, (name, &*credential)];
    let old = setup
        .call("GET", "/user", &named("acme-x-authorization"))
        .await;
    old.assert_problem(401, "authorization_missing");
    let new = setup.call("GET", "/user", &named("other-auth")).await;
    assert_eq!(new.json()["username"], "{me}");
}

#[tokio::test]
async fn what_a_reload_replaces_is_freed() {
    let mut setup = Setup::new().await;
    let mut old = Vec::new();
    for number in 1..=50 {
        old.push(Arc::downgrade(&setup.service));
        let lifetime = format!("login.credential_ttl_seconds = {number}");
        setup.reload("http://127.0.0.1:1", &lifetime, "\"secret\"");
        setup.call("GET", "/user", &[]).await;
    }
    let left = old.iter().filter(|one| one.strong_count() > 0).count();
    assert_eq!(left, 0, "of the old snapshots");
}

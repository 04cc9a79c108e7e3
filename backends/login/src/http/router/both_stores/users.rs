//! Requests of logged-in users, and properties of all responses.

use super::*;
use crate::testing::TestService;

pub(super) async fn log_in(setup: &Setup) -> String {
    let begun = setup.call("GET", "/login", &[]).await;
    let done = setup
        .follow(
            &format!("/login?state={}&code=me", begun.state()),
            &begun.cookie(),
        )
        .await;
    done.json()["authorization"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_credential_is_valid_until_logout() {
    let setup = Setup::new().await;
    let authorization = log_in(&setup).await;
    let bearer = format!("Bearer {authorization}");
    for value in [&authorization, &bearer] {
        let user = setup
            .call("GET", "/user", &[("acme-x-authorization", value)])
            .await;
        assert_eq!(user.json()["username"], "{me}");
    }
    let header = [("acme-x-authorization", authorization.as_str())];
    assert_eq!(
        setup.call("POST", "/user/logout", &header).await.json(),
        serde_json::json!({})
    );
    setup
        .call("GET", "/user", &header)
        .await
        .assert_problem(401, "authorization_invalid");
    setup
        .call("POST", "/user/logout", &header)
        .await
        .assert_problem(401, "authorization_invalid");
}

#[tokio::test]
async fn a_credential_expires() {
    let service = TestService::with::<Test>("login.credential_ttl_seconds = 60").await;
    let me = service.logged_in("{me}");
    assert_eq!(me.get("/user").await.status, 200);
    service.advance(Duration::from_secs(59));
    assert_eq!(me.get("/user").await.status, 200);
    service.advance(Duration::from_secs(1));
    assert_eq!(me.get("/user").await.problem(), "authorization_invalid");
}

#[tokio::test]
async fn requests_without_a_valid_credential_are_rejected() {
    let setup = Setup::new().await;
    for (method, path) in [
        ("GET", "/user"),
        ("POST", "/user/renew"),
        ("POST", "/user/logout"),
        ("POST", "/event/send"),
    ] {
        setup
            .call(method, path, &[])
            .await
            .assert_problem(401, "authorization_missing");
        let bad = [("acme-x-authorization", "nonsense")];
        setup
            .call(method, path, &bad)
            .await
            .assert_problem(401, "authorization_malformed");
        let twice = [bad[0], bad[0]];
        setup
            .call(method, path, &twice)
            .await
            .assert_problem(400, "header_duplicated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_revokes_a_credential_through_the_change_feed() {
    let setup = Setup::new().await;
    let authorization = log_in(&setup).await;
    let header = [("acme-x-authorization", authorization.as_str())];
    assert_eq!(
        setup.call("GET", "/user", &header).await.status,
        StatusCode::OK
    );
    let watched = Arc::clone(&setup.service);
    let _watch = setup
        .store
        .store()
        .watch(Duration::default, move |change| {
            watched.state.on_change(&change);
        })
        .unwrap();
    let other = setup.store.of_another_process().await.credentials;
    let application = signpost_protocol::app::AppId::SINGLE;
    let credential = authorization.parse().unwrap();
    let now = setup.clock.now();
    let revoked = other.revoke(&credential, application, now).await;
    assert!(revoked.unwrap().is_some());
    let deadline = Instant::now() + Duration::from_secs(30);
    while setup.call("GET", "/user", &header).await.status == StatusCode::OK {
        assert!(Instant::now() < deadline, "the credential is still valid");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_event_is_stored_with_its_account() {
    let service = TestService::new::<Test>().await;
    let me = service.logged_in("{me}");
    let data = async |data: &str| {
        let form = [("event", "level.up_2"), ("data", data)];
        me.post("/event/send", form).await
    };
    let body = data("{\"x\":1}").await.json();
    assert_eq!(body["event"], "level.up_2");
    assert_eq!(body["received_at"], 1_700_000_000_000_i64);
    assert!(body["id"].is_i64(), "{body}");
    let none = me.post("/event/send", []).await;
    assert_eq!(none.problem(), "param_missing");
    let odd = me.post("/event/send", [("event", "A")]).await;
    assert_eq!(odd.problem(), "param_invalid");
    assert_eq!(data(&"x".repeat(4096)).await.status, 200);
    for bad in [&*"x".repeat(4097), "x\0y"] {
        assert_eq!(data(bad).await.problem(), "param_invalid");
    }
}

#[tokio::test]
async fn only_the_gateway_may_call() {
    let setup = Setup::with("gateway_secret = \"4283fefc63f0cd0e873a0000c6d07ef7\"").await;
    let (app, secret) = (
        ("x-gateway-app-id", "0"),
        ("x-gateway-secret", "4283fefc63f0cd0e873a0000c6d07ef7"),
    );
    for headers in [
        vec![],
        vec![app],
        vec![app, ("x-gateway-secret", "other")],
        vec![secret],
    ] {
        setup
            .raw("POST", "/login", &headers)
            .await
            .assert_problem(403, "gateway_required");
    }
    setup
        .raw("GET", "/nowhere", &[app])
        .await
        .assert_problem(403, "gateway_required");
    assert_eq!(
        setup.raw("POST", "/login", &[app, secret]).await.status,
        StatusCode::OK
    );
    let healthz = setup.raw("GET", "/healthz", &[]).await;
    assert_eq!(healthz.status, StatusCode::OK);
    setup.until_ready().await;
}

#[tokio::test]
async fn requests_without_an_application_from_the_gateway_are_rejected() {
    let setup = Setup::new().await;
    for headers in [
        vec![],
        vec![("x-gateway-app-id", "x")],
        vec![("x-gateway-app-id", "0"), ("x-gateway-app-id", "1")],
    ] {
        for (method, path) in [
            ("GET", "/login"),
            ("POST", "/login"),
            ("GET", "/user"),
            ("POST", "/check?token=t"),
        ] {
            setup
                .raw(method, path, &headers)
                .await
                .assert_problem(403, "gateway_required");
        }
    }
}

#[tokio::test]
async fn a_wrong_path_or_method_is_reported_in_the_clients_language() {
    let setup = Setup::new().await;
    let korean = [("acme-x-language", "KO"), ("x-request-id", "r-1")];
    let missing = setup.call("GET", "/nowhere", &korean).await;
    missing.assert_problem(404, "not_found");
    assert_eq!(
        missing.header(header::CONTENT_TYPE),
        "application/problem+json"
    );
    assert_eq!(missing.header(header::CONTENT_LANGUAGE), "ko");
    assert_eq!(missing.json()["request_id"], "r-1");
    for (method, path, allow) in [
        ("POST", "/user", "GET"),
        ("HEAD", "/user", "GET"),
        ("GET", "/user/login", "POST"),
        ("HEAD", "/login", "GET, POST"),
        ("DELETE", "/check", "GET, POST"),
        ("PUT", "/healthz", "GET, HEAD"),
    ] {
        let response = setup.call(method, path, &[]).await;
        assert_eq!(
            response.status,
            StatusCode::METHOD_NOT_ALLOWED,
            "{method} {path}"
        );
        assert_eq!(response.header(header::ALLOW), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn forms_are_read_like_queries_and_other_bodies_are_rejected() {
    let setup = Setup::new().await;
    let post = |media_type: &'static str, body: String| {
        let request = Request::post("/check")
            .header("x-gateway-app-id", "0")
            .header("content-type", media_type);
        setup
            .router
            .clone()
            .oneshot(request.body(Body::from(body)).unwrap())
    };
    let form = "application/x-www-form-urlencoded";
    for (media_type, body, status) in [
        (form, "token=x".to_owned(), 404),
        (form, "token=%".to_owned(), 400),
        ("application/json", "{}".to_owned(), 415),
        (form, "x".repeat(65 * 1024), 413),
    ] {
        assert_eq!(
            post(media_type, body).await.unwrap().status().as_u16(),
            status
        );
    }
}

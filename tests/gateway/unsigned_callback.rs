//! What passes unsigned as a callback: path and `state` decide, and whatever a provider adds is ignored. CONTRACT 3.

use end_to_end::{
    raw_connection::{RawResponse, request},
    recording_backend::RecordingBackend,
    stack::Stack,
    waiting,
};

async fn send(stack: &Stack, bytes: &[u8]) -> RawResponse {
    let mut connection = stack.raw().await;
    connection.send(bytes).await;
    connection.response().await.unwrap()
}

#[tokio::test]
async fn a_providers_callback_passes_unsigned() {
    let (stack, backend) = Stack::recording().await;
    let many = format!("/login?code=x&state=v1.abc&{}", "a=b&".repeat(1500));
    let targets = [
        "/login?state=v1.abc",
        "/login?code=x&state=v1.abc",
        "/login?state=v1.abc&code=x",
        "/login?state=v1.abc&error=access_denied&error_description=no&error_uri=u",
        "/login?state=v1.abc&confirm=x",
        "/login?state=v1.abc&code=x&iss=i&scope=s&session_state=t&authuser=0&hd=h&prompt=p",
        "/login?state=v1.abc&code=",
        "/login?state=",
        "/login?st%61te=v1.abc&code=x",
        "/login?code=x&state=v1.abc&userState=Authenticated&locale=en",
        "/login?code=x&state=v1.abc&cid=abc",
        "/login?code=x&state=v1.abc&scope=a&scope=b",
        "/login?error=access_denied&state=v1.abc&userState=Authenticated&locale=en&cid=a&scope=b&scope=c",
        "/login?code=x&state=v1.abc&confirm=y&app=z&return_to=https://x&token",
        "/login?code=x&state=v1.abc&time=1&sign=y&%73ign=z",
        "/login?code=x&state=v1.abc&b=%ff&%fe=%e4%f6&error_description=Acc%E8s",
        "/login?code=x&state=v1.abc&error=",
        "/login?code=x&state=v1.abc&note=100%&%=%zz",
        "/login?state=v1.abc&fbclid=x&utm_source=y&utm_source=z",
        "/login?state=v1.abc&confirm=x&provider=y&gclid=z",
        &many,
    ];
    for target in targets {
        let response = send(&stack, &request("GET", target, &[], b"")).await;
        assert_eq!(response.status, 200, "{target}: {:?}", response.code());
    }
    let arrived = backend.requests();
    assert_eq!(arrived.len(), targets.len());
    for (request, target) in arrived.iter().zip(targets) {
        assert_eq!(request.target, target);
        assert_eq!(
            request.value("x-gateway-app"),
            None,
            "it belongs to no application"
        );
        assert_eq!(
            request.value("x-gateway-app-id"),
            None,
            "it belongs to no application"
        );
    }
}

#[tokio::test]
async fn elsewhere_a_percent_sign_that_begins_no_escape_is_refused() {
    let (stack, backend) = Stack::recording().await;
    for (method, path) in [("GET", "/other"), ("POST", "/login"), ("GET", "/login/")] {
        let target = format!("{path}?code=x&state=v1.abc&note=100%");
        let response = send(&stack, &request(method, &target, &[], b"")).await;
        assert_eq!(
            (response.status, response.code()),
            (400, Some("params_malformed".to_owned())),
            "{method} {target}"
        );
    }
    assert!(backend.requests().is_empty());
}

#[tokio::test]
async fn the_callback_goes_to_the_version_that_issued_the_state() {
    let (stack, backend) = Stack::recording().await;
    for (state, version) in [
        ("v1.abc", "v1"),
        ("v2.abc", "v2"),
        ("v9.abc", "v1"),
        ("abc", "v1"),
    ] {
        let response = send(
            &stack,
            &request("GET", &format!("/login?state={state}"), &[], b""),
        )
        .await;
        assert_eq!(response.status, 200, "{state}");
        assert_eq!(response.header("acme-x-version"), Some(version), "{state}");
        let arrived = backend.requests().pop().unwrap();
        assert_eq!(arrived.value("x-gateway-version"), Some(version), "{state}");
    }
    let response = send(&stack, &request("GET", "/login?state=v2.abc", &[], b"")).await;
    assert_eq!(response.header("acme-x-version-source"), Some("state"));
}

#[tokio::test]
async fn any_other_unsigned_request_is_rejected() {
    let (stack, backend) = Stack::recording().await;
    let form = "Content-Type: application/x-www-form-urlencoded";
    let refused = [
        (
            "POST",
            request(
                "POST",
                "/login?code=x&state=v1.a",
                &["Content-Length: 0"],
                b"",
            ),
        ),
        (
            "form",
            request(
                "POST",
                "/login",
                &[form, "Content-Length: 17"],
                b"code=x&state=v1.a",
            ),
        ),
        (
            "capitals",
            request("GET", "/LOGIN?code=x&state=v1.a", &[], b""),
        ),
        (
            "two slashes",
            request("GET", "//login?code=x&state=v1.a", &[], b""),
        ),
        (
            "trailing slash",
            request("GET", "/login/?code=x&state=v1.a", &[], b""),
        ),
        (
            "path parameter",
            request("GET", "/login;x?code=x&state=v1.a", &[], b""),
        ),
        (
            "dot segment",
            request("GET", "/./login?code=x&state=v1.a", &[], b""),
        ),
        (
            "parent segment",
            request("GET", "/x/../login?code=x&state=v1.a", &[], b""),
        ),
        (
            "below",
            request("GET", "/login/x?code=x&state=v1.a", &[], b""),
        ),
        (
            "body",
            request(
                "GET",
                "/login?code=x&state=v1.a",
                &[form, "Content-Length: 1"],
                b"x",
            ),
        ),
        (
            "two providers",
            request("GET", "/login?provider=x&state=v1.a&provider=x", &[], b""),
        ),
        (
            "two states",
            request("GET", "/login?state=v1.a&state=v1.b&code=x", &[], b""),
        ),
        (
            "two states, one escaped",
            request("GET", "/login?state=v1.a&st%61te=v1.b", &[], b""),
        ),
        (
            "code and error",
            request("GET", "/login?state=v1.a&code=x&error=y", &[], b""),
        ),
        (
            "two codes",
            request("GET", "/login?state=v1.a&code=x&code=y", &[], b""),
        ),
        ("sign", request("GET", "/login?state=v1.a&sign=x", &[], b"")),
        ("time", request("GET", "/login?state=v1.a&time=1", &[], b"")),
        (
            "escaped sign",
            request("GET", "/login?state=v1.a&%73ign=x", &[], b""),
        ),
        ("no state", request("GET", "/login?code=x", &[], b"")),
        ("error alone", request("GET", "/login?error=x", &[], b"")),
        (
            "another case",
            request("GET", "/login?State=v1.a&code=x", &[], b""),
        ),
        (
            "brackets",
            request("GET", "/login?state[]=v1.a&code=x", &[], b""),
        ),
        (
            "another path",
            request("GET", "/check?code=x&state=v1.a", &[], b""),
        ),
        ("user", request("GET", "/user/login?state=v1.a", &[], b"")),
        (
            "chunked",
            request(
                "GET",
                "/login?state=v1.a",
                &["Transfer-Encoding: chunked"],
                b"1\r\nx\r\n0\r\n\r\n",
            ),
        ),
    ];
    let mut wrong = Vec::new();
    for (name, bytes) in refused {
        let response = send(&stack, &bytes).await;
        if !(400..500).contains(&response.status) {
            wrong.push(format!("{name}: {} {:?}", response.status, response.code()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_callback_needs_no_application_in_multi_application_mode() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend).multi().start().await;
    let passed = send(
        &stack,
        &request("GET", "/login?state=v1.abc&code=x", &[], b""),
    )
    .await;
    assert_eq!(passed.status, 200);
    let header = ["Acme-X-App: abcdefghijklmnopqrstuvwx"];
    let named = send(
        &stack,
        &request("GET", "/login?state=v1.abc&code=x", &header, b""),
    )
    .await;
    assert_eq!(named.status, 200, "{:?}", named.code());
    for request in backend.requests() {
        assert_eq!(request.value("x-gateway-app"), None);
        assert_eq!(request.value("x-gateway-app-id"), None);
    }
    let signed = "/login?state=v1.abc&time=1&sign=x";
    let other = send(&stack, &request("GET", signed, &[], b"")).await;
    assert_eq!(other.code().as_deref(), Some("app_missing"));
}

#[tokio::test]
async fn what_has_a_meaning_in_a_callback_may_appear_once() {
    let (stack, backend) = Stack::recording().await;
    for (query, name) in [
        ("state=v1.a&state=v1.a&code=x", "state"),
        ("state=v1.a&st%61te=v1.b", "state"),
        ("state=v1.a&code=x&code=y", "code"),
        ("state=v1.a&error=x&error=y&sign=z", "error"),
        ("state=v1.a&code=x&error=y", "code|error"),
        ("state=v1.a&code=x&iss=y&iss=y", "iss"),
        ("state=v1.a&provider=x&provider=x", "provider"),
        ("state=v1.a&confirm=x&confirm=y", "confirm"),
    ] {
        let target = format!("/login?{query}");
        let response = send(&stack, &request("GET", &target, &[], b"")).await;
        assert_eq!(response.status, 400, "{query}");
        assert_eq!(
            response.code().as_deref(),
            Some("param_duplicated"),
            "{query}"
        );
        let body = String::from_utf8(response.body).unwrap();
        assert!(body.contains(&format!("\\\"{name}\\\"")), "{body}");
    }
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_callback_with_a_signature_counts_as_unsigned() {
    let limited = "[limits.unsigned]\nper_second = 1\nburst = 2";
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend);
    let stack = stack.gateway(limited).start().await;
    let callback = request("GET", "/login?state=v1.a&code=x&time=1&sign=y", &[], b"");
    waiting::until("the limit of unsigned requests", || async {
        let response = send(&stack, &callback).await;
        (response.code().as_deref() == Some("rate_limited")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_prefetch_reaches_no_login_and_the_navigation_does() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend);
    let stack = stack.gateway("[sign]\nreplay = \"reject\"").start().await;
    let begin = stack
        .client()
        .login_url(&[("return_to", "https://app.example/")]);
    let begin = begin.strip_prefix(&stack.url("")).unwrap().to_owned();
    let targets = [
        "/login?state=v1.abc&code=x".to_owned(),
        "/login?state=v1.abc&error=access_denied".to_owned(),
        "/login?state=v1.abc&confirm=x".to_owned(),
        "/login?state=v1.abc".to_owned(),
        begin,
    ];
    for target in &targets {
        for header in [
            "Sec-Purpose: prefetch",
            "Sec-Purpose: prefetch;prerender",
            "Sec-Purpose: prefetch;anonymous-client-ip",
            "Purpose: prefetch",
            "X-Moz: prefetch",
            "X-Purpose: preview",
        ] {
            let refused = send(&stack, &request("GET", target, &[header], b"")).await;
            assert_eq!(refused.status, 403, "{target} {header}");
            assert_eq!(
                refused.code().as_deref(),
                Some("prefetch_refused"),
                "{target}"
            );
            assert_eq!(refused.header("cache-control"), Some("no-store"));
        }
    }
    assert_eq!(backend.connections(), 0);
    // Also the signature of the last one is not used up.
    for target in &targets {
        let served = send(&stack, &request("GET", target, &[], b"")).await;
        assert_eq!(served.status, 200, "{target}: {:?}", served.code());
    }
    let other = request("GET", "/other", &["Sec-Purpose: prefetch"], b"");
    assert_eq!(send(&stack, &other).await.status, 200);
}

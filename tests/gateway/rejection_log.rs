//! The access line of a rejected request has the reason and the client, each once and with limited length.

use end_to_end::{
    http2_client::Http2Client,
    program::Program,
    raw_connection::request,
    recording_backend::{Behaviour, RecordingBackend},
    signed_client::http_client,
    signer::{Layout, Profile},
    stack::{APP_KEY, Stack, StackBuilder},
    waiting::until,
};

/// Two different secrets.
const GATEWAY_SECRET: &str =
    "gateway_secret = \"7c1d7f0f0d5a6cd5f5b0f7c0a9b1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7b8c9\"";
const OTHER_SECRET: &str =
    "gateway_secret = \"0c1d7f0f0d5a6cd5f5b0f7c0a9b1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7b8c9\"";

/// Waits for the gateway's access line with this path.
async fn access_line(stack: &Stack, path: &str) -> String {
    let path = format!("http.path={path}");
    until(&format!("an access line with {path}"), || async {
        let log = stack.log(Program::Gateway);
        let mut lines = log.lines();
        let found = lines.find(|line| line.contains(&path) && line.contains("answered "));
        found.map(str::to_owned)
    })
    .await
}

#[tokio::test]
async fn a_hint_is_in_the_access_line() {
    let (stack, _backend) = Stack::recording().await;
    let client = stack.client();
    let seconds = client.get("/seconds").param("a", "1").time("1732104000");
    seconds.send().await.problem(400, "time_invalid");
    let logged = access_line(&stack, "/seconds").await;
    assert!(logged.contains("problem.code=time_invalid"), "{logged}");
    assert!(logged.contains("problem.hint=hint_seconds"), "{logged}");
    let profile = Profile {
        layout: Layout::PairsKey,
        ..Profile::default()
    };
    let labelled = client.with_profile(profile);
    let labelled = labelled.get("/labelled").param("a", "1");
    labelled.send().await.problem(403, "sign_mismatch");
    let logged = access_line(&stack, "/labelled").await;
    assert!(
        logged.contains("problem.hint=hint_key_labelled"),
        "{logged}"
    );
    assert!(!logged.contains(APP_KEY), "{logged}");
}

#[tokio::test]
async fn a_backends_error_code_is_in_the_gateways_access_line() {
    let stack = Stack::start().await;
    let refused = stack.client().get("/user").send().await;
    refused.problem(401, "authorization_missing");
    assert_eq!(refused.header("x-gateway-problem"), None);
    let logged = access_line(&stack, "/user").await;
    assert!(
        logged.contains("problem.code=authorization_missing"),
        "{logged}"
    );
    assert!(logged.contains("http.status_code=401"), "{logged}");
}

#[tokio::test]
async fn a_backends_problem_header_is_logged_only_if_it_is_a_code() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend).start().await;
    for (path, code, is_logged) in [
        ("/its_own", "no_such_shop", true),
        ("/forged", "a b=c", false),
        ("/long", &*"a".repeat(65), false),
    ] {
        let head = format!("HTTP/1.1 404 Not Found\r\nX-Gateway-Problem: {code}\r\n");
        backend.behave(Behaviour {
            head,
            ..Behaviour::default()
        });
        let response = stack.client().get(path).send().await;
        assert_eq!(response.header("x-gateway-problem"), None);
        let logged = access_line(&stack, path).await;
        let expected = format!("problem.code={code}");
        assert_eq!(logged.contains(&expected), is_logged, "{logged}");
        assert_eq!(logged.contains("problem.code"), is_logged, "{logged}");
    }
}

#[tokio::test]
async fn an_unknown_ident_is_logged_but_truncated_and_a_key_is_masked() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend).multi().start().await;
    let long = format!("{}é", "x".repeat(200));
    for (path, sent, logged_as) in [
        (
            "/unknown",
            "AAAABBBBCCCCDDDDEEEEFFFF",
            "app.ident=AAAABBBBCCCCDDDDEEEEFFFF ",
        ),
        ("/quoted", "a\"b", "app.ident=a\\\"b "),
        ("/long", &long, &format!("app.ident={}… ", "x".repeat(64))),
        ("/key", APP_KEY, &format!("app.ident={}… ", &APP_KEY[..6])),
    ] {
        let header = format!("Acme-X-App: {sent}");
        let mut connection = stack.raw().await;
        connection
            .send(&request("GET", path, &[&header], b""))
            .await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.code().as_deref(), Some("app_not_found"));
        let logged = access_line(&stack, path).await;
        assert!(logged.contains(logged_as), "{logged_as}: {logged}");
        assert!(logged.contains("problem.code=app_not_found"), "{logged}");
    }
    assert!(!stack.log(Program::Gateway).contains(APP_KEY));
}

#[tokio::test]
async fn a_long_path_and_a_long_method_are_truncated() {
    let stack = Stack::start().await;
    let long = "x".repeat(20_000);
    let mut connection = stack.raw().await;
    let found = request("GET", &format!("/here-{long}"), &[], b"");
    connection.send(&found).await;
    assert_eq!(connection.response().await.unwrap().status, 404);
    let other = request(&"M".repeat(10_000), &format!("/there-{long}"), &[], b"");
    connection.send(&other).await;
    assert_eq!(connection.response().await.unwrap().status, 405);
    let cut = format!("/here-{}…", "x".repeat(512 - 6));
    let at_gateway = access_line(&stack, &cut).await;
    let at_backend = stack.log_with(Program::V1, &cut).await;
    let at_backend = at_backend.lines().find(|line| line.contains(&cut)).unwrap();
    let method = access_line(&stack, "/there-").await;
    assert!(
        method.contains(&format!("http.method={}… ", "M".repeat(32))),
        "{method}"
    );
    // In the message and in a field.
    for logged in [&at_gateway, at_backend, &method] {
        assert!(logged.len() < 2000, "{} bytes: {logged}", logged.len());
        assert_eq!(logged.matches("here-").count(), 2, "{logged}");
    }
}

/// A gateway that trusts `X-Forwarded-For` from the tests.
fn behind_a_proxy(toml: &str) -> StackBuilder {
    Stack::builder().gateway(&format!("trusted_proxies = [\"127.0.0.1\"]\n{toml}"))
}

#[tokio::test]
async fn an_early_rejection_is_logged_with_the_clients_address() {
    let backend = RecordingBackend::start().await;
    let stack = behind_a_proxy("[timeouts]\nhead_seconds = 5\nbody_seconds = 5\n");
    let stack = stack.in_front_of(&backend).start().await;
    let forwarded = "X-Forwarded-For: 203.0.113.9, 198.51.100.7";
    let form = "Content-Type: application/x-www-form-urlencoded";
    let many = format!("X-Many: {}", "x".repeat(33_000));
    let early: [(&str, u16, Vec<u8>); 7] = [
        (
            "/method",
            405,
            request("BREW", "/method", &[forwarded], b""),
        ),
        (
            "/target%zz",
            400,
            request("GET", "/target%zz", &[forwarded], b""),
        ),
        (
            "/framing",
            400,
            request(
                "POST",
                "/framing",
                &[forwarded, "Content-Length: 1, 1"],
                b"",
            ),
        ),
        (
            "/twice",
            400,
            request(
                "GET",
                "/twice",
                &[forwarded, "Acme-X-App: a", "Acme-X-App: a"],
                b"",
            ),
        ),
        (
            "/large",
            431,
            request("GET", "/large", &[forwarded, &many], b""),
        ),
        (
            "/head",
            408,
            request("GET", "/head", &[forwarded, "X-Unfin"], b""),
        ),
        (
            "/body",
            408,
            request(
                "POST",
                "/body",
                &[forwarded, form, "Content-Length: 9"],
                b"a=1",
            ),
        ),
    ];
    for (path, status, mut bytes) in early {
        if path == "/head" {
            // The last line is incomplete, and might be another X-Forwarded-For.
            bytes.truncate(bytes.len() - 4);
        }
        let mut connection = stack.raw().await;
        connection.send(&bytes).await;
        assert_eq!(
            connection.response().await.unwrap().status,
            status,
            "{path}"
        );
        let logged = access_line(&stack, path).await;
        assert!(logged.contains("client.addr=198.51.100.7 "), "{logged}");
    }
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_backend_with_another_secret_is_reported_to_the_operator() {
    let stack = Stack::builder()
        .gateway(GATEWAY_SECRET)
        .backends(OTHER_SECRET)
        .start()
        .await;
    let readyz = format!("http://{}/readyz", stack.addresses().management);
    let ready = || async {
        let response = http_client().get(&readyz).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(ready().await, (200, "ready\n".to_owned()));
    let client = stack.client();
    for _ in 0..3 {
        let refused = client.post("/login").language("ja").signed().send().await;
        refused.problem(502, "backend_unreachable");
        assert_eq!(refused.header("content-language"), Some("ja"));
        assert_eq!(refused.header("x-gateway-refused"), None);
    }
    let v1 = stack.addresses().v1.to_string();
    // The other version may be configured correctly: it has not rejected the secret yet.
    let (status, body) = ready().await;
    assert_eq!(status, 200, "{body}");
    assert!(body.starts_with("ready, but "), "{body}");
    let other = client.post("/login").version("v2").signed().send().await;
    other.problem(502, "backend_unreachable");
    let (status, body) = ready().await;
    assert_eq!(status, 503, "{body}");
    assert!(
        body.contains("gateway_secret is rejected by v1 at one address, v2 at one address"),
        "{body}"
    );
    assert!(!body.contains(&v1), "anyone may read it: {body}");
    let log = until("the access lines of all four", || async {
        let log = stack.log(Program::Gateway);
        let answered = log.matches("answered POST /login with 502").count();
        (answered == 4).then_some(log)
    })
    .await;
    let errors: Vec<_> = log.lines().filter(|line| line.contains("ERROR")).collect();
    assert_eq!(errors.len(), 2, "{log}");
    assert!(
        errors[0].contains("gateway_secret") && errors[0].contains(&v1),
        "{log}"
    );
}

/// A limit of each kind but the replay memory, and a listener for both protocols.
const LIMITS: &str = "[[listen]]\naddress = \"$LISTEN\"\nprotocols = [\"http/1.1\", \"h2c\"]\n\
    [limits.unsigned]\nper_second = 1\nburst = 1\n\
    [rate_limits.address]\nper_second = 1\nburst = 40\n\
    [[rate_limits.paths]]\npath = \"/rare\"\nby = \"address\"\nper_second = 1\nburst = 1\n";

#[tokio::test]
async fn a_429_names_its_limit_over_both_protocols() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(LIMITS)
        .start()
        .await;
    let client = stack.client();
    let http2 = Http2Client::open(stack.addresses().gateway).await;
    for (path, limit) in [("/login", "unsigned"), ("/rare", "path"), ("/x", "address")] {
        let is_signed = path != "/login";
        let call = || {
            let call = client.get(path);
            if is_signed {
                call.param("a", "1")
            } else {
                call
            }
        };
        let mut rejected = 0;
        for _ in 0..60 {
            let statuses = [
                call().send().await.status.as_u16(),
                http2.send(&call()).await.unwrap().status,
            ];
            rejected += usize::from(statuses == [429, 429]);
            if rejected == 2 {
                break;
            }
        }
        assert_eq!(rejected, 2, "{path}");
        for protocol in ["HTTP/1.1", "HTTP/2.0"] {
            until("an access line with the limit", || async {
                let log = stack.log(Program::Gateway);
                let is_expected = |line: &str| {
                    line.contains(&format!("answered GET {path} with 429"))
                        && line.contains(&format!("http.protocol=\"{protocol}\""))
                        && line.contains(&format!("problem.limit={limit} "))
                };
                log.lines().any(is_expected).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test]
async fn an_access_line_has_what_the_client_sent_and_the_backends_time() {
    let (stack, _backend) = Stack::recording().await;
    let long = "y".repeat(5_000);
    let agent = format!("User-Agent: app/1.0 \"x\" http.path=/forged \u{202e}{long}");
    let mut connection = stack.raw().await;
    let fields = [&*agent, "Acme-X-Version: v1\u{85}"];
    connection
        .send(&request("BREW", "/columns", &fields, b""))
        .await;
    assert_eq!(connection.response().await.unwrap().status, 405);
    let fields = ["User-Agent: app/1.0", "Acme-X-Version: v1"];
    connection
        .send(&request("GET", "/served", &fields, b""))
        .await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    let unknown = access_line(&stack, "/columns").await;
    let expected = [
        "version.requested=\"v1\\\\xc2\\\\x85\" ",
        "http.user_agent=\"app/1.0 \\\"x\\\" http.path=/forged \\u{202e}yyy",
        "http.protocol=\"HTTP/1.1\"",
    ];
    for expected in expected {
        assert!(unknown.contains(expected), "{expected}: {unknown}");
    }
    assert!(
        unknown.len() < 1_000 && unknown.contains("yyy…\""),
        "{unknown}"
    );
    for absent in ["backend.duration_ms", "tls.version"] {
        assert!(!unknown.contains(absent), "{absent}: {unknown}");
    }
    let served = access_line(&stack, "/served").await;
    for expected in [
        "version=v1 ",
        "version.requested=\"v1\" ",
        "http.user_agent=\"app/1.0\"",
        "http.host=\"gateway.example\"",
    ] {
        assert!(served.contains(expected), "{expected}: {served}");
    }
    let time = |name: &str| {
        let found = served.split(' ').find_map(|field| field.strip_prefix(name));
        found
            .unwrap_or_else(|| panic!("{name}{served}"))
            .parse::<f64>()
            .unwrap()
    };
    let (backend, whole) = (time("backend.duration_ms="), time("duration_ms="));
    assert!(0.0 < backend && backend <= whole, "{served}");
}

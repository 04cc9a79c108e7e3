//! Requests without parameters, where `unsigned = "reject"` asks for a signature. CONTRACT 3.

use end_to_end::{
    program::Program,
    recording_backend::RecordingBackend,
    signed_client::SignedClient,
    stack::{Stack, StackBuilder},
};

async fn behind(backend: &RecordingBackend, toml: &str) -> Stack {
    gateway(backend, toml).start().await
}

fn gateway(backend: &RecordingBackend, toml: &str) -> StackBuilder {
    Stack::builder().in_front_of(backend).gateway(toml)
}

/// Whether a version takes an unsigned POST, and a GET. It must take signed ones.
async fn takes_unsigned(client: &SignedClient, version: &str, path: &str) -> bool {
    for call in [client.get(path), client.post(path)] {
        call.version(version).signed().send().await.ok();
    }
    let get = client.get(path).version(version).send().await;
    let post = client.post(path).version(version).send().await;
    if post.status == 200 {
        get.ok();
        return true;
    }
    for rejected in [get, post] {
        rejected.problem(403, "sign_missing");
        assert_eq!(rejected.header("acme-x-version"), Some(version));
    }
    false
}

#[tokio::test]
async fn a_gateway_that_rejects_unsigned_requests_forwards_none() {
    let backend = RecordingBackend::start().await;
    let toml = "[sign]\nunsigned = 'reject'\n[cors]\norigins = ['https://app.example']\n\
                [versions.v2]\nsunset = '2020-01-01'\nafter_sunset = 'gone'\n";
    let stack = behind(&backend, toml).await;
    let client = stack.client();
    for path in ["/orders/5/cancel", "/user", "/"] {
        let credential = "A".repeat(43);
        let call = client.post(path).authorization(&credential);
        call.send().await.problem(403, "sign_missing");
        let call = client.get(path).authorization(&credential);
        call.send().await.problem(403, "sign_missing");
    }
    // An empty query and an empty form have no parameters, either.
    let mut connection = stack.raw().await;
    connection
        .send(b"GET /user?& HTTP/1.1\r\nHost: h\r\n\r\n")
        .await;
    assert_eq!(connection.response().await.unwrap().status, 403);
    // Its parts are checked as in any signed request.
    let call = client.post("/orders/5/cancel").signed();
    let without_time = client.post("/orders/5/cancel").signed().without_time();
    without_time.send().await.problem(403, "time_missing");
    let other = client.post("/orders/5/cancel").signed().sign_given("0");
    other.send().await.problem(403, "sign_mismatch");
    let late = client.get("/user").signed().later_by_ms(-61_000);
    late.send().await.problem(403, "time_out_of_window");
    // What a version without service says does not depend on a signature.
    let retired = client.get("/user").version("v2").send().await;
    retired.problem(410, "version_retired");
    assert!(backend.requests().is_empty());
    call.send().await.ok();
    client.get("/user").signed().send().await.ok();
    // Callbacks and preflights have their own rules.
    let callback = client.get("/login?state=v1.abc&code=x").unsigned();
    callback.send().await.ok();
    let mut connection = stack.raw().await;
    let preflight =
        b"OPTIONS /orders/5/cancel HTTP/1.1\r\nHost: h\r\nOrigin: https://app.example\r\n\
                      Access-Control-Request-Method: POST\r\n\r\n";
    connection.send(preflight).await;
    assert_eq!(connection.response().await.unwrap().status, 204);
    assert_eq!(backend.requests().len(), 3);
}

/// `b` stands for the backend's address.
const PARTS: &str = "[versions.v1]
canaries = [{ name = 'next', percent = 100, backend = 'b' }]
routes = [
    { path = '/inherits', backend = 'b' },
    { path = '/strict/', backend = 'b', unsigned = 'reject' },
    { path = '/lax/', backend = 'b', unsigned = 'accept' },
]

[versions.v2]
unsigned = 'OTHER'

[[routes]]
path = '/shared/**'
backend = 'b'

[[routes]]
path = '/shared/strict'
backend = 'b'
unsigned = 'reject'

[[routes]]
path = '/shared/lax'
backend = 'b'
unsigned = 'accept'

[sign]
unsigned = 'GATEWAY'
";

#[tokio::test]
async fn a_version_and_a_route_have_rules_of_their_own_which_a_reload_changes() {
    let backend = RecordingBackend::start().await;
    let toml = |gateway: &str, v2: &str| {
        let toml = PARTS.replace("'b'", &format!("'{}'", backend.address()));
        toml.replace("GATEWAY", gateway).replace("OTHER", v2)
    };
    // A route without a rule is as strict as the stricter of its version and the gateway. Version 2 has shared routes only.
    let rows: [(&str, &str, [&[&str]; 2]); 3] = [
        (
            "accept",
            "reject",
            [
                &["/own", "/inherits", "/lax/1", "/shared/1", "/shared/lax"],
                &["/shared/lax"],
            ],
        ),
        (
            "reject",
            "accept",
            [
                &["/lax/1", "/shared/lax"],
                &["/own", "/inherits", "/strict/1", "/lax/1", "/shared/lax"],
            ],
        ),
        (
            "reject",
            "reject",
            [&["/lax/1", "/shared/lax"], &["/shared/lax"]],
        ),
    ];
    let stack = behind(&backend, &toml("accept", "accept")).await;
    let client = stack.client();
    for (gateway, v2, open) in rows {
        stack.configure(Program::Gateway, &toml(gateway, v2));
        assert!(stack.reload(Program::Gateway).status.success());
        for (version, open) in ["v1", "v2"].into_iter().zip(open) {
            for path in [
                "/own",
                "/inherits",
                "/strict/1",
                "/lax/1",
                "/shared/1",
                "/shared/strict",
                "/shared/lax",
            ] {
                let takes = takes_unsigned(&client, version, path).await;
                let expected = open.contains(&path);
                assert_eq!(takes, expected, "{gateway} {v2}: {version} {path}");
            }
        }
    }
}

#[tokio::test]
async fn always_signed_takes_the_path_forms_of_routes() {
    let backend = RecordingBackend::start().await;
    let toml = "[sign]\nalways_signed = ['POST /orders/', 'GET /stock/**', 'POST /exact']\n";
    let stack = behind(&backend, toml).await;
    let client = stack.client();
    for path in ["/orders/", "/orders/5/cancel", "/exact"] {
        client.get(path).send().await.ok();
        let post = client.post(path).send().await;
        post.problem(403, "sign_missing");
        // It precedes the choice of the version.
        assert_eq!(post.header("acme-x-version"), None);
    }
    for path in ["/stock", "/stock/1"] {
        client.post(path).send().await.ok();
        client.get(path).send().await.problem(403, "sign_missing");
    }
    for path in ["/orders", "/exact/", "/exact/1", "/stocks"] {
        client.post(path).send().await.ok();
        client.get(path).send().await.ok();
    }
    assert_eq!(backend.requests().len(), 3 + 2 + 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_signs_a_request_without_parameters() {
    let backend = RecordingBackend::start().await;
    let stack = behind(&backend, "[sign]\nunsigned = 'reject'\n").await;
    for method in ["GET", "POST"] {
        let output = stack.command(&["call", method, "/user"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
    }
    let requests = backend.requests();
    assert!(
        requests[0].target.starts_with("/user?time="),
        "{requests:?}"
    );
    assert_eq!(requests[1].target, "/user");
}

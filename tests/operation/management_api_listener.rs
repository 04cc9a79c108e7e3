//! The management API's listener under attack and during a stop: other hosts and sites, slow and endless requests, floods.

use std::{
    io::ErrorKind,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use end_to_end::{
    program::Program,
    raw_connection::{RawConnection, RawResponse},
    recording_backend::RecordingBackend,
    response::Response,
    signed_client::{http_client, http_client_without_keep_alive},
    stack::Stack,
    waiting::until,
};
use reqwest::Client;
use tokio::{net::TcpStream, task::JoinSet};

const IMPATIENT: &str = "[timeouts]\nhead_seconds = 5\nbody_seconds = 5\nsend_seconds = 5\n";
/// For clients whose bodies arrive late.
const PATIENT: &str = "[timeouts]\nbody_seconds = 60\n";
/// Limit of a flood.
const FLOOD: Duration = Duration::from_secs(60);
/// Calls with a right token during a flood, at least.
const MIN_SERVED: usize = 50;
/// Clients that send wrong tokens at once.
const ATTACKERS: usize = 16;
/// As many connections as the listener serves at a time.
const CONNECTIONS: usize = 256;
/// Connections of one address that hold as much as they can.
const SILENT: usize = 400;

/// A gateway with the API, and an administrator's token.
struct Api {
    stack: Stack,
    token: String,
}

impl Api {
    async fn start(further: &str) -> Self {
        let backend = RecordingBackend::start().await;
        let keys = format!("[management.api]\n{further}");
        let stack = Stack::builder().multi().gateway(&keys);
        let stack = stack.in_front_of(&backend).start().await;
        let token = stack.create_token("admin");
        Self { stack, token }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.stack.addresses().management)
    }

    async fn get(&self, path: &str) -> Response {
        self.get_as(&http_client(), path, &self.token).await
    }

    async fn get_as(&self, client: &Client, path: &str, token: &str) -> Response {
        let call = client.get(self.url(path)).bearer_auth(token);
        Response::read(call.send().await.unwrap()).await
    }

    /// The bytes of a call with these further header lines; a body is sent apart.
    fn call(&self, method: &str, path: &str, further: &[&str]) -> Vec<u8> {
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nAuthorization: Bearer {}\r\n",
            self.token
        );
        let has_host = further.iter().any(|line| line.starts_with("Host:"));
        for line in further
            .iter()
            .chain((!has_host).then_some(&"Host: localhost"))
        {
            text.extend([line, "\r\n"]);
        }
        (text + "\r\n").into_bytes()
    }

    async fn connect(&self) -> RawConnection {
        RawConnection::open(self.stack.addresses().management).await
    }

    async fn raw(&self, method: &str, path: &str, further: &[&str]) -> RawResponse {
        let mut connection = self.connect().await;
        connection.send(&self.call(method, path, further)).await;
        connection.response().await.expect("a response")
    }
}

#[tokio::test]
async fn only_the_management_listener_has_the_api() {
    let api = Api::start("").await;
    api.get("/api/v1/apps").await.ok();
    for path in [
        "/api/v1/apps",
        "/api/v1/openapi.json",
        "/metrics",
        "/healthz",
    ] {
        let public = http_client().get(api.stack.url(path));
        let response = public.bearer_auth(&api.token).send().await.unwrap();
        assert!(!response.status().is_success(), "{path}");
    }
}

#[tokio::test]
async fn another_host_and_another_site_may_not_call() {
    let api = Api::start("[management]\nhosts = ['gateway-a']\n").await;
    for (path, line, status) in [
        ("/api/v1/apps", "Host: gateway-a:8081", 200),
        ("/api/v1/apps", "Host: attacker.example", 421),
        ("/api/v1/openapi.json", "Host: attacker.example", 421),
        (
            "http://attacker.example/api/v1/apps",
            "Host: localhost",
            421,
        ),
        (
            "http://localhost/api/v1/apps",
            "Host: attacker.example",
            421,
        ),
        ("/api/v1/apps", "Sec-Fetch-Site: cross-site", 403),
        ("/api/v1/apps", "Sec-Fetch-Site: same-site", 403),
        ("/api/v1/apps", "Sec-Fetch-Site: same-origin", 200),
        ("/api/v1/apps", "Origin: https://attacker.example", 403),
        ("/api/v1/apps", "Origin: null", 403),
    ] {
        for method in ["GET", "POST", "OPTIONS"] {
            let response = api.raw(method, path, &[line]).await;
            if method == "GET" || status != 200 {
                assert_eq!(response.status, status, "{method} {path} {line}");
            }
            let head = response.head.to_ascii_lowercase();
            assert!(!head.contains("access-control-"), "{head}");
        }
    }
    // The preflight of a page gets nothing that would allow its call.
    let preflight = [
        "Origin: https://attacker.example",
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: authorization",
    ];
    let response = api.raw("OPTIONS", "/api/v1/apps/create", &preflight).await;
    assert_eq!(response.status, 403);
}

#[tokio::test]
async fn huge_requests_are_rejected_at_once() {
    let api = Api::start("").await;
    let json = "Content-Type: application/json";
    let huge = ["Content-Length: 100000000000", json];
    let response = api.raw("POST", "/api/v1/apps/create", &huge).await;
    assert_eq!(response.status, 413);
    let mut endless = api.connect().await;
    let chunked = ["Transfer-Encoding: chunked", json];
    endless
        .send(&api.call("POST", "/api/v1/apps/create", &chunked))
        .await;
    let chunk = [b"4000\r\n", &[b' '; 0x4000][..], b"\r\n"].concat();
    for _ in 0..20 {
        endless.send(&chunk).await;
    }
    assert_eq!(endless.response().await.unwrap().status, 413);
    let long = "a".repeat(256 * 1024);
    let response = api
        .raw("GET", &format!("/api/v1/apps?search={long}"), &[])
        .await;
    assert!((400..500).contains(&response.status), "{}", response.head);
    api.get("/api/v1/apps?limit=1000").await.ok();
}

#[tokio::test]
async fn slow_clients_time_out_and_hold_up_no_other() {
    let api = Api::start(IMPATIENT).await;
    let whole = api.call("GET", "/api/v1/apps", &[]);
    let mut head = api.connect().await;
    head.send(&whole[..40]).await;
    let mut body = api.connect().await;
    let json = ["Content-Length: 20", "Content-Type: application/json"];
    body.send(&api.call("POST", "/api/v1/apps/create", &json))
        .await;
    body.send(b"{").await;
    // More than fits into the buffers of both sides.
    let address = api.stack.addresses().management;
    let reader = TcpStream::connect(address).await.unwrap();
    let document = api.call("GET", "/api/v1/openapi.json", &[]);
    reader.try_write(&document.repeat(1000)).unwrap();
    for _ in 0..5 {
        api.get("/api/v1/apps").await.ok();
    }
    assert_eq!(head.response().await.unwrap().status, 408);
    assert_eq!(body.response().await.unwrap().status, 408);
    until("the slow reader's connection to be reset", || async {
        let written = reader.try_write(b"\r\n");
        written
            .is_err_and(|error| error.kind() != ErrorKind::WouldBlock)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn idle_connections_make_room_for_calls() {
    let api = Api::start("").await;
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS + 50 {
        let mut idle = api.connect().await;
        idle.send(&api.call("GET", "/api/v1/openapi.json", &[]))
            .await;
        assert_eq!(idle.response().await.unwrap().status, 200);
        open.push(idle);
    }
    api.get("/api/v1/apps").await.ok();
}

/// Issue 44: one address shut API, console and `/metrics` for everybody.
#[tokio::test]
async fn silent_connections_make_room_for_calls_pages_and_scrapes() {
    let api = Api::start("[management.console]\n").await;
    let address = api.stack.addresses().management;
    for said in [&b""[..], b"G", b"GET /metrics HTTP/1.1\r\nHost: local"] {
        let mut silent = Vec::new();
        for _ in 0..SILENT {
            let stream = TcpStream::connect(address).await.unwrap();
            // It may have had to make room already.
            let _ = stream.try_write(said);
            silent.push(stream);
        }
        for path in ["/api/v1/apps", "/sign-in", "/metrics", "/healthz"] {
            let client = http_client_without_keep_alive();
            let response = api.get_as(&client, path, &api.token).await;
            assert_eq!(response.status, 200, "{path} after {said:?}");
        }
        drop(silent);
    }
}

/// A call whose body does not come holds a place, but of its network's only.
#[tokio::test]
async fn calls_that_do_not_end_leave_places_to_other_networks() {
    let api = Api::start(PATIENT).await;
    let address = api.stack.addresses().management;
    let json = ["Content-Length: 9", "Content-Type: application/json"];
    let begun = api.call("POST", "/api/v1/apps/create", &json);
    let mut slow = Vec::new();
    for _ in 0..SILENT {
        let stream = TcpStream::connect(address).await.unwrap();
        let _ = stream.try_write(&begun);
        slow.push(stream);
    }
    api.stack
        .log_with(Program::Gateway, "connections are in use")
        .await;
    let mut other = RawConnection::open_from([127, 0, 0, 2].into(), address).await;
    other.send(&api.call("GET", "/metrics", &[])).await;
    assert_eq!(other.response().await.unwrap().status, 200);
    drop(slow);
}

/// What attackers share.
#[derive(Default)]
struct Flood {
    is_over: AtomicBool,
    statuses: Mutex<Vec<u16>>,
}

/// Calls with wrong tokens until the flood is over.
async fn call_wrongly(url: String, flood: Arc<Flood>) {
    let (client, wrong) = (http_client(), format!("sp_{}", "A".repeat(43)));
    while !flood.is_over.load(Ordering::Relaxed) {
        let call = client.get(&url).bearer_auth(&wrong);
        let response = Response::read(call.send().await.unwrap()).await;
        let must_wait = response.header("retry-after").is_some();
        assert_eq!(must_wait, response.status == 429);
        let status = response.status.as_u16();
        flood.statuses.lock().unwrap().push(status);
    }
}

#[tokio::test]
async fn a_flood_of_wrong_tokens_does_not_lock_out_a_right_one() {
    let api = Api::start("").await;
    let (url, flood) = (api.url("/api/v1/apps"), Arc::new(Flood::default()));
    let attackers: JoinSet<_> = (0..ATTACKERS)
        .map(|_| call_wrongly(url.clone(), Arc::clone(&flood)))
        .collect();
    let (client, mut served, start) = (http_client(), 0, Instant::now());
    let is_limited = || flood.statuses.lock().unwrap().contains(&429);
    while served < MIN_SERVED || !is_limited() {
        assert!(start.elapsed() < FLOOD, "after {served} calls");
        api.get_as(&client, "/api/v1/apps", &api.token).await.ok();
        served += 1;
    }
    flood.is_over.store(true, Ordering::Relaxed);
    attackers.join_all().await;
    let statuses = flood.statuses.lock().unwrap();
    assert!(statuses.iter().all(|status| matches!(status, 401 | 429)));
    // A quarter of what each attacker gets, at least.
    let shares = served * 4 * ATTACKERS;
    assert!(
        shares >= statuses.len(),
        "{served} beside {}",
        statuses.len()
    );
}

/// Sends a call but the end of its body.
async fn begin_create(api: &Api) -> (RawConnection, &'static [u8]) {
    let body: &[u8] = br#"{"name": "Late", "reason": "a stop"}"#;
    let length = format!("Content-Length: {}", body.len());
    let lines = [&*length, "Content-Type: application/json"];
    let mut connection = api.connect().await;
    connection
        .send(&api.call("POST", "/api/v1/apps/create", &lines))
        .await;
    connection.send(&body[..10]).await;
    // Served by the same thread, after the head above was read.
    api.get("/api/v1/apps").await.ok();
    (connection, &body[10..])
}

#[tokio::test]
async fn a_stop_waits_for_calls() {
    let mut api = Api::start(PATIENT).await;
    let (mut connection, rest) = begin_create(&api).await;
    api.stack.running(Program::Gateway).terminate();
    until("the gateway to stop", || async {
        TcpStream::connect(api.stack.addresses().gateway)
            .await
            .err()
    })
    .await;
    connection.send(rest).await;
    let created = connection.response().await.unwrap();
    assert_eq!(created.status, 201, "{}", created.head);
    assert!(api.stack.wait_for_exit(Program::Gateway).await.success());
}

#[tokio::test]
async fn an_upgrade_finishes_calls_and_the_new_process_serves_the_next() {
    let mut api = Api::start(PATIENT).await;
    let (mut connection, rest) = begin_create(&api).await;
    let old = api.stack.gateway_processes();
    assert!(api.stack.upgrade().await.status.success());
    until("the new process to serve", || async {
        let call = http_client_without_keep_alive().get(api.url("/api/v1/apps"));
        let response = call.bearer_auth(&api.token).send().await.ok()?;
        response.status().is_success().then_some(())
    })
    .await;
    assert!(api.stack.gateway_processes().contains(&old[0]));
    connection.send(rest).await;
    assert_eq!(connection.response().await.unwrap().status, 201);
    until("the old process to end", || async {
        (!api.stack.gateway_processes().contains(&old[0])).then_some(())
    })
    .await;
    let list = api.get("/api/v1/apps").await.ok();
    assert_eq!(list["items"][0]["name"], "Late");
}

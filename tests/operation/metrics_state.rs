//! What `/metrics` shows of the gateway's state: connections, protection, backends, operation. #15

use std::{
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};

use end_to_end::{
    certificates::Authority,
    folder::Folder,
    http2_client::Http2Client,
    logins::{credential, log_in_by_redirect},
    metrics::Scrape,
    port::free_address,
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    signed_client::fetch,
    stack::Stack,
    waiting::until,
};

/// A sample: its name, labels and value.
type Sample<'s> = (&'s str, &'s [(&'s str, &'s str)], f64);

async fn scrape(stack: &Stack) -> Scrape {
    Scrape::of(stack.addresses().management).await
}

/// Waits until samples have these values: a connection may end shortly after its client has noticed it.
async fn until_shown(stack: &Stack, expected: &[Sample<'_>]) -> Scrape {
    let what = format!("{expected:?}");
    until(&what, || async {
        let scrape = scrape(stack).await;
        let is_shown = |(name, labels, value): &Sample<'_>| {
            let found = scrape.value(name, labels);
            found.is_some_and(|found| (found - value).abs() < 0.5)
        };
        expected.iter().all(is_shown).then_some(scrape)
    })
    .await
}

/// Waits until the clients' connections are in these states.
async fn until_connections(stack: &Stack, negotiating: f64, active: f64, idle: f64) {
    const NAME: &str = "signpost_connections";
    let expected = [
        (NAME, &[("state", "negotiating")][..], negotiating),
        (NAME, &[("state", "active")], active),
        (NAME, &[("state", "idle")], idle),
    ];
    until_shown(stack, &expected).await;
}

async fn gets(connection: &mut RawConnection, status: u16) {
    connection.send(&request("GET", "/x", &[], b"")).await;
    assert_eq!(connection.response().await.unwrap().status, status);
}

#[tokio::test]
async fn connections_are_negotiating_active_or_idle() {
    let authority = Authority::new("Test authority");
    let files = Folder::create();
    let certificate = authority.issue(&["api.example.com"]);
    files.write("api.pem", &certificate.certificate);
    files.write("api.key", &certificate.key);
    let (folder, tls) = (files.path().display().to_string(), free_address());
    let listeners = format!(
        "[timeouts]\nhead_seconds = 60\n[[listen]]\naddress = '$LISTEN'\nprotocols = ['http/1.1', 'h2c']\n[[listen]]\naddress = '{tls}'\n\
         tls.certificates = [{{ certificate = '{folder}/api.pem', key = '{folder}/api.key' }}]"
    );
    let backend = RecordingBackend::start().await;
    let builder = Stack::builder().gateway(&listeners);
    let stack = builder.in_front_of(&backend).start().await;
    until_connections(&stack, 0.0, 0.0, 0.0).await;
    // A client that says nothing, one in the middle of its head, one that has had its response.
    let mut silent = stack.raw().await;
    let mut partial = stack.raw().await;
    // So many bytes that the smallest rate does not matter here.
    let head = format!("GET /x HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(9000));
    partial.send(head.as_bytes()).await;
    let mut served = stack.raw().await;
    gets(&mut served, 200).await;
    let handshake = RawConnection::open(tls).await;
    until_connections(&stack, 1.0, 1.0, 2.0).await;
    backend.behave(Behaviour::responding(Delivery::Never));
    served.send(&request("GET", "/x", &[], b"")).await;
    until_connections(&stack, 1.0, 2.0, 1.0).await;
    // Two streams of one connection.
    let http2 = Http2Client::open(stack.addresses().gateway).await;
    let http2 = std::sync::Arc::new(http2);
    let before = backend.requests().len();
    let streams: Vec<_> = (0..2)
        .map(|_| {
            let (http2, client) = (std::sync::Arc::clone(&http2), stack.client());
            tokio::spawn(async move { http2.send(&client.get("/x")).await.map(drop) })
        })
        .collect();
    backend.request_number(before + 2).await;
    until_shown(&stack, &[("signpost_http2_streams", &[], 2.0)]).await;
    until_connections(&stack, 1.0, 3.0, 1.0).await;
    for stream in streams {
        stream.abort();
        let _ = stream.await;
    }
    until_shown(&stack, &[("signpost_http2_streams", &[], 0.0)]).await;
    until_connections(&stack, 1.0, 2.0, 2.0).await;
    drop((partial, served, http2, handshake));
    until_connections(&stack, 0.0, 0.0, 1.0).await;
    backend.behave(Behaviour::default());
    gets(&mut silent, 200).await;
    until_connections(&stack, 0.0, 0.0, 1.0).await;
    let tls = tls.to_string();
    let accepted = [(
        "signpost_connections_accepted_total",
        &[("listener", &*tls)][..],
        1.0,
    )];
    until_shown(&stack, &accepted).await;
}

#[tokio::test]
async fn refused_connections_are_counted_by_cause() {
    const NAME: &str = "signpost_connections_refused_total";
    let backend = RecordingBackend::start().await;
    let further =
        "[[listen]]\naddress = '$LISTEN'\nproxy_protocol = ['127.0.0.9']\n[connections]\nmax = 8";
    let builder = Stack::builder().gateway(further).in_front_of(&backend);
    let stack = builder.start().await;
    let gateway = stack.addresses().gateway;
    let from = |last: u8| RawConnection::open_from([127, 0, 0, last].into(), gateway);
    // Not a PROXY header.
    let mut forged = from(9).await;
    forged.send(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert!(forged.is_closed().await);
    drop(forged);
    until_shown(&stack, &[(NAME, &[("cause", "proxy_header")], 1.0)]).await;
    until_connections(&stack, 0.0, 0.0, 0.0).await;
    let mut open = Vec::new();
    // A quarter of all for each address.
    for last in 2..=5 {
        for _ in 0..2 {
            let mut connection = from(last).await;
            gets(&mut connection, 200).await;
            open.push(connection);
        }
    }
    drop(open.pop());
    until_connections(&stack, 0.0, 0.0, 7.0).await;
    for _ in 0..3 {
        assert!(refuses(gateway, 2).await);
    }
    until_shown(&stack, &[(NAME, &[("cause", "per_address")], 3.0)]).await;
    let mut last = from(6).await;
    gets(&mut last, 200).await;
    for _ in 0..2 {
        assert!(refuses(gateway, 7).await);
    }
    let scrape = until_shown(&stack, &[(NAME, &[("cause", "max")], 2.0)]).await;
    let other = scrape.value(NAME, &[("cause", "tls")]);
    assert_eq!(other, Some(0.0), "{}", scrape.text());
    until_connections(&stack, 0.0, 0.0, 8.0).await;
}

/// Whether the gateway closes a new connection from this address at once.
async fn refuses(gateway: SocketAddr, last: u8) -> bool {
    match RawConnection::try_open_from([127, 0, 0, last].into(), gateway).await {
        Ok(mut connection) => connection.is_closed().await,
        Err(_) => true,
    }
}

/// A gateway with only these versions.
async fn gateway_with(versions: &str) -> Stack {
    Stack::builder()
        .in_front_of_address(free_address())
        .without(Program::Gateway, "versions")
        .gateway(versions)
        .start()
        .await
}

#[tokio::test]
async fn a_backend_that_is_down_is_unhealthy_retried_and_counted() {
    let (mut one, other) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let version = format!(
        "threads = 1\n[versions.v1]\nbackends = ['{}', '{}']\nhealth = {{ timeout_seconds = 30, unhealthy_after = 5 }}",
        one.address(),
        other.address()
    );
    let stack = gateway_with(&version).await;
    let (down, up) = (one.address().to_string(), other.address().to_string());
    let healthy = |address, value| {
        let labels = [("backend", "v1"), ("address", address)];
        (labels, value)
    };
    for (labels, value) in [healthy(&*down, 1.0), healthy(&*up, 1.0)] {
        until_shown(&stack, &[("signpost_backend_healthy", &labels, value)]).await;
    }
    let client = stack.client();
    // A request in flight.
    other.behave(Behaviour::responding(Delivery::Never));
    one.behave(Behaviour::responding(Delivery::Never));
    let waiting = tokio::spawn(async move { client.get("/x").try_send().await.map(drop) });
    until("a request in flight", || async {
        let scrape = scrape(&stack).await;
        (scrape.sum("signpost_backend_in_flight", &[]) > 0.5).then_some(())
    })
    .await;
    waiting.abort();
    let _ = waiting.await;
    until("no request in flight", || async {
        let scrape = scrape(&stack).await;
        (scrape.sum("signpost_backend_in_flight", &[]) < 0.5).then_some(())
    })
    .await;
    other.behave(Behaviour::default());
    one.end().await;
    // The client is served nevertheless, until the gateway has noticed.
    until("a retry", || async {
        stack.client().get("/x").param("a", "1").send().await.ok();
        let scrape = scrape(&stack).await;
        let retries = scrape.value("signpost_backend_retries_total", &[("backend", "v1")]);
        let shown = scrape.value(
            "signpost_backend_healthy",
            &[("backend", "v1"), ("address", &down)],
        );
        let is_noticed = shown == Some(0.0);
        (is_noticed && retries > Some(0.5)).then_some(())
    })
    .await;
    let scrape = until("a failed check", || async {
        let scrape = scrape(&stack).await;
        let labels = [("backend", "v1"), ("result", "failed")];
        let failed = scrape.value("signpost_backend_health_checks_total", &labels);
        (failed > Some(0.5)).then_some(scrape)
    })
    .await;
    let of_v1 = |name: &str, further: &[(&str, &str)]| {
        let labels = [&[("backend", "v1")], further].concat();
        let found = scrape.value(name, &labels);
        found.unwrap_or_else(|| panic!("{name} {further:?}: {}", scrape.text()))
    };
    let failures = |cause| of_v1("signpost_backend_failures_total", &[("cause", cause)]);
    assert!(failures("connect") + failures("reset") > 0.5);
    assert!(
        of_v1(
            "signpost_backend_health_checks_total",
            &[("result", "passed")]
        ) > 0.5
    );
    let retries = of_v1("signpost_backend_retries_total", &[]);
    let failed = failures("connect") + failures("reset");
    // Each failed attempt of a GET went to the other address.
    assert!((retries - failed).abs() < 0.5, "{}", scrape.text());
    let shown = scrape.value(
        "signpost_backend_healthy",
        &[("backend", "v1"), ("address", &up)],
    );
    assert_eq!(shown, Some(1.0), "{}", scrape.text());
    // An address that the configuration no longer has is gone; the counts of its backend go on.
    let only = format!("[versions.v1]\nbackends = ['{up}', '{}']", free_address());
    let text = stack.config_with(Program::Gateway, &only);
    fs::write(stack.config(Program::Gateway), text).unwrap();
    assert!(stack.reload(Program::Gateway).status.success());
    let scrape = Scrape::of(stack.addresses().management).await;
    let labels = [("backend", "v1"), ("address", &*down)];
    assert_eq!(scrape.value("signpost_backend_healthy", &labels), None);
    let after = scrape.value("signpost_backend_retries_total", &[("backend", "v1")]);
    assert!(after >= Some(retries), "{}", scrape.text());
}

#[tokio::test]
async fn an_ejection_is_counted_once_and_failures_by_their_cause() {
    let up = RecordingBackend::start().await;
    let refusing = free_address();
    let version = format!(
        "threads = 1\n[versions.v1]\nbackends = ['{refusing}', '{}']\nhealth = {{ active = false }}",
        up.address()
    );
    let stack = gateway_with(&version).await;
    for _ in 0..20 {
        stack.client().get("/x").param("a", "1").send().await.ok();
    }
    let ejections = (
        "signpost_backend_ejections_total",
        &[("backend", "v1")][..],
        1.0,
    );
    let scrape = until_shown(&stack, &[ejections]).await;
    let name = "signpost_backend_failures_total";
    let labels = [("backend", "v1"), ("cause", "connect")];
    assert!(scrape.value(name, &labels) > Some(0.5), "{}", scrape.text());
    let failed = scrape.value(
        "signpost_backend_connections_total",
        &[("result", "failed")],
    );
    assert_eq!(failed, scrape.value(name, &labels), "{}", scrape.text());
    // The response breaks off: no retry, and one failure more.
    up.behave(Behaviour::responding(Delivery::BreakOff));
    assert!(stack.client().get("/x").try_send().await.is_err());
    let reset = (name, &[("backend", "v1"), ("cause", "reset")][..], 1.0);
    until_shown(&stack, &[reset]).await;
    up.behave(Behaviour::verbatim("HTTP/1.1 200 OK\r\nbad\r\n\r\n"));
    let response = stack.client().post("/x").param("a", "1").send().await;
    response.problem(502, "backend_unreachable");
    let malformed = (name, &[("backend", "v1"), ("cause", "malformed")][..], 1.0);
    until_shown(&stack, &[reset, malformed]).await;
    // It is unhealthy until it accepts a connection, for which no request is needed.
    let labels = [("backend", "v1"), ("address", &*refusing.to_string())];
    let healthy = |scrape: &Scrape| scrape.value("signpost_backend_healthy", &labels);
    let scrape = self::scrape(&stack).await;
    assert_eq!(healthy(&scrape), Some(0.0), "{}", scrape.text());
    let back = RecordingBackend::start_at(refusing).await;
    until("the address to be reachable", || async {
        healthy(&self::scrape(&stack).await).is_none().then_some(())
    })
    .await;
    assert!(back.requests().is_empty());
}

#[tokio::test]
async fn a_single_address_that_refuses_connections_is_unavailable_until_it_accepts_one() {
    let up = RecordingBackend::start().await;
    let down = free_address();
    let versions = format!(
        "default_version = 'v1'\n[versions.v1]\nbackend = '{}'\n[versions.v2]\nbackend = '{down}'",
        up.address()
    );
    let stack = gateway_with(&versions).await;
    let begun = Instant::now();
    let readyz = format!("http://{}/readyz", stack.addresses().management);
    // The samples of v2's address and of v2, what `/readyz` says, and the health in the list of versions.
    let shown = || async {
        let scrape = scrape(&stack).await;
        let labels = [("backend", "v2"), ("address", &*down.to_string())];
        let healthy = scrape.value("signpost_backend_healthy", &labels);
        let available = scrape.value("signpost_backend_available", &labels[..1]);
        let of_v1 = scrape.samples("signpost_backend_available", &[("backend", "v1")]);
        assert_eq!(of_v1.count(), 0, "{}", scrape.text());
        let ready = fetch(&readyz).await;
        assert_eq!(ready.status, 200);
        let listed = stack.command(&["versions", "list", "--json"]);
        let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
        let address = &listed["versions"][1]["backends"][0]["addresses"][0];
        let health = address["health"].as_str().unwrap().to_owned();
        (healthy, available, ready.text(), health)
    };
    let unknown = (None, None, "ready\n".to_owned(), "unchecked".to_owned());
    let client = stack.client();
    client.get("/x").send().await.ok();
    assert_eq!(shown().await, unknown);
    let to_v2 = || async { client.get("/x").version("v2").send().await };
    to_v2().await.problem(502, "backend_unreachable");
    let body = "ready, but no backend is available for v2\n".to_owned();
    let unreachable = (Some(0.0), Some(0.0), body, "unreachable".to_owned());
    assert_eq!(shown().await, unreachable);
    // Without another request the gateway notices that it is back.
    let mut back = RecordingBackend::start_at(down).await;
    until("the address to be reachable", || async {
        (shown().await == unknown).then_some(())
    })
    .await;
    assert!(back.requests().is_empty());
    to_v2().await.ok();
    back.end().await;
    to_v2().await.problem(502, "backend_unreachable");
    assert_eq!(shown().await, unreachable);
    // The only address gets every request nevertheless, and one that is served suffices.
    let _back = RecordingBackend::start_at(down).await;
    to_v2().await.ok();
    assert_eq!(shown().await, unknown);
    let log = stack.log(Program::Gateway);
    let logged = |text| log.matches(text).count();
    // Both at most once a minute.
    let most = 1 + usize::try_from(begun.elapsed().as_secs() / 60).unwrap();
    for text in [
        "the backend is unreachable",
        "the backend is reachable again",
    ] {
        assert!((1..=most).contains(&logged(text)), "{log}");
    }
}

#[tokio::test]
async fn reused_and_new_connections_add_up_to_the_requests() {
    const NAME: &str = "signpost_backend_connections_total";
    let backend = RecordingBackend::start().await;
    let builder = Stack::builder().gateway("threads = 2");
    let stack = builder.in_front_of(&backend).start().await;
    let client = stack.client();
    for _ in 0..20 {
        client.get("/x").param("a", "1").send().await.ok();
        client.post("/x").param("a", "1").send().await.ok();
    }
    let scrape = scrape(&stack).await;
    let taken = |result| scrape.value(NAME, &[("result", result)]).unwrap();
    let new = backend.connections() as f64;
    assert!((taken("new") - new).abs() < 0.5, "{}", scrape.text());
    assert!(
        (taken("reused") + new - 40.0).abs() < 0.5,
        "{}",
        scrape.text()
    );
    assert_eq!(scrape.value(NAME, &[("result", "failed")]), Some(0.0));
    let idle = ("signpost_backend_idle_connections", &[][..], new);
    until_shown(&stack, &[idle]).await;
}

#[tokio::test]
async fn the_last_reload_is_shown_and_the_last_success_has_a_time() {
    const TIME: &str = "signpost_config_last_reload_success_timestamp_seconds";
    let login_service = free_address();
    let stack = Stack::builder()
        .program(
            Program::V1,
            &format!("[management]\nlisten = '{login_service}'"),
        )
        .start()
        .await;
    for (program, management) in [
        (Program::Gateway, stack.addresses().management),
        (Program::V1, login_service),
    ] {
        // Whether the last reload was successful, and when the last successful one was.
        let last = || async {
            let scrape = Scrape::of(management).await;
            let value = |name| scrape.value(name, &[]).unwrap();
            (value("signpost_config_last_reload_successful"), value(TIME))
        };
        let (successful, started) = last().await;
        assert_eq!(successful, 1.0);
        assert!(started > 1.7e9);
        let valid = fs::read_to_string(stack.config(program)).unwrap();
        fs::write(stack.config(program), "nonsense = 1").unwrap();
        assert!(!stack.reload(program).status.success());
        assert_eq!(last().await, (0.0, started), "{program}");
        fs::write(stack.config(program), &valid).unwrap();
        // A comparison is no reload.
        assert!(stack.check(program, &["--diff"]).status.success());
        assert_eq!(last().await, (0.0, started), "{program}");
        assert!(stack.reload(program).status.success());
        let (successful, reloaded) = last().await;
        assert_eq!(successful, 1.0, "{program}");
        assert!(reloaded > started, "{program}");
    }
}

#[tokio::test]
async fn the_validity_of_a_certificate_is_shown() {
    let authority = Authority::new("Test authority");
    let certificate = authority.issue_with(&["api.example.com"], |params| {
        params.not_after = std::time::UNIX_EPOCH
            .checked_add(Duration::from_secs(2_000_000_000))
            .unwrap()
            .into();
        params.not_before = std::time::UNIX_EPOCH
            .checked_add(Duration::from_secs(1_700_000_000))
            .unwrap()
            .into();
    });
    let files = Folder::create();
    files.write("api.pem", &certificate.certificate);
    files.write("api.key", &certificate.key);
    let folder = files.path().display().to_string();
    let listen = format!(
        "[[listen]]\naddress = '$LISTEN'\n\
         tls.certificates = [{{ certificate = '{folder}/api.pem', key = '{folder}/api.key' }}]"
    );
    let backend = RecordingBackend::start().await;
    let builder = Stack::builder().gateway(&listen).in_front_of(&backend);
    let stack = builder.start().await;
    let file = format!("{folder}/api.pem");
    let labels = [("file", &*file)];
    let end = "signpost_certificate_expiry_timestamp_seconds";
    let start = "signpost_certificate_not_before_timestamp_seconds";
    until_shown(&stack, &[(end, &labels, 2e9), (start, &labels, 1.7e9)]).await;
}

#[tokio::test]
async fn limited_requests_and_keys_in_use_are_shown() {
    let backend = RecordingBackend::start().await;
    // Burst and rate such that the keys are in use longer than the test.
    let limits = "[rate_limits.application]\nper_second = 1\nburst = 30\n\
                  [limits.unsigned]\nper_second = 1\nburst = 30\n";
    let builder = Stack::builder().multi().gateway(limits);
    let stack = builder.in_front_of(&backend).start().await;
    let application = stack.create_application("one", &[]);
    let client = stack.client_of(&application);
    let keys = |limit, number| {
        let limit = match limit {
            "app" => &[("limit", "app")],
            _ => &[("limit", "unsigned")],
        };
        ("signpost_rate_limit_keys", &limit[..], number)
    };
    let requests = "signpost_rate_limited_total";
    until_shown(&stack, &[keys("app", 0.0), keys("unsigned", 0.0)]).await;
    until("a limited request", || async {
        let response = client.get("/x").param("a", "1").send().await;
        (response.status == 429).then_some(())
    })
    .await;
    until_shown(
        &stack,
        &[keys("app", 1.0), (requests, &[("limit", "app")], 1.0)],
    )
    .await;
    until("a limited request", || async {
        let response = fetch(&stack.url("/login?state=v1.x&code=y")).await;
        (response.status == 429).then_some(())
    })
    .await;
    let unsigned = (requests, &[("limit", "unsigned")][..], 1.0);
    let scrape = until_shown(&stack, &[keys("unsigned", 1.0), unsigned]).await;
    for limit in ["address", "path", "replay_memory"] {
        let other = scrape.value(requests, &[("limit", limit)]);
        assert_eq!(other, Some(0.0), "{limit}");
    }
    assert!((scrape.sum(requests, &[]) - 2.0).abs() < 0.5);
}

#[tokio::test]
async fn the_replay_memory_has_a_size_and_a_full_one_rejects() {
    let backend = RecordingBackend::start().await;
    let sign = "[sign]\nreplay = 'reject'\nreplay_entries = 100\nwindow_seconds = 300";
    let builder = Stack::builder().gateway(sign).in_front_of(&backend);
    let stack = builder.start().await;
    let name = "signpost_replay_signatures";
    until_shown(&stack, &[(name, &[], 0.0)]).await;
    let client = stack.client();
    for number in 0..10 {
        let call = client.get("/x").param("a", &number.to_string());
        call.send().await.ok();
    }
    // A rejected replay is not stored twice.
    let call = client.get("/x").param("a", "1").signed();
    call.send().await.ok();
    call.send().await.problem(409, "request_replayed");
    until_shown(&stack, &[(name, &[], 11.0)]).await;
    for number in 11..100 {
        let call = client.get("/x").param("b", &number.to_string());
        call.send().await.ok();
    }
    let call = client.get("/x").param("b", "100");
    call.send().await.problem(429, "rate_limited");
    let limited = (
        "signpost_rate_limited_total",
        &[("limit", "replay_memory")][..],
        1.0,
    );
    until_shown(&stack, &[(name, &[], 100.0), limited]).await;
}

#[tokio::test]
async fn lookups_of_applications_are_hits_and_misses() {
    const NAME: &str = "signpost_cache_lookups_total";
    let backend = RecordingBackend::start().await;
    let builder = Stack::builder().multi();
    let mut stack = builder.in_front_of(&backend).start().await;
    let application = stack.create_application("one", &[]);
    let entries = "signpost_cache_entries";
    let one = (entries, &[("cache", "applications")][..], 1.0);
    // All applications are loaded, so none is a miss.
    stack.restart(Program::Gateway).await;
    until_shown(&stack, &[one]).await;
    let client = stack.client_of(&application);
    for _ in 0..10 {
        client.get("/x").param("a", "1").send().await.ok();
    }
    let lookups = |result, number| {
        let labels = match result {
            "hit" => &[("cache", "applications"), ("result", "hit")],
            "miss" => &[("cache", "applications"), ("result", "miss")],
            _ => &[("cache", "applications"), ("result", "stale")],
        };
        (NAME, &labels[..], number)
    };
    let expected = [
        lookups("hit", 10.0),
        lookups("miss", 0.0),
        lookups("stale", 0.0),
        one,
    ];
    until_shown(&stack, &expected).await;
    // The cache of another size goes on counting.
    stack.configure(Program::Gateway, "[applications]\ncache_entries = 500");
    assert!(stack.reload(Program::Gateway).status.success());
    client.get("/x").param("a", "1").send().await.ok();
    let expected = [lookups("hit", 11.0), lookups("miss", 0.0), one];
    until_shown(&stack, &expected).await;
    stack.configure(Program::Gateway, "[applications]\ncache_entries = 600");
    assert!(stack.reload(Program::Gateway).status.success());
    // Unknown idents are cached, too.
    let unknown = client.with_app("nobody");
    for _ in 0..2 {
        let response = unknown.get("/x").param("a", "1").send().await;
        response.problem(404, "app_not_found");
    }
    until_shown(&stack, &[lookups("hit", 12.0), lookups("miss", 1.0)]).await;
}

#[tokio::test]
async fn a_credential_is_a_miss_first_and_a_hit_from_then_on() {
    const NAME: &str = "signpost_cache_lookups_total";
    let backend = RecordingBackend::start().await;
    let routes = format!(
        "[[versions.v1.routes]]\npath = '/required'\nbackend = '{}'\naccount = 'required'\n",
        backend.address()
    );
    let mut stack = Stack::builder().gateway(&routes).start().await;
    let login = log_in_by_redirect(&stack.client(), "ada").await;
    // The change feed of a gateway that starts now does not report the credential as changed.
    stack.restart(Program::Gateway).await;
    let client = stack.client();
    for _ in 0..5 {
        let call = client.get("/required").authorization(credential(&login));
        call.send().await.ok();
    }
    let hits = [("cache", "accounts"), ("result", "hit")];
    let misses = [("cache", "accounts"), ("result", "miss")];
    let entries = ("signpost_cache_entries", &[("cache", "accounts")][..], 1.0);
    let expected = [(NAME, &hits[..], 4.0), (NAME, &misses[..], 1.0), entries];
    until_shown(&stack, &expected).await;
}

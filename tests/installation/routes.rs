//! Paths of a version, or of several, that go to a backend of their own. CONTRACT 5.

use std::net::SocketAddr;

use end_to_end::{
    metrics::Scrape,
    port::free_address,
    program::Program,
    raw_connection::request,
    recording_backend::{Behaviour, RecordingBackend},
    stack::Stack,
    waiting::until,
};

/// A route of v1.
fn route(path: &str, backend: SocketAddr) -> String {
    format!("{{ path = '{path}', backend = '{backend}' }}")
}

fn routes(routes: &[String]) -> String {
    format!("[versions.v1]\nroutes = [{}]\n", routes.join(", "))
}

/// The targets that each backend has received.
fn targets(backend: &RecordingBackend) -> Vec<String> {
    let requests = backend.requests().into_iter();
    requests.map(|request| request.target).collect()
}

#[tokio::test]
async fn the_longest_path_wins_and_no_path_is_resolved() {
    let (own, below, exact) = tokio::join!(
        RecordingBackend::start(),
        RecordingBackend::start(),
        RecordingBackend::start()
    );
    let toml = routes(&[
        route("/a/", below.address()),
        route("/a/b", exact.address()),
    ]);
    let toml = format!("{toml}paths = 'as_sent'\n");
    let stack = Stack::builder()
        .in_front_of(&own)
        .gateway(&toml)
        .start()
        .await;
    let paths = [
        ("/a/", "below"),
        ("/a/x", "below"),
        ("/a/b/", "below"),
        ("/a//b", "below"),
        ("/a/%2e%2e/b", "below"),
        ("/a/../b", "below"),
        ("/a/./b?q", "below"),
        ("/a/b", "exact"),
        ("/a/b?c=/a/", "exact"),
        ("/%61/b", "exact"),
        ("/a", "own"),
        ("/A/b", "own"),
        ("//a/b", "own"),
        ("/./a/b", "own"),
        ("/x/../a/b", "own"),
        ("/a%2Fb", "own"),
        ("/", "own"),
    ];
    let mut connection = stack.raw().await;
    for (target, _) in paths {
        // With a query, the request must be signed.
        let bytes = match target.split_once('?') {
            Some((path, pair)) => {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                stack.client().get(path).param(name, value).bytes(&[])
            }
            None => request("GET", target, &[], b""),
        };
        connection.send(&bytes).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.status, 200, "{target}");
        assert_eq!(response.header("acme-x-version"), Some("v1"), "{target}");
        assert_eq!(response.header("acme-x-version-source"), Some("default"));
    }
    for (backend, name) in [(&own, "own"), (&below, "below"), (&exact, "exact")] {
        let expected: Vec<_> = paths
            .iter()
            .filter(|(_, to)| *to == name)
            .map(|(target, _)| target.split('?').next().unwrap().to_owned())
            .collect();
        let found: Vec<_> = targets(backend)
            .into_iter()
            .map(|target| target.split('?').next().unwrap().to_owned())
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[tokio::test]
async fn versions_share_the_backend_of_a_common_route() {
    let (one, two, stock, own_stock) = tokio::join!(
        RecordingBackend::start(),
        RecordingBackend::start(),
        RecordingBackend::start(),
        RecordingBackend::start()
    );
    let toml = format!(
        "[versions.v2]\nbackend = '{}'\nroutes = [{}]\n[versions.v3]\nbackend = '{}'\n\
         [[routes]]\npath = '/stock/**'\nversions = ['v1', 'v2']\nbackend = '{}'\nhealth = {{}}\n",
        two.address(),
        route("/stock/mine", own_stock.address()),
        two.address(),
        stock.address(),
    );
    let stack = Stack::builder()
        .in_front_of(&one)
        .gateway(&toml)
        .start()
        .await;
    let client = stack.client();
    for (version, path) in [
        ("v1", "/stock"),
        ("v2", "/stock"),
        ("v1", "/stock/mine"),
        ("v2", "/stock/mine"),
        ("v3", "/stock/3"),
        ("v1", "/stocks"),
    ] {
        let response = client.get(path).version(version).send().await;
        assert_eq!(response.header("acme-x-version"), Some(version));
        response.ok();
    }
    let of_stock = stock.requests();
    let received: Vec<_> = of_stock
        .iter()
        .map(|request| {
            (
                request.value("x-gateway-version").unwrap(),
                &*request.target,
            )
        })
        .collect();
    assert_eq!(
        received,
        [("v1", "/stock"), ("v2", "/stock"), ("v1", "/stock/mine")]
    );
    assert_eq!(targets(&own_stock), ["/stock/mine"]);
    assert_eq!(targets(&two), ["/stock/3"]);
    assert_eq!(targets(&one), ["/stocks"]);
    // One backend: one set of health checks, one name in metrics and lists.
    let listed = stack.command(&["versions", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.matches("/stock/** (v1, v2)").count(), 1, "{listed}");
    // A request is counted a moment after its response.
    until("the counts", || async {
        let scrape = Scrape::of(stack.addresses().management).await;
        let count = |name: &str, label| {
            scrape.value(&format!("signpost_{name}_duration_seconds_count"), &[label])
        };
        let of = |version| count("request", ("version", version));
        let of_versions = ["v1", "v2", "v3"].map(of) == [3.0, 2.0, 1.0].map(Some);
        let of_route = count("backend", ("backend", "/stock/** (v1, v2)")) == Some(3.0);
        (of_versions && of_route).then_some(())
    })
    .await;
}

#[tokio::test]
async fn nothing_unverified_reaches_a_route() {
    let (own, other) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let toml = routes(&[route("/", other.address())]);
    let stack = Stack::builder()
        .in_front_of(&own)
        .gateway(&toml)
        .start()
        .await;
    let mut connection = stack.raw().await;
    connection
        .send(&request("GET", "/orders?a=1", &[], b""))
        .await;
    assert_eq!(connection.response().await.unwrap().status, 403);
    assert_eq!(other.connections(), 0);
    // A callback takes no route, since it has no application: it belongs to the login service.
    connection
        .send(&request("GET", "/login?state=v1.abc&code=x", &[], b""))
        .await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    assert_eq!((own.requests().len(), other.connections()), (1, 0));
    // A signed request on the same path does.
    let signed = stack.client().post("/login").signed().bytes(&[]);
    connection.send(&signed).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    assert_eq!((own.requests().len(), other.requests().len()), (1, 1));
}

#[tokio::test]
async fn no_backend_has_cookies_of_the_console_and_no_route_those_of_logins() {
    const LOGIN: &str = "login-0123456789abcdef";
    const CONSOLE: &str = "__Host-signpost";
    let (own, other) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let toml = routes(&[route("/orders", other.address())]);
    let stack = Stack::builder()
        .in_front_of(&own)
        .gateway(&toml)
        .start()
        .await;
    let sets = [
        "a=1; Path=/".to_owned(),
        format!("{LOGIN}=forged; Path=/login"),
        format!("  __Host-{LOGIN} =forged; Secure; Path=/"),
        format!("={LOGIN}=forged"),
        format!("b={LOGIN}=kept"),
        format!("{CONSOLE}=planted; Secure; Path=/"),
        format!(
            " {}-sign-in =planted; Secure; Path=/",
            CONSOLE.to_lowercase()
        ),
        format!("={CONSOLE}; Max-Age=0"),
    ];
    let lines: String = sets
        .iter()
        .map(|set| format!("Set-Cookie: {set}\r\n"))
        .collect();
    let behaviour = Behaviour {
        head: format!("HTTP/1.1 200 OK\r\n{lines}"),
        ..Behaviour::default()
    };
    own.behave(behaviour.clone());
    other.behave(behaviour);
    let logins = format!("{LOGIN}=v; __Host-{LOGIN}=w");
    let both = format!("Cookie: a=\"1\"; {CONSOLE}=s; {logins};{CONSOLE}-sign-in=\"v\";b=2");
    let alone = format!("Cookie: {LOGIN}=v");
    let session = format!("Cookie: $Version=1; {CONSOLE}=s");
    let own_cookies = format!("a=\"1\"; {logins};b=2");
    let mut connection = stack.raw().await;
    for (target, expected) in [
        ("/orders", [Some("a=\"1\";b=2"), None, Some("$Version=1")]),
        (
            "/x",
            [
                Some(&*own_cookies),
                alone.strip_prefix("Cookie: "),
                Some("$Version=1"),
            ],
        ),
    ] {
        for (line, cookie) in [&both, &alone, &session].into_iter().zip(expected) {
            connection.send(&request("GET", target, &[line], b"")).await;
            let response = connection.response().await.unwrap();
            let is_set = |set: &&String| response.head.contains(set.trim());
            let set: Vec<_> = sets.iter().filter(is_set).collect();
            let is_planted = response.head.to_lowercase().contains("signpost");
            assert!(!is_planted, "{}", response.head);
            if target == "/x" {
                assert_eq!(set.len(), 5, "{}", response.head);
            } else {
                assert_eq!(set, [&sets[0], &sets[4]], "{}", response.head);
                assert!(!response.head.contains("forged"), "{}", response.head);
            }
            let backend = if target == "/x" { &own } else { &other };
            let arrived = backend.requests().pop().unwrap();
            assert_eq!(arrived.value("cookie"), cookie, "{target} {line}");
        }
    }
}

#[tokio::test]
async fn a_route_has_its_own_balancing_and_health() {
    let (own, one, other) = tokio::join!(
        RecordingBackend::start(),
        RecordingBackend::start(),
        RecordingBackend::start()
    );
    let toml = format!(
        "[versions.v1]\nroutes = [{{ path = '/orders', backends = ['{}', '{}'], \
         health = {{ interval_seconds = 1, timeout_seconds = 30, unhealthy_after = 1 }} }}]\n",
        one.address(),
        other.address()
    );
    let stack = Stack::builder()
        .in_front_of(&own)
        .gateway(&toml)
        .start()
        .await;
    let client = stack.client();
    for _ in 0..10 {
        client.get("/orders").send().await.ok();
    }
    assert_eq!((one.requests().len(), other.requests().len()), (5, 5));
    let unhealthy = Behaviour {
        head: "HTTP/1.1 503 Service Unavailable\r\n".to_owned(),
        ..Behaviour::default()
    };
    for backend in [&one, &other] {
        backend.behave_when_checked(unhealthy.clone());
        let log = format!(
            "is unhealthy backend=v1 /orders version=v1 backend.addr={}",
            backend.address()
        );
        stack.log_with(Program::Gateway, &log).await;
    }
    let response = client.get("/orders").send().await;
    response.problem(503, "no_healthy_backend");
    assert_eq!(response.header("acme-x-version"), Some("v1"));
    stack
        .log_with(Program::Gateway, "rejected backend=v1 /orders ")
        .await;
    // The version's own backend is another one.
    client.get("/x").send().await.ok();
    for backend in [&one, &other] {
        backend.behave_when_checked(Behaviour::default());
    }
    stack
        .log_with(
            Program::Gateway,
            &format!(
                "passes its checks again backend=v1 /orders version=v1 backend.addr={}",
                one.address()
            ),
        )
        .await;
    client.get("/orders").send().await.ok();
}

#[tokio::test]
async fn routes_are_reloaded() {
    let (own, one, other) = tokio::join!(
        RecordingBackend::start(),
        RecordingBackend::start(),
        RecordingBackend::start()
    );
    let stack = Stack::builder().in_front_of(&own).start().await;
    let client = stack.client();
    let reload = |toml: &str| {
        stack.configure(Program::Gateway, toml);
        let output = stack.reload(Program::Gateway);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{text}");
        text
    };
    let served = || [&own, &one, &other].map(|backend| backend.requests().len());
    client.get("/orders").send().await.ok();
    assert_eq!(served(), [1, 0, 0]);
    let printed = reload(&routes(&[route("/orders", one.address())]));
    assert!(
        printed.contains("versions.v1.routes[0].path: added, \"/orders\""),
        "{printed}"
    );
    client.get("/orders").send().await.ok();
    assert_eq!(served(), [1, 1, 0]);
    reload(&routes(&[route("/orders", other.address())]));
    client.get("/orders").send().await.ok();
    assert_eq!(served(), [1, 1, 1]);
    let printed = reload(&routes(&[]));
    assert!(
        printed.contains("versions.v1.routes[0].path: removed"),
        "{printed}"
    );
    client.get("/orders").send().await.ok();
    assert_eq!(served(), [2, 1, 1]);
    // The gateway does not become its own backend.
    let gateway = stack.origin().replace("http://", "").parse().unwrap();
    stack.configure(Program::Gateway, &routes(&[route("/orders", gateway)]));
    let output = stack.reload(Program::Gateway);
    assert!(!output.status.success());
}

#[tokio::test]
async fn a_route_that_is_down_harms_no_other() {
    let own = RecordingBackend::start().await;
    let toml = routes(&[route("/orders/", free_address())]);
    let stack = Stack::builder()
        .in_front_of(&own)
        .gateway(&toml)
        .start()
        .await;
    let response = stack.client().get("/orders/1").send().await;
    response.problem(502, "backend_unreachable");
    stack.client().get("/x").send().await.ok();
}

//! A reload opens and closes listeners; one is known by its address.

use std::net::{SocketAddr, TcpListener};

use end_to_end::{
    certificates::Authority,
    metrics::Scrape,
    raw_connection::RawConnection,
    raw_http2::{RawHttp2, Reaction, get, kind},
};
use tokio::net::TcpStream;

use super::{load::Load, *};

/// More than threads, so that each socket of a listener gets connections.
const CONNECTIONS: usize = 20;

/// A `[[listen]]` table for each address, with its further keys.
fn tables(listeners: &[(SocketAddr, &str)]) -> String {
    let table = |(address, further)| format!("[[listen]]\naddress = '{address}'\n{further}\n");
    listeners.iter().copied().map(table).collect()
}

/// Gets `/x` over new connections, and expects this status.
async fn assert_status(address: SocketAddr, expected: u16) {
    for _ in 0..CONNECTIONS {
        let mut connection = RawConnection::open(address).await;
        connection.send(&request("GET", "/x", &[], b"")).await;
        let response = connection.response().await.expect("it is answered");
        assert_eq!(response.status, expected, "{address}");
    }
}

async fn until_refused(address: SocketAddr) {
    until(&format!("{address} to be closed"), || async {
        TcpStream::connect(address).await.is_err().then_some(())
    })
    .await;
}

async fn assert_is_ready(stack: &Stack) {
    let management = stack.addresses().management;
    let response = reqwest::get(format!("http://{management}/readyz")).await;
    assert_eq!(response.unwrap().status(), 200);
}

/// Issue 44, row 15: `[::]` is for IPv6 alone, so both families have a listener.
#[tokio::test]
async fn one_port_has_a_listener_for_each_family() {
    let (mut stack, _backend) = Stack::recording().await;
    let port = free_address().port();
    let loopback = [format!("127.0.0.1:{port}"), format!("[::1]:{port}")];
    let [v4, v6] = loopback.map(|address| address.parse::<SocketAddr>().unwrap());
    let any_v6: SocketAddr = format!("[::]:{port}").parse().unwrap();
    let any_v4 = SocketAddr::from(([0, 0, 0, 0], port));
    reload(&stack, &tables(&[(any_v6, "")]));
    assert_status(v6, 200).await;
    assert!(TcpStream::connect(v4).await.is_err());
    reload(&stack, &tables(&[(any_v6, ""), (any_v4, "")]));
    assert_status(v6, 200).await;
    assert_status(v4, 200).await;
    assert!(stack.upgrade().await.status.success());
    assert_status(v6, 200).await;
    assert_status(v4, 200).await;
    reload(&stack, &tables(&[(any_v6, "")]));
    until_refused(v4).await;
    assert_status(v6, 200).await;
}

#[tokio::test]
async fn a_reload_opens_new_listeners_and_closes_removed_ones() {
    let (stack, _backend) = Stack::recording().await;
    let (first, second, third) = (stack.addresses().gateway, free_address(), free_address());
    let mut open = stack.raw().await;
    open.send(&request("GET", "/x", &[], b"")).await;
    assert_eq!(open.response().await.unwrap().status, 200);
    // By the plain key.
    let printed = reload(&stack, &format!("listen = '{second}'"));
    assert!(
        printed.contains(&format!("listen: \"{first}\" -> \"{second}\"")),
        "{printed}"
    );
    assert!(!printed.contains("upgrade"), "{printed}");
    assert_status(second, 200).await;
    until_refused(first).await;
    assert_is_ready(&stack).await;
    // A connection of the closed listener ends with its next response.
    open.send(&request("GET", "/x", &[], b"")).await;
    let response = open.response().await.expect("it is answered");
    assert_eq!(
        (response.status, response.header("connection")),
        (200, Some("close"))
    );
    assert!(open.is_closed().await);
    // By tables.
    reload(&stack, &tables(&[(third, ""), (second, "")]));
    assert_status(third, 200).await;
    assert_status(second, 200).await;
    let metrics = Scrape::of(stack.addresses().management).await;
    let accepted = |address: SocketAddr| {
        let address = address.to_string();
        metrics.value(
            "signpost_connections_accepted_total",
            &[("listener", &address)],
        )
    };
    assert_eq!(accepted(first), None);
    assert!(accepted(second) >= Some(2.0 * CONNECTIONS as f64));
    assert!(accepted(third) >= Some(CONNECTIONS as f64));
    // The first one is open again, at all addresses of the machine.
    let any = SocketAddr::from(([0, 0, 0, 0], second.port()));
    reload(&stack, &format!("listen = '{any}'"));
    // Until the socket of the one address is closed, it gets the connections, and its end may reset one.
    for address in [first, second, third] {
        let closed = format!("listener closed listen={address}");
        stack.log_with(Program::Gateway, &closed).await;
    }
    until_refused(third).await;
    assert_status(second, 200).await;
}

#[tokio::test]
async fn settings_follow_the_address_of_a_listener() {
    let (stack, _backend) = Stack::recording().await;
    let (plain, other) = (stack.addresses().gateway, free_address());
    let redirecting = (other, "redirect_to_https = true");
    let further = "public_url = 'https://api.example.com'\n";
    for order in [[(plain, ""), redirecting], [redirecting, (plain, "")]] {
        reload(&stack, &format!("{further}{}", tables(&order)));
        assert_status(plain, 200).await;
        assert_status(other, 308).await;
    }
    reload(&stack, &format!("{further}{}", tables(&[redirecting])));
    assert_status(other, 308).await;
    until_refused(plain).await;
}

#[tokio::test]
async fn a_reload_adds_https_and_the_redirect_to_it() {
    let authority = Authority::new("Test authority");
    let issued = authority.issue(&["api.example.com"]);
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .file("api.pem", &issued.certificate)
        .file("api.key", &issued.key)
        .in_front_of(&backend)
        .start()
        .await;
    let (plain, https) = (stack.addresses().gateway, free_address());
    let folder = stack.folder().display();
    let tls = format!(
        "tls.certificates = [{{ certificate = '{folder}/api.pem', key = '{folder}/api.key' }}]"
    );
    reload(
        &stack,
        &tables(&[(plain, "redirect_to_https = true"), (https, &tls)]),
    );
    let mut connection = RawConnection::open(plain).await;
    connection.send(&request("GET", "/x", &[], b"")).await;
    let response = connection.response().await.unwrap();
    let location = format!("https://gateway.example:{}/x", https.port());
    assert_eq!(
        (response.status, response.header("location")),
        (308, Some(&location[..]))
    );
    let stream = TcpStream::connect(https).await.unwrap();
    let client = authority.client(&["http/1.1"], None);
    let mut connection = RawConnection::begin_tls(stream, "api.example.com", client)
        .await
        .unwrap();
    connection.send(&request("GET", "/x", &[], b"")).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
}

#[tokio::test]
async fn an_http2_connection_of_a_closed_listener_ends_after_its_next_response() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .gateway("[[listen]]\naddress = '$LISTEN'\nprotocols = ['h2c']")
        .in_front_of(&backend)
        .start()
        .await;
    let mut connection = RawHttp2::open(stack.addresses().gateway).await;
    connection.send(&get(1, "/x")).await;
    assert_eq!(connection.reaction(1).await, Reaction::Response(200, None));
    reload(&stack, &format!("listen = '{}'", free_address()));
    connection.send(&get(3, "/x")).await;
    let mut has_goaway = false;
    let mut has_response = false;
    while let Some(frame) = connection.frame().await {
        has_goaway |= frame.kind == kind::GOAWAY;
        has_response |= frame.kind == kind::HEADERS && frame.stream == 3;
    }
    assert!(has_goaway && has_response);
}

#[tokio::test]
async fn an_address_that_cannot_be_opened_changes_nothing() {
    let (stack, _backend) = Stack::recording().await;
    let (first, new, address) = (stack.addresses().gateway, free_address(), free_address());
    let taken = TcpListener::bind(address).unwrap();
    let unsuitable: SocketAddr = "192.0.2.1:80".parse().unwrap();
    let own: SocketAddr = SocketAddr::from(([0, 0, 0, 0], first.port()));
    for (other, reason) in [
        (address, "Address already in use"),
        (unsuitable, "Cannot assign requested address"),
    ] {
        let listeners = tables(&[(first, ""), (new, ""), (other, "")]);
        stack.configure(
            Program::Gateway,
            &format!("{listeners}[limits]\nparams = 99\n"),
        );
        let output = stack.reload(Program::Gateway);
        let text = output_text(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        for expected in [
            &format!("cannot listen on {other} (listen[2].address)")[..],
            reason,
            "the old configuration stays",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
        assert_status(first, 200).await;
        assert!(TcpStream::connect(new).await.is_err());
        let output = stack.check(Program::Gateway, &["--diff"]);
        let text = output_text(&output);
        assert!(text.contains("limits.params: 256 -> 99"), "{text}");
    }
    // Its connections could be those of the first one.
    stack.configure(Program::Gateway, &tables(&[(first, ""), (own, "")]));
    let text = output_text(&stack.reload(Program::Gateway));
    let found = format!("listen[1]: found \"{own}\" beside \"{first}\"");
    assert!(text.contains(&found), "{text}");
    assert_status(first, 200).await;
    drop(taken);
    reload(&stack, &tables(&[(first, ""), (new, ""), (address, "")]));
    assert_status(new, 200).await;
    assert_status(address, 200).await;
}

/// Clients that send one request over each connection, and expect that each is served.
fn flood(address: SocketAddr) -> Load<()> {
    Load::start(|_, progress| async move {
        while progress.goes_on() {
            let mut connection = RawConnection::open(address).await;
            connection.send(&request("GET", "/x", &[], b"")).await;
            let response = connection.response().await.expect("it is answered");
            assert_eq!(response.status, 200);
            progress.served_one();
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_over_reloads_that_open_and_close_loses_no_connection() {
    let (stack, _backend) = Stack::recording().await;
    let (stays, changes) = (stack.addresses().gateway, free_address());
    let flood = flood(stays);
    for number in 0..20 {
        let listeners = [(changes, ""), (stays, "")];
        // The one that stays is the first or the second one.
        let listeners = &listeners[number % 2..];
        reload(&stack, &tables(listeners));
        flood.serve(20).await;
    }
    flood.stop().await;
}

#[tokio::test]
async fn reloads_with_many_listeners_leak_no_socket() {
    let (mut stack, _backend) = Stack::recording().await;
    let gateway = stack.addresses().gateway;
    let folder = format!("/proc/{}/fd", stack.running(Program::Gateway).id());
    let descriptors = || fs::read_dir(&folder).unwrap().count();
    let further: Vec<_> = (0..63).map(|_| (free_address(), "")).collect();
    let mut expected = None;
    for _ in 0..5 {
        reload(&stack, &tables(&[&[(gateway, "")], &further[..]].concat()));
        for (address, _) in &further {
            assert!(TcpStream::connect(address).await.is_ok(), "{address}");
        }
        reload(&stack, &tables(&[(gateway, "")]));
        until_refused(further[62].0).await;
        // The first turn opens what every later one finds open.
        let most = expected.unwrap_or(99);
        let open = until("the sockets to be closed", || async {
            Some(descriptors()).filter(|open| *open <= most)
        });
        expected.get_or_insert(open.await);
    }
}

//! What an upgrade changes and keeps: requests in flight, threads, listeners, and what the service manager learns.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    os::unix::net::UnixDatagram,
    time::Duration,
};

use end_to_end::{
    raw_connection::{RawConnection, request},
    recording_backend::{Behaviour, Delivery},
};
use tokio::net::TcpStream;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_in_flight_gets_its_response_from_the_old_process() {
    // The grace period is for stops only.
    let keys = "[shutdown]\ngrace_seconds = 1\n\
                [timeouts]\nhead_seconds = 120\nidle_seconds = 120\nresponse_seconds = 120";
    let (mut stack, backend) = plain(|builder| builder.gateway(keys)).await;
    let (mut slow, mut idle) = (stack.raw().await, stack.raw().await);
    let mut check = RawConnection::open(stack.addresses().management).await;
    // It was accepted before this one.
    assert_is_ready(&stack).await;
    idle.send(&request("GET", "/before", &[], b"")).await;
    assert_eq!(idle.response().await.unwrap().status, 200);
    // Later than the upgrade ends.
    let later = Delivery::After(Duration::from_secs(40));
    backend.behave(Behaviour::responding(later));
    slow.send(&request("GET", "/slow", &[], b"")).await;
    backend.request_number(2).await;
    backend.behave(Behaviour::default());
    let new = upgrade(&mut stack).await;
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/new", &[], b"")).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    assert_eq!(stack.gateway_processes().len(), 2, "the old one waits");
    assert!(slow.has_activity_within(3 * WAIT_TIMEOUT).await);
    let response = slow.response().await.expect("the old process answers");
    assert_eq!(response.status, 200);
    assert_eq!(response.header("connection"), Some("close"));
    // An idle connection stays open for as long as usual, since its client may send at any time.
    idle.send(&request("GET", "/after", &[], b"")).await;
    let response = idle.response().await.expect("the old process answers");
    assert_eq!(response.header("connection"), Some("close"));
    assert!(idle.is_closed().await);
    // The old process waits for what its management listener had accepted, too. It says what holds for the new one.
    assert_takes_commands(&stack);
    check
        .send(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let response = check.response().await.expect("the old process answers");
    assert_eq!(response.status, 200);
    until_alone(&stack, new).await;
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_the_old_process_accepted_is_served_after_a_late_handshake() {
    let mut stack =
        UpgradeStack::start("threads = 1\n[timeouts]\nhead_seconds = 60\nidle_seconds = 5\n").await;
    let late = TcpStream::connect(stack.tls.address).await.unwrap();
    let mut unused = stack.stack.raw().await;
    // They were accepted before this one was served.
    let mut idle = stack.stack.raw().await;
    idle.send(&request("GET", "/x", &[], b"")).await;
    assert_eq!(idle.response().await.unwrap().status, 200);
    let new = upgrade(&mut stack.stack).await;
    // The old process has closed its listeners, and no longer waits for first requests.
    assert!(idle.is_closed().await && unused.is_closed().await);
    let tls = stack.tls.authority.client(&["http/1.1"], None);
    let mut connection = RawConnection::begin_tls(late, load::NAME, tls)
        .await
        .unwrap();
    connection.send(&request("GET", "/x", &[], b"")).await;
    let response = connection.response().await.expect("it is answered");
    assert_eq!(response.status, 200);
    assert_eq!(response.header("connection"), Some("close"));
    until_alone(&stack.stack, new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_of_the_old_process_ends_by_its_own_timeout() {
    let timeout = "[timeouts]\nresponse_seconds = 3\n[shutdown]\ngrace_seconds = 1";
    let (mut stack, _backend, mut waiting) = with_waiting_request(timeout).await;
    let new = upgrade(&mut stack).await;
    let response = waiting.response().await.unwrap();
    assert_eq!(
        (response.status, response.code().as_deref()),
        (504, Some("backend_timeout"))
    );
    until_alone(&stack, new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_after_an_upgrade_ends_the_old_process_within_the_grace_period() {
    let (mut stack, _backend, mut waiting) =
        with_waiting_request("[shutdown]\ngrace_seconds = 8").await;
    let old = stack.running(Program::Gateway).id();
    let new = upgrade(&mut stack).await;
    // As a service manager does, to both.
    terminate(old);
    terminate(new);
    let response = waiting.response().await.unwrap();
    assert_eq!(
        (response.status, response.code().as_deref()),
        (504, Some("gateway_stopping"))
    );
    // Far within the default grace period of 65 s.
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
}

/// A gateway, and a request on a connection that its backend never answers.
async fn with_waiting_request(further: &str) -> (Stack, RecordingBackend, RawConnection) {
    let (stack, backend) = plain(|builder| builder.gateway(further)).await;
    backend.behave(Behaviour::responding(Delivery::Never));
    let mut connection = stack.raw().await;
    connection.send(&request("GET", "/never", &[], b"")).await;
    backend.request_number(1).await;
    (stack, backend, connection)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_and_listeners_change_by_an_upgrade() {
    let (mut stack, _backend) = plain(|builder| builder.gateway("threads = 1")).await;
    let (first, second) = (stack.addresses().gateway, free_address());
    let listen = |threads: usize, addresses: &[SocketAddr]| {
        let table = |address| format!("[[listen]]\naddress = '{address}'\n");
        let tables: String = addresses.iter().map(table).collect();
        format!("threads = {threads}\n{tables}")
    };
    stack.configure(Program::Gateway, &listen(3, &[first, second]));
    let new = upgrade(&mut stack).await;
    assert_serves(&[first, second]).await;
    until_alone(&stack, new).await;
    assert_serves(&[first, second]).await;
    // Each of the three sockets of a listener needs a thread that accepts.
    stack.configure(Program::Gateway, &listen(2, &[first]));
    let new = upgrade(&mut stack).await;
    assert_serves(&[first]).await;
    until_alone(&stack, new).await;
    assert_serves(&[first]).await;
    let refused = TcpStream::connect(second)
        .await
        .err()
        .map(|error| error.kind());
    assert_eq!(refused, Some(std::io::ErrorKind::ConnectionRefused));
    assert_is_ready(&stack).await;
    assert_takes_commands(&stack);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_a_reload_opened_is_handed_over() {
    let (mut stack, _backend) = plain(|builder| builder).await;
    let (first, second) = (stack.addresses().gateway, free_address());
    let tables = [first, second].map(|address| format!("[[listen]]\naddress = '{address}'\n"));
    stack.configure(Program::Gateway, &tables.concat());
    let output = stack.reload(Program::Gateway);
    assert!(output.status.success(), "{}", output_text(&output));
    let sockets = [first, second].map(listening_sockets);
    assert!(sockets.iter().all(|sockets| !sockets.is_empty()));
    let new = upgrade(&mut stack).await;
    until_alone(&stack, new).await;
    // The same sockets of the system, now in the new process.
    assert_eq!([first, second].map(listening_sockets), sockets);
    assert_serves(&[first, second]).await;
}

/// The inodes of the sockets that listen at an IPv4 address, `proc_net_tcp(5)`.
fn listening_sockets(address: SocketAddr) -> BTreeSet<String> {
    let IpAddr::V4(ip) = address.ip() else {
        panic!("not IPv4");
    };
    let local = format!(
        "{:08X}:{:04X}",
        u32::from_ne_bytes(ip.octets()),
        address.port()
    );
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let lines = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines
        .filter(|columns| columns[1] == local && columns[3] == "0A")
        .map(|columns| columns[9].to_owned())
        .collect()
}

/// Sends a request over each of many connections: the kernel spreads them over all sockets.
async fn assert_serves(addresses: &[SocketAddr]) {
    for address in addresses {
        for number in 0..40 {
            let mut connection = RawConnection::open(*address).await;
            connection.send(&request("GET", "/x", &[], b"")).await;
            let response = connection.response().await;
            let response =
                response.unwrap_or_else(|| panic!("{address}: {number} has no response"));
            assert_eq!(response.status, 200);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_manager_learns_each_step() {
    let (mut stack, _backend) = plain(|builder| builder).await;
    let path = stack.folder().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut command = Program::Gateway.command(stack.folder());
    command.env("NOTIFY_SOCKET", &path);
    stack.restart_as(Program::Gateway, command).await;
    assert_eq!(next_message(&socket).await, "READY=1");
    let new = upgrade(&mut stack).await;
    // The new process and the old one send one message each, in any order.
    let mut messages = [next_message(&socket).await, next_message(&socket).await];
    messages.sort();
    assert_eq!(messages, [format!("MAINPID={new}"), "READY=1".to_owned()]);
    until_alone(&stack, new).await;
    // The service itself does not stop when the old process does.
    terminate(new);
    assert_eq!(next_message(&socket).await, "STOPPING=1");
    until("the new process to end", || async {
        stack.gateway_processes().is_empty().then_some(())
    })
    .await;
}

async fn next_message(socket: &UnixDatagram) -> String {
    until("a message to the service manager", || async {
        let mut buffer = [0; 1024];
        let length = socket.recv(&mut buffer).ok()?;
        let message = String::from_utf8_lossy(&buffer[..length]);
        Some(message.trim_end().to_owned())
    })
    .await
}

fn terminate(id: u32) {
    let status = std::process::Command::new("kill")
        .arg(id.to_string())
        .status();
    assert!(status.unwrap().success());
}

//! Idle connections to a backend are reused, for any number of threads and clients, until they have been idle for too long.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use end_to_end::{
    program::Program,
    raw_connection::request,
    recording_backend::{Reading, RecordingBackend, read_request},
    stack::Stack,
    waiting::until,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

const REQUESTS: usize = 2000;

/// A client connection needs one backend connection at a time: if more are opened, an idle one was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_healthy_idle_connection_is_lost() {
    for clients in [1, 4, 16] {
        let backend = RecordingBackend::start().await;
        let stack = Stack::builder().in_front_of(&backend);
        let stack = stack.gateway("threads = 2").start().await;
        let mut serving = JoinSet::new();
        for _ in 0..clients {
            let mut connection = stack.raw().await;
            serving.spawn(async move {
                for _ in 0..REQUESTS / clients {
                    connection.send(&request("GET", "/x", &[], b"")).await;
                    assert_eq!(connection.response().await.unwrap().status, 200);
                }
            });
        }
        serving.join_all().await;
        assert_eq!(backend.requests().len(), REQUESTS);
        let opened = backend.connections();
        assert!(
            opened <= clients,
            "{opened} connections for {clients} clients"
        );
        let log = stack.log(Program::Gateway);
        assert!(!log.contains("ERROR"), "{log}");
    }
}

/// A backend that closes a connection which was idle for this long at the moment when the next request arrives on it: the
/// race that a backend with such an idle timeout sometimes runs.
const IDLE: Duration = Duration::from_secs(8);

/// Starts that backend. `idle_since` is when it sent its last response.
async fn closing_backend(idle_since: Arc<Mutex<Option<Instant>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_until_idle(stream, Arc::clone(&idle_since)));
        }
    });
    address
}

async fn serve_until_idle(mut stream: TcpStream, idle_since: Arc<Mutex<Option<Instant>>>) {
    let (mut bytes, mut last) = (Vec::new(), None::<Instant>);
    while let Ok(1..) = stream.read_buf(&mut bytes).await {
        if last.is_some_and(|last| last.elapsed() >= IDLE) {
            return;
        }
        if let Reading::Whole(_) = read_request(&bytes) {
            bytes.clear();
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(response).await.unwrap();
            last = Some(Instant::now());
            *idle_since.lock().unwrap() = last;
        }
    }
}

#[tokio::test]
async fn a_connection_that_was_idle_for_too_long_is_not_used_for_a_post() {
    let idle_since = Arc::default();
    let backend = closing_backend(Arc::clone(&idle_since)).await;
    let stack = Stack::builder().in_front_of_address(backend);
    let stack = stack.gateway("threads = 1").start().await;
    let client = stack.client();
    for (toml, status) in [("", 502), ("[versions.v1]\nidle_seconds = 1", 200)] {
        stack.configure(Program::Gateway, &format!("threads = 1\n{toml}"));
        assert!(stack.reload(Program::Gateway).status.success());
        assert_eq!(client.get("/x").send().await.status, 200);
        until("the connection to be idle", || async {
            let since = *idle_since.lock().unwrap();
            (since?.elapsed() >= IDLE).then_some(())
        })
        .await;
        let response = client.post("/x").signed().send().await;
        assert_eq!(response.status, status, "{toml}: {}", response.text());
    }
}

//! Idle connections to a backend are reused, for any number of threads and clients.

use end_to_end::{
    program::Program, raw_connection::request, recording_backend::RecordingBackend, stack::Stack,
};
use tokio::task::JoinSet;

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

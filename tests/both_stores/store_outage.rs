//! A gateway during an outage of its Postgres: how long it serves what is cached, what `/readyz` says, and its start with
//! the snapshot of the applications.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc, time::Duration};

use end_to_end::{
    postgres::PostgresServer,
    program::Program,
    recording_backend::RecordingBackend,
    signed_client::{SignedClient, fetch},
    stack::{Application, Stack},
    store::StoreKind,
    waiting::{WAIT_TIMEOUT, until, within},
};
use tokio::task::spawn_blocking;

const WHY: &str = "the test stops a server of its own, whichever store the run uses";

/// A gateway before a recording backend, on a server of its own.
struct Scene {
    stack: Stack,
    server: Arc<PostgresServer>,
    _backend: RecordingBackend,
}

impl Scene {
    async fn start(gateway: &str) -> Self {
        let server = Arc::new(PostgresServer::start());
        let backend = RecordingBackend::start().await;
        let stack = Stack::builder()
            .multi()
            .gateway(gateway)
            .on_server(&server)
            .in_front_of(&backend)
            .start()
            .await;
        Self {
            stack,
            server,
            _backend: backend,
        }
    }

    async fn on_server(&self, work: fn(&PostgresServer)) {
        let server = Arc::clone(&self.server);
        spawn_blocking(move || work(&server)).await.unwrap();
    }

    /// Stops the server, and waits until the gateway has noticed it.
    async fn stop_server(&self) {
        self.on_server(PostgresServer::stop).await;
        self.stack
            .log_with(Program::Gateway, "change feed is lost")
            .await;
    }

    async fn ready(&self) -> (u16, String) {
        let url = format!("http://{}/readyz", self.stack.addresses().management);
        let response = fetch(&url).await;
        (response.status.as_u16(), response.text())
    }

    /// Waits until the cache has this many applications.
    async fn cached(&self, count: usize) {
        let url = format!("http://{}/metrics", self.stack.addresses().management);
        let line = format!("signpost_cache_entries{{cache=\"applications\"}} {count}\n");
        until(&line, || async {
            fetch(&url).await.text().contains(&line).then_some(())
        })
        .await;
    }

    fn snapshot(&self) -> PathBuf {
        self.stack.folder().join("applications.snapshot")
    }

    /// Waits until the snapshot has this text. If it was written just before the change, the next writing is 30 s later.
    async fn snapshot_with(&self, text: &str) -> String {
        let timeout = Duration::from_secs(30) + WAIT_TIMEOUT;
        let written = within(timeout, || async {
            let snapshot = fs::read_to_string(self.snapshot()).ok()?;
            snapshot.contains(text).then_some(snapshot)
        });
        let written = written.await;
        written.unwrap_or_else(|| panic!("no {text} in the snapshot within {timeout:?}"))
    }

    /// The gateway's log, after it could not start.
    async fn failed_start(&mut self) -> String {
        self.stack.restart_without_waiting(Program::Gateway);
        let status = self.stack.wait_for_exit(Program::Gateway).await;
        assert!(!status.success());
        self.stack.log(Program::Gateway)
    }
}

async fn status(client: &SignedClient) -> u16 {
    let response = client.get("/x").signed().send().await;
    response.status.as_u16()
}

fn unknown(stack: &Stack) -> SignedClient {
    stack.client_of(&Application {
        ident: "unknown".to_owned(),
        key: "ab".repeat(32),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_that_never_called_is_served_through_an_outage_shorter_than_stale_seconds() {
    if !StoreKind::Postgres.is_chosen(WHY) {
        return;
    }
    let scene = Scene::start("stale_seconds = 3600").await;
    let clients: Vec<_> = ["one", "two", "three"]
        .map(|name| scene.stack.create_application(name, &[]))
        .iter()
        .map(|application| scene.stack.client_of(application))
        .collect();
    scene.cached(3).await;
    scene.stop_server().await;
    for client in &clients {
        client.get("/x").signed().send().await.ok();
    }
    let strange = unknown(&scene.stack).get("/x").signed().send().await;
    strange.problem(503, "store_unavailable");
    let (status, text) = scene.ready().await;
    assert_eq!(status, 200, "{text}");
    let parts = [
        "ready, but the store does not answer: ",
        "; cached applications are served until 20",
    ];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    scene.on_server(PostgresServer::start_again).await;
    until("the store to answer", || async {
        (scene.ready().await == (200, "ready\n".to_owned())).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_stale_seconds_nothing_is_served_and_readyz_says_so() {
    if !StoreKind::Postgres.is_chosen(WHY) {
        return;
    }
    let scene = Scene::start("stale_seconds = 3600").await;
    let client = scene
        .stack
        .client_of(&scene.stack.create_application("one", &[]));
    scene.cached(1).await;
    scene.stop_server().await;
    client.get("/x").signed().send().await.ok();
    // A reload during the outage shortens it.
    scene.stack.configure(Program::Gateway, "stale_seconds = 1");
    assert!(scene.stack.reload(Program::Gateway).status.success());
    until("the cache to be too old", || async {
        (status(&client).await == 503).then_some(())
    })
    .await;
    let response = client.get("/x").signed().send().await;
    response.problem(503, "store_unavailable");
    let (status, text) = scene.ready().await;
    assert_eq!(status, 503);
    assert!(text.contains("no cached application may be used"), "{text}");
    scene.on_server(PostgresServer::start_again).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_starts_without_its_store_by_the_snapshot() {
    if !StoreKind::Postgres.is_chosen(WHY) {
        return;
    }
    let snapshot = "[applications]\nsnapshot = \"applications.snapshot\"";
    let mut scene = Scene::start(snapshot).await;
    let active = scene.stack.create_application("active", &[]);
    let disabled = scene.stack.create_application("disabled", &[]);
    let command = ["app", "disable", &disabled.ident];
    assert!(scene.stack.command(&command).status.success());
    // All is in the snapshot that the next start writes.
    scene.stack.restart(Program::Gateway).await;
    let text = scene.snapshot_with("\"state\":\"disabled\"").await;
    assert!(text.contains(&active.ident));
    for secret in [&active.key, &disabled.key] {
        assert!(!text.contains(&**secret) && !text.contains(&hex::encode(secret)));
    }
    let mode = fs::metadata(scene.snapshot()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    scene.stop_server().await;
    scene.stack.restart(Program::Gateway).await;
    let served = "are those of the snapshot of 20";
    scene.stack.log_with(Program::Gateway, served).await;
    let (status, text) = scene.ready().await;
    assert!(status == 200 && text.contains("served until 20"), "{text}");
    let (active, disabled) = (
        scene.stack.client_of(&active),
        scene.stack.client_of(&disabled),
    );
    active.get("/x").signed().send().await.ok();
    let wrong = active.get("/x").sign_given("0").send().await;
    wrong.problem(403, "sign_mismatch");
    let response = disabled.get("/x").signed().send().await;
    response.problem(403, "app_disabled");
    let response = unknown(&scene.stack).get("/x").signed().send().await;
    response.problem(503, "store_unavailable");
    // The store is back: everything is as after an ordinary start.
    scene.on_server(PostgresServer::start_again).await;
    until("the store to answer", || async {
        (scene.ready().await == (200, "ready\n".to_owned())).then_some(())
    })
    .await;
    let new = scene.stack.create_application("new", &[]);
    scene
        .stack
        .client_of(&new)
        .get("/x")
        .signed()
        .send()
        .await
        .ok();
    active.get("/x").signed().send().await.ok();
    scene.snapshot_with(&new.ident).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_was_changed_or_is_too_old_starts_no_gateway() {
    if !StoreKind::Postgres.is_chosen(WHY) {
        return;
    }
    let snapshot = "[applications]\nsnapshot = \"applications.snapshot\"";
    let mut scene = Scene::start(snapshot).await;
    let application = scene.stack.create_application("one", &[]);
    scene.stack.restart(Program::Gateway).await;
    let whole = scene.snapshot_with(&application.ident).await;
    scene.stop_server().await;
    scene.stack.kill(Program::Gateway);
    let enabled = whole.replace("\"active\"", "\"actives\"");
    fs::write(scene.snapshot(), enabled).unwrap();
    let log = scene.failed_start().await;
    assert!(
        log.contains("the snapshot cannot be used: it was changed"),
        "{log}"
    );
    fs::write(scene.snapshot(), whole).unwrap();
    scene.stack.configure(Program::Gateway, "stale_seconds = 0");
    let log = scene.failed_start().await;
    assert!(log.contains("longer than stale_seconds ago"), "{log}");
    fs::remove_file(scene.snapshot()).unwrap();
    let log = scene.failed_start().await;
    assert!(log.contains("it cannot be read"), "{log}");
    assert!(log.contains("cannot open the database"), "{log}");
    scene.on_server(PostgresServer::start_again).await;
}

/// Issue 44, row 39. While it runs, the gateway writes the snapshot every 30 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_writes_the_snapshot() {
    if !StoreKind::Postgres.is_chosen(WHY) {
        return;
    }
    let snapshot = "[applications]\nsnapshot = \"applications.snapshot\"";
    let mut scene = Scene::start(snapshot).await;
    let first = scene.stack.create_application("first", &[]);
    // The start writes it at once: the next time is 30 s later.
    scene.stack.restart(Program::Gateway).await;
    scene.snapshot_with(&first.ident).await;
    let late = scene.stack.create_application("late", &[]);
    scene.stack.running(Program::Gateway).terminate();
    let status = scene.stack.wait_for_exit(Program::Gateway).await;
    assert!(status.success());
    let written = fs::read_to_string(scene.snapshot()).unwrap();
    assert!(written.contains(&late.ident), "{written}");
}

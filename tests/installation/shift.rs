//! `signpost versions shift` moves a version to another address, under load and without a failed request.

use std::{
    fs::{self, Permissions},
    net::SocketAddr,
    os::unix::fs::{PermissionsExt, symlink},
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use end_to_end::{
    port::free_address,
    program::{Program, output_text, signal},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    stack::Stack,
    waiting::until,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::{JoinSet, spawn_blocking},
};

/// A gateway in front of `backend`, with a file as operators write it.
async fn commented(backend: SocketAddr, health: &str) -> Stack {
    let stack = Stack::builder().in_front_of_address(backend);
    let stack = stack.gateway("[timeouts]\nbody_seconds = 1").start().await;
    let file = stack.config(Program::Gateway);
    let text = fs::read_to_string(&file).unwrap();
    let line = format!("backend = \"{backend}\"");
    // The other version has an address of its own.
    let (v1, after) = text.rsplit_once(&line).unwrap();
    let text = format!("{v1}backend = \"{}\"{after}", free_address());
    assert!(text.contains(&line), "{text}");
    let commented = format!("# Where v1 runs.\n{line} # machine a");
    fs::write(&file, text.replacen(&line, &commented, 1) + health).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    assert!(stack.reload(Program::Gateway).status.success());
    stack
}

const HEALTH: &str =
    "[versions.v1.health]\nactive = true\ninterval_seconds = 1 # often\ntimeout_seconds = 5\n";

/// The command that moves a version.
fn shifting(stack: &Stack, further: &[&str]) -> Command {
    let mut command = Program::Gateway.command(stack.folder());
    command.args(["versions", "shift"]).args(further);
    command.arg("--config").arg(stack.config(Program::Gateway));
    command
}

/// Runs it while this runtime serves, as long as it takes.
async fn shift(stack: &Stack, further: &[&str]) -> Output {
    let mut command = shifting(stack, further);
    let run = spawn_blocking(move || command.output());
    run.await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_moves_under_load_without_a_failed_request() {
    let (old, new) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let stack = commented(old.address(), "").await;
    let file = stack.config(Program::Gateway);
    let before = fs::read_to_string(&file).unwrap();
    // A link to the file stays one.
    let target = file.with_extension("real");
    fs::rename(&file, &target).unwrap();
    symlink(&target, &file).unwrap();
    let is_stopping = Arc::new(AtomicBool::new(false));
    let served = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        let (client, served) = (stack.client(), Arc::clone(&served));
        let is_stopping = Arc::clone(&is_stopping);
        clients.spawn(async move {
            while !is_stopping.load(Ordering::Relaxed) {
                client.post("/x").signed().send().await.ok();
                served.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    // A request that takes longer than the move.
    let (slow, begun) = (stack.client(), Instant::now());
    old.behave(Behaviour {
        delivery: Delivery::After(Duration::from_secs(6)),
        ..Behaviour::default()
    });
    let slow = tokio::spawn(async move { slow.get("/slow").send().await.ok() });
    until("the slow request", || async {
        let requests = old.requests();
        requests
            .iter()
            .any(|one| one.target == "/slow")
            .then_some(())
    })
    .await;
    old.behave(Behaviour::default());
    let output = shift(&stack, &["v1", &new.address().to_string()]).await;
    let text = output_text(&output);
    assert!(output.status.success(), "{text}");
    assert!(begun.elapsed() >= Duration::from_secs(6), "{text}");
    let (from, to) = (old.address(), new.address());
    let steps = [
        format!("v1: {to} is up"),
        format!("v1: added {to} beside {from}, reloaded"),
        format!("v1: {to} is healthy"),
        format!("v1: removed {from}, reloaded"),
        format!(
            "v1: requests whose form is still read may go to {from}: waiting 3 s (body_seconds and 2 s)"
        ),
        format!(
            "v1: {from} has no request of this gateway in flight: its process can be stopped; with several gateways, run \
             this at each first"
        ),
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), steps);
    // The old process gets nothing more.
    let (of_old, goal) = (old.requests().len(), served.load(Ordering::Relaxed) + 50);
    until("requests to be served", || async {
        (served.load(Ordering::Relaxed) >= goal).then_some(())
    })
    .await;
    assert_eq!(old.requests().len(), of_old);
    is_stopping.store(true, Ordering::Relaxed);
    clients.join_all().await;
    slow.await.unwrap();
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(
        after,
        before.replacen(&from.to_string(), &to.to_string(), 1)
    );
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    let mode = fs::metadata(&target).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A second time there is nothing to move.
    let output = shift(&stack, &["v1", &to.to_string()]).await;
    assert!(
        output_text(&output).contains("has the address"),
        "{output:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_never_healthy_changes_nothing() {
    let (old, sick) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let unhealthy = Behaviour {
        head: "HTTP/1.1 503 Service Unavailable\r\n".to_owned(),
        ..Behaviour::default()
    };
    sick.behave_when_checked(unhealthy);
    let stack = commented(old.address(), HEALTH).await;
    let file = stack.config(Program::Gateway);
    let before = fs::read_to_string(&file).unwrap();
    for new in [sick.address(), free_address()] {
        let text = refused(&stack, &["v1", &new.to_string(), "--timeout", "2"]).await;
        assert!(text.contains("not moved: nothing was changed"), "{text}");
        assert!(
            text.contains("does not answer its health check within 2 s"),
            "{text}"
        );
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert!(sick.requests().is_empty());
    stack.client().get("/x").send().await.ok();
}

/// What the command prints that cannot move a version.
async fn refused(stack: &Stack, arguments: &[&str]) -> String {
    failure(&shift(stack, arguments).await)
}

fn failure(output: &Output) -> String {
    let text = output_text(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    text
}

/// The address of a backend that passes the command's check, which is the first, and no later one.
async fn sick_after_one_check() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut status = "200 OK";
        while let Ok((mut stream, _)) = listener.accept().await {
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
            status = "503 Service Unavailable";
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(response.as_bytes()).await;
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_in_the_middle_is_undone() {
    let (old, new) = tokio::join!(RecordingBackend::start(), sick_after_one_check());
    let stack = commented(old.address(), HEALTH).await;
    let file = stack.config(Program::Gateway);
    let before = fs::read_to_string(&file).unwrap();
    let text = refused(&stack, &["v1", &new.to_string(), "--timeout", "10"]).await;
    assert!(text.contains("is restored and reloaded"), "{text}");
    assert!(
        text.contains("is not healthy for the gateway within 10 s"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    let listed = output_text(&stack.command(&["versions", "list"]));
    assert!(!listed.contains(&new.to_string()), "{listed}");
    assert!(!listed.contains("another configuration"), "{listed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_moved_is_refused() {
    let (old, new) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let mut stack = commented(old.address(), HEALTH).await;
    let new = new.address().to_string();
    let refused = async |stack: &Stack, version: &str, address: &str, expected: &str| {
        let before = fs::read_to_string(stack.config(Program::Gateway)).unwrap();
        let text = refused(stack, &[version, address]).await;
        assert!(text.contains(expected), "{expected}: {text}");
        let after = fs::read_to_string(stack.config(Program::Gateway)).unwrap();
        assert_eq!(after, before);
    };
    refused(&stack, "v9", &new, "there is no version v9; ").await;
    refused(
        &stack,
        "v1",
        "login:7001",
        "is not an IP address and a port",
    )
    .await;
    let secured = format!("https://{new}");
    refused(&stack, "v1", &secured, "the file would be invalid").await;
    // An edit by another program.
    let file = stack.config(Program::Gateway);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("interval_seconds = 1", "interval_seconds = 2"),
    )
    .unwrap();
    refused(&stack, "v1", &new, "signpost check --diff").await;
    fs::write(&file, text).unwrap();
    stack.kill(Program::Gateway);
    refused(&stack, "v1", &new, "no gateway runs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_another_backend_has_is_not_said_to_be_free() {
    let (one, two, three) = tokio::join!(
        RecordingBackend::start(),
        RecordingBackend::start(),
        RecordingBackend::start()
    );
    let [one, two, three] = [one.address(), two.address(), three.address()];
    let canary =
        format!("[[versions.v1.canaries]]\nname = 'next'\npercent = 5\nbackend = '{one}'\n");
    let stack = commented(one, &canary).await;
    let output = shift(&stack, &["v1", &two.to_string()]).await;
    let text = output_text(&output);
    assert!(output.status.success(), "{text}");
    let expected = format!("v1: {one} is still used by v1 (canary next): do not stop its process");
    assert_eq!(text.lines().last(), Some(expected.as_str()), "{text}");
    // Nothing else has the next one: it is free, but not before each form has been read.
    let begun = Instant::now();
    let output = shift(&stack, &["v1", &three.to_string()]).await;
    let text = output_text(&output);
    assert!(begun.elapsed() >= Duration::from_secs(3), "{text}");
    assert!(
        text.contains(&format!("{two} has no request of this gateway in flight")),
        "{text}"
    );
}

/// Begins a move that waits for a sick address, and returns once the file is changed.
async fn begin(stack: &Stack) -> Child {
    let file = stack.config(Program::Gateway);
    let before = fs::read_to_string(&file).unwrap();
    let new = sick_after_one_check().await.to_string();
    let mut command = shifting(stack, &["v1", &new]);
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    let moving = command.spawn().unwrap();
    until("the file to be changed", || async {
        (fs::read_to_string(&file).unwrap() != before).then_some(())
    })
    .await;
    moving
}

/// What a move that failed has printed.
async fn failed(moving: Child) -> String {
    let output = spawn_blocking(|| moving.wait_with_output());
    failure(&output.await.unwrap().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_move_is_undone() {
    let old = RecordingBackend::start().await;
    let mut stack = commented(old.address(), HEALTH).await;
    let file = stack.config(Program::Gateway);
    let before = fs::read_to_string(&file).unwrap();
    for name in ["INT", "TERM", "HUP"] {
        let moving = begin(&stack).await;
        signal(moving.id(), name);
        let text = failed(moving).await;
        assert!(
            text.contains("is restored and reloaded") && text.contains("interrupted"),
            "{text}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
        let listed = output_text(&stack.command(&["versions", "list"]));
        assert!(!listed.contains("another configuration"), "{listed}");
    }
    // The file is restored also if no gateway can reload it.
    let moving = begin(&stack).await;
    stack.kill(Program::Gateway);
    let text = failed(moving).await;
    let path = file.display();
    assert!(
        text.contains(&format!("{path} is restored, but not reloaded: ")),
        "{text}"
    );
    assert!(
        text.contains(&format!("; run signpost reload --config {path}")),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

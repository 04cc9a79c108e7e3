//! Replacing the gateway's process without loss. #13

mod failures;
mod load;
mod parts;

use std::process::Output;

use end_to_end::{
    certificates::Authority,
    port::free_address,
    program::{Program, output_text},
    recording_backend::RecordingBackend,
    signed_client::fetch,
    stack::{Stack, StackBuilder},
    waiting::{WAIT_TIMEOUT, until},
};

use self::load::{Load, TlsTarget};

/// A gateway with a plain and a TLS listener for all protocols, in front of a recording backend.
struct UpgradeStack {
    stack: Stack,
    backend: RecordingBackend,
    tls: TlsTarget,
}

impl UpgradeStack {
    async fn start(further: &str) -> Self {
        let authority = Authority::new("Test authority");
        let issued = authority.issue(&[load::NAME]);
        let backend = RecordingBackend::start().await;
        let address = free_address();
        let listen = format!(
            "[[listen]]\naddress = '$LISTEN'\nprotocols = ['http/1.1', 'h2c']\n\
             [[listen]]\naddress = '{address}'\nprotocols = ['http/1.1', 'h2']\n\
             tls.certificates = [{{ certificate = '$FOLDER/api.pem', key = '$FOLDER/api.key' }}]\n"
        );
        let stack = Stack::builder()
            .file("api.pem", &issued.certificate)
            .file("api.key", &issued.key)
            .gateway(&listen)
            .gateway(further)
            .in_front_of(&backend)
            .start()
            .await;
        Self {
            stack,
            backend,
            tls: TlsTarget { address, authority },
        }
    }

    fn load(&self) -> Load {
        Load::start(&self.stack, &self.tls)
    }
}

/// A gateway with one plain listener, in front of a recording backend.
async fn plain(change: impl FnOnce(StackBuilder) -> StackBuilder) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = change(Stack::builder().in_front_of(&backend)).start().await;
    (stack, backend)
}

/// Upgrades, and returns the new process' id.
async fn upgrade(stack: &mut Stack) -> u32 {
    let old = stack.gateway_processes();
    let output = stack.upgrade().await;
    let new = new_process(&output);
    assert!(!old.contains(&new), "{old:?}: {}", output_text(&output));
    assert!(stack.gateway_processes().contains(&new), "it serves");
    new
}

/// The id that the command has printed.
fn new_process(output: &Output) -> u32 {
    let serves = format!(" serves, signpost {}; process ", Program::Gateway.release());
    let text = output_text(output);
    assert!(output.status.success(), "{text}");
    let id = text
        .strip_prefix("process ")
        .and_then(|rest| rest.split_once(&serves));
    let (id, rest) = id.unwrap_or_else(|| panic!("unexpected: {text}"));
    assert!(rest.contains("finishes its requests"), "{text}");
    id.parse().unwrap()
}

/// Waits until this process is the only one.
async fn until_alone(stack: &Stack, id: u32) {
    until(&format!("process {id} to be the only one"), || async {
        (stack.gateway_processes() == [id]).then_some(())
    })
    .await;
}

/// Expects the commands to reach the running process.
fn assert_takes_commands(stack: &Stack) {
    let reload = stack.reload(Program::Gateway);
    let text = output_text(&reload);
    assert!(
        reload.status.success() && text.contains("reloaded"),
        "{text}"
    );
    let health = stack.command(&["health"]);
    assert!(health.status.success(), "{}", output_text(&health));
}

async fn assert_is_ready(stack: &Stack) {
    let ready = fetch(&format!("http://{}/readyz", stack.addresses().management)).await;
    assert_eq!(ready.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_upgrades_under_load_fail_no_request() {
    let mut stack = UpgradeStack::start("threads = 2\n").await;
    let load = stack.load();
    load.serve(10).await;
    let mut old = stack.stack.running(Program::Gateway).id();
    for number in 1..=3 {
        let new = upgrade(&mut stack.stack).await;
        assert_takes_commands(&stack.stack);
        load.serve(10).await;
        until_alone(&stack.stack, new).await;
        assert_ne!(old, new);
        old = new;
        if number == 1 {
            let status = stack.stack.wait_for_exit(Program::Gateway).await;
            assert!(status.success(), "{status}");
        }
        load.serve(10).await;
    }
    load.stop().await;
    let log = stack.stack.log(Program::Gateway);
    assert!(!log.contains("aborted"), "{log}");
    // Nothing but requests reached the backend.
    assert!(!stack.backend.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_fails_no_request_of_clients_that_follow_readyz() {
    let mut stack = UpgradeStack::start("[shutdown]\ndrain_delay_seconds = 20\n").await;
    let load = stack.load();
    load.serve(10).await;
    load.expect_stop();
    stack.stack.running(Program::Gateway).terminate();
    // Their last responses close their connections.
    load.finish().await;
    let status = stack.stack.wait_for_exit(Program::Gateway).await;
    assert!(status.success(), "{status}");
    let log = stack.stack.log(Program::Gateway);
    assert!(!log.contains("aborted"), "{log}");
}

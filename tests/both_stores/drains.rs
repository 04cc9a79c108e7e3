//! Addresses that an operator takes out, at several gateways of one store.

use std::time::{Duration, Instant};

use end_to_end::{
    program::{Program, output_text},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    stack::{Application, Stack},
    waiting::{PROPAGATION_TIMEOUT, until, within},
};
use serde_json::{Value, json};

/// Two gateways in front of v3, which has two addresses.
struct Two {
    stack: Stack,
    app: Application,
    backends: [RecordingBackend; 2],
}

impl Two {
    async fn start() -> Self {
        let backends = [
            RecordingBackend::start().await,
            RecordingBackend::start().await,
        ];
        let [one, two] = [0, 1].map(|index: usize| backends[index].address());
        let v3 = format!("[versions.v3]\nbackends = [\"{one}\", \"{two}\"]\n[management.api]\n");
        let stack = Stack::builder().in_front_of(&backends[0]);
        let stack = stack.several(Program::Gateway, 2).multi().gateway(&v3);
        let stack = stack.start().await;
        let app = stack.create_application("one", &[]);
        Self {
            stack,
            app,
            backends,
        }
    }

    fn address(&self, index: usize) -> String {
        self.backends[index].address().to_string()
    }

    async fn status(&self, gateway: usize) -> u16 {
        let client = self.stack.client_of_at(&self.app, gateway);
        client
            .get("/x")
            .version("v3")
            .signed()
            .send()
            .await
            .status
            .as_u16()
    }

    /// How many of four requests at a gateway each backend gets.
    async fn shares(&self, gateway: usize) -> [usize; 2] {
        let before = self.requests();
        for _ in 0..4 {
            assert_eq!(self.status(gateway).await, 200);
        }
        let after = self.requests();
        [after[0] - before[0], after[1] - before[1]]
    }

    fn requests(&self) -> [usize; 2] {
        [0, 1].map(|index: usize| self.backends[index].requests().len())
    }

    /// Runs the command, then waits until the shares are these at both gateways.
    async fn changed(&self, arguments: &[&str], expected: [usize; 2]) {
        let output = self.stack.command(arguments);
        assert!(output.status.success(), "{}", output_text(&output));
        self.expect(expected).await;
    }

    /// Waits until the shares are these at both gateways.
    async fn expect(&self, expected: [usize; 2]) {
        let changed_at = Instant::now();
        for gateway in [0, 1] {
            let left = PROPAGATION_TIMEOUT.saturating_sub(changed_at.elapsed());
            let seen = within(left, || async {
                (self.shares(gateway).await == expected).then_some(())
            });
            assert!(seen.await.is_some(), "{expected:?} at gateway {gateway}");
        }
    }

    /// Calls the management API of a gateway.
    async fn api(&self, gateway: usize, path: &str, token: &str, body: Option<Value>) -> Value {
        let response = self.stack.call_api(gateway, path, token, body).await;
        response.json().await.unwrap()
    }

    fn health(&self) -> Vec<String> {
        let listed = self.stack.command(&["versions", "list", "--json"]);
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        let addresses = &listed["versions"][2]["backends"][0]["addresses"];
        let addresses = addresses.as_array().unwrap().iter();
        let health = addresses.map(|one| one["health"].as_str().unwrap().to_owned());
        health.collect()
    }
}

#[tokio::test]
async fn a_drained_address_gets_no_new_requests_at_any_gateway() {
    let mut two = Two::start().await;
    let [one, other] = [0, 1].map(|index| two.address(index));
    let (one, other) = (&*one, &*other);
    assert_eq!([two.shares(0).await, two.shares(1).await], [[2, 2]; 2]);
    // A request in flight to the address finishes.
    let slow = Behaviour::responding(Delivery::After(Duration::from_secs(2)));
    two.backends[0].behave(slow);
    let before = two.requests()[0];
    let in_flight = async {
        let (first, second) = tokio::join!(two.status(0), two.status(0));
        assert_eq!([first, second], [200; 2]);
    };
    let drain = async {
        until("a request in flight", || async {
            (two.requests()[0] > before).then_some(())
        })
        .await;
        let drain = ["versions", "drain", "v3", one, "--for", "10m"];
        two.changed(&drain, [0, 4]).await;
        two.backends[0].behave(Behaviour::default());
    };
    tokio::join!(in_flight, drain);
    let health = two.health();
    assert!(
        health.contains(&"drained".to_owned()) && health.len() == 2,
        "{health:?}"
    );
    // The other one stays, unless the operator insists.
    let refused = two
        .stack
        .command(&["versions", "drain", "v3", other, "--for", "1h"]);
    assert!(
        !refused.status.success() && output_text(&refused).contains("no other address"),
        "{}",
        output_text(&refused)
    );
    // Neither a reload nor a new process sends it a request.
    two.stack
        .configure(Program::Gateway.number(0), "[limits]\nbody_bytes = 60000");
    let reloaded = two.stack.reload(Program::Gateway.number(0));
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    two.stack.restart(Program::Gateway.number(1)).await;
    assert_eq!([two.shares(0).await, two.shares(1).await], [[0, 4]; 2]);
    let undrain = ["versions", "undrain", "v3", one];
    two.changed(&undrain, [2, 2]).await;
    let again = two.stack.command(&undrain);
    assert!(
        output_text(&again).contains("not drained"),
        "{}",
        output_text(&again)
    );
}

#[tokio::test]
async fn a_drained_address_comes_back_by_itself_and_a_forced_draining_rejects_requests() {
    let two = Two::start().await;
    let [one, other] = [0, 1].map(|index| two.address(index));
    let drain = |address: &str, time: &str, further: &[&str]| {
        let mut arguments = vec!["versions", "drain", "v3", address, "--for", time];
        arguments.extend(further);
        let output = two.stack.command(&arguments);
        assert!(output.status.success(), "{}", output_text(&output));
    };
    drain(&one, "1m", &["--force"]);
    drain(&other, "1s", &["--force", "--reason", "both"]);
    let status = async |expected: u16| {
        let seen = within(PROPAGATION_TIMEOUT + Duration::from_secs(2), || async {
            (two.status(0).await == expected).then_some(())
        });
        assert!(seen.await.is_some(), "{expected}");
    };
    status(503).await;
    status(200).await;
    assert_eq!(two.shares(0).await, [0, 4]);
    let audit = two.stack.command(&["audit"]);
    let audit = output_text(&audit);
    for expected in ["backend.drain", "v3 127.0.0.1:", "both"] {
        assert!(audit.contains(expected), "{audit}");
    }
}

#[tokio::test]
async fn what_the_api_of_one_gateway_changes_reaches_all() {
    let two = Two::start().await;
    let token = &*two.stack.create_token("operator");
    let address = json!({ "backend": "v3", "address": two.address(0) });
    let mut drain = address.clone();
    drain["seconds"] = 60.into();
    let drained = two.api(1, "backends/drain", token, Some(drain)).await;
    two.expect([0, 4]).await;
    for gateway in [0, 1] {
        let listed = two.api(gateway, "backends", token, None).await;
        let backends = listed["items"].as_array().unwrap();
        let v3 = backends.iter().find(|one| one["backend"] == "v3").unwrap();
        let addresses = v3["addresses"].as_array().unwrap();
        let ends = addresses.iter().filter(|one| one["health"] == "drained");
        let ends: Vec<_> = ends.map(|one| &one["drained_until"]).collect();
        assert_eq!(ends, [&drained["until"]], "{listed}");
    }
    two.api(0, "backends/undrain", token, Some(address)).await;
    two.expect([2, 2]).await;
    let path = format!("apps/{}/disable", two.app.ident);
    two.api(1, &path, token, Some(json!({ "revision": 1 })))
        .await;
    let disabled_at = Instant::now();
    for gateway in [0, 1] {
        let left = PROPAGATION_TIMEOUT.saturating_sub(disabled_at.elapsed());
        let seen = within(left, || async {
            (two.status(gateway).await == 403).then_some(())
        });
        assert!(seen.await.is_some(), "gateway {gateway} still serves it");
    }
}

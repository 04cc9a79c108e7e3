//! Addresses that an operator takes out, at several gateways of one store.

use std::time::Duration;

use end_to_end::{
    program::{Program, output_text},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    signed_client::http_client,
    stack::{Application, Stack},
    waiting::{WAIT_TIMEOUT, until, until_within},
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
        let v3 = format!(
            "[versions.v3]\nbackends = [\"{one}\", \"{two}\"]\nhealth.timeout_seconds = 30\n[management.api]\n"
        );
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
        for gateway in [0, 1] {
            until(&format!("{expected:?} at gateway {gateway}"), || async {
                (self.shares(gateway).await == expected).then_some(())
            })
            .await;
        }
    }

    /// Calls the management API of a gateway.
    async fn api(&self, gateway: usize, path: &str, token: &str, body: Option<Value>) -> Value {
        let response = self.stack.call_api(gateway, path, token, body).await;
        response.json().await.unwrap()
    }

    /// Calls `/backends/WHAT` for an address of v3: the status, and the code of its problem.
    fn tried(
        &self,
        gateway: usize,
        what: &str,
        token: &str,
        body: Value,
    ) -> impl Future<Output = (u16, String)> + use<> {
        let url = self.stack.api_url(gateway, &format!("backends/{what}"));
        let call = http_client().post(url).bearer_auth(token).json(&body);
        async move {
            let response = call.send().await.unwrap();
            let status = response.status().as_u16();
            let body: Value = response.json().await.unwrap();
            let code = body["code"].as_str().unwrap_or_default();
            (status, code.to_owned())
        }
    }

    /// The addresses that are drained by the store.
    fn drained(&self, token: &str) -> impl Future<Output = Vec<String>> + use<> {
        let call = http_client().get(self.stack.api_url(0, "backends"));
        let call = call.bearer_auth(token);
        async move {
            let listed: Value = call.send().await.unwrap().json().await.unwrap();
            let backends = listed["items"].as_array().unwrap();
            let v3 = backends.iter().find(|one| one["backend"] == "v3").unwrap();
            let drained = v3["addresses"].as_array().unwrap().iter();
            let drained = drained.filter(|one| !one["drained_until"].is_null());
            let names = drained.map(|one| one["address"].as_str().unwrap().to_owned());
            names.collect()
        }
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
    two.expect([0, 4]).await;
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
    drain(&one, "5m", &["--force"]);
    drain(&other, "40s", &["--force", "--reason", "both"]);
    let status = async |expected: u16| {
        let timeout = WAIT_TIMEOUT + Duration::from_secs(40);
        until_within(timeout, &expected.to_string(), || async {
            (two.status(0).await == expected).then_some(())
        })
        .await;
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
    for gateway in [0, 1] {
        until(&format!("gateway {gateway} to reject it"), || async {
            (two.status(gateway).await == 403).then_some(())
        })
        .await;
    }
}

/// The results of all, which run at once.
async fn at_once<T: Send + 'static>(
    calls: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let calls: Vec<_> = calls.map(tokio::spawn).collect();
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.unwrap());
    }
    results
}

/// Issue 44: each of two drainings at once counted the other address as left, both were 200, and neither address was out.
#[tokio::test]
async fn of_drainings_at_once_none_takes_the_last_address() {
    let two = Two::start().await;
    // Calls of one token take turns.
    let tokens: Vec<_> = (0..8)
        .map(|number| {
            two.stack
                .create_named_token(&format!("token {number}"), "operator")
        })
        .collect();
    let body = |index: usize, force: bool| json!({ "backend": "v3", "address": two.address(index), "seconds": 600, "force": force });
    let undrain = |index: usize| json!({ "backend": "v3", "address": two.address(index) });
    for round in 0..6 {
        let of = |number: usize| number / 2 % 2;
        let calls = tokens
            .iter()
            .enumerate()
            .map(|(number, token)| two.tried(number % 2, "drain", token, body(of(number), false)));
        let responses = at_once(calls).await.into_iter().enumerate();
        let responses: Vec<_> = responses
            .map(|(number, response)| (of(number), response))
            .collect();
        let done = responses.iter().filter(|(_, (status, _))| *status == 200);
        let done: Vec<_> = done.map(|(index, _)| *index).collect();
        assert!(!done.is_empty(), "round {round}: {responses:?}");
        let out = two.address(done[0]);
        for (index, response) in &responses {
            let expected = match *index == done[0] {
                true => (200, String::new()),
                false => (409, "last_address".to_owned()),
            };
            assert_eq!(*response, expected, "round {round}: {responses:?}");
        }
        assert_eq!(two.drained(&tokens[0]).await, [out]);
        if round == 0 {
            two.expect(if done[0] == 0 { [0, 4] } else { [4, 0] }).await;
        }
        let back = two.tried(1, "undrain", &tokens[1], undrain(done[0])).await;
        assert_eq!(back.0, 200);
    }
    // Beside drainings that end, at most one address is out at any time.
    for turn in 0..6 {
        let calls = tokens.iter().enumerate().map(|(number, token)| {
            let index = (number + turn) % 2;
            let (what, body) = match number < 5 {
                true => ("drain", body(index, false)),
                false => ("undrain", undrain(index)),
            };
            let (tried, drained) = (two.tried(number % 2, what, token, body), two.drained(token));
            async { (tried.await, drained.await) }
        });
        for ((_, code), drained) in at_once(calls).await {
            let expected = ["", "last_address", "not_drained"].contains(&&*code);
            assert!(expected && drained.len() < 2, "{code} {drained:?}");
        }
    }
    // Who insists takes both.
    let calls = tokens
        .iter()
        .enumerate()
        .map(|(number, token)| two.tried(number % 2, "drain", token, body(number / 2 % 2, true)));
    let responses = at_once(calls).await;
    assert!(
        responses.iter().all(|(status, _)| *status == 200),
        "{responses:?}"
    );
    assert_eq!(two.drained(&tokens[0]).await.len(), 2);
}

#[tokio::test]
async fn the_audit_is_asked_for_an_address() {
    let two = Two::start().await;
    let token = &*two.stack.create_token("operator");
    let [one, other] = [0, 1].map(|index| two.address(index));
    for (what, address) in [("drain", &one), ("undrain", &one), ("drain", &other)] {
        let mut body = json!({ "backend": "v3", "address": address });
        if what == "drain" {
            body["seconds"] = 60.into();
        }
        two.api(1, &format!("backends/{what}"), token, Some(body))
            .await;
    }
    for (address, expected) in [
        (&one, &["backend.undrain", "backend.drain"][..]),
        (&other, &["backend.drain"]),
    ] {
        let shown = two
            .stack
            .command(&["audit", "--subject", address, "--json"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        let called = two
            .api(0, &format!("audit?subject={address}"), token, None)
            .await;
        for rows in [&shown, &called["items"]] {
            let rows = rows.as_array().unwrap();
            let actions: Vec<_> = rows
                .iter()
                .map(|row| row["action"].as_str().unwrap())
                .collect();
            assert_eq!(actions, expected, "{address}");
            let subject = format!("v3 {address}");
            assert!(
                rows.iter().all(|row| row["subject"] == *subject),
                "{rows:?}"
            );
        }
    }
    let none = two.api(0, "audit?subject=127.0.0.1:1", token, None).await;
    assert_eq!(none["items"], json!([]));
}

//! One client for many users and threads, whose connections are kept.

use end_to_end::recording_backend::{Behaviour, Delivery, RecordingBackend};
use serde_json::json;

use super::{Ability, can, driver::Driver};

/// Calls of a test, of threads together. A shell starts two programs for each.
fn calls(language: &str) -> usize {
    match can(language, Ability::Connections) {
        true => 2_000,
        false => 64,
    }
}

/// Two users and eight threads: each call gets the response of its own user.
pub(super) async fn mixes_no_users(language: &'static str) {
    let server = RecordingBackend::start().await;
    let echo = Delivery::EchoingHeader("acme-x-authorization");
    server.behave(Behaviour::responding(echo));
    let mut driver = Driver::start(language);
    driver.client_of(&server, json!({})).await;
    let credentials = ["a", "g"].map(|letter| letter.repeat(43));
    let mut seen = 0;
    // The first in sequence: a call that is answered leaves its connection to the next one.
    for (threads, calls) in [(1, calls(language) / 2), (8, calls(language))] {
        let before = server.connections();
        let mixed = json!({ "credentials": credentials, "threads": threads, "calls": calls, "path": "/user" });
        let mixed = driver.ask(json!({ "mixed": mixed })).await;
        assert_eq!(
            (&mixed["mixed"], &mixed["calls"]),
            (&json!(0), &json!(calls)),
            "{language}: {mixed}"
        );
        seen += calls;
        assert_eq!(server.requests().len(), seen, "{language}");
        if can(language, Ability::Connections) {
            let connections = server.connections() - before;
            assert!(connections <= 2 * threads, "{language}: {connections}");
        }
    }
    // A server that closes each connection, in the middle of a client's pool.
    server.behave(Behaviour {
        delivery: Delivery::ThenClose,
        ..Behaviour::default()
    });
    for _ in 0..8 {
        let call = json!({ "method": "GET", "path": "/x" });
        let called = driver.ask(json!({ "call": call })).await;
        assert_eq!(called["status"], 200, "{language}: {called}");
    }
}

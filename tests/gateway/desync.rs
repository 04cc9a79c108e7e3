//! Desync: a backend never sees a request that a strict reading of the client's bytes does not contain.
//!
//! Each case is a connection's bytes, and the requests in them by a strict reading of RFC 9112. The requests that reach
//! the recording backend, itself a strict reader, must be a prefix of those: the gateway may reject more than it must,
//! but never find more. `/smuggled` needs no signature, so it passes if it is ever taken for a request.

mod bodies;
pub(crate) mod cases;

use std::{net::SocketAddr, time::Duration};

use end_to_end::{
    raw_connection::{RawConnection, RawResponse},
    recording_backend::{Recorded, RecordingBackend},
    stack::Stack,
    waiting::WAIT_TIMEOUT,
};

use self::cases::{Case, Material, cases};

#[tokio::test]
async fn a_backend_sees_no_request_that_was_not_sent() {
    tokio::join!(try_cases("canonical"), try_cases("as_sent"));
}

async fn try_cases(paths: &str) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("sign.window_seconds = 300")
        .gateway(&format!("[versions.v1]\npaths = '{paths}'\n"))
        .start()
        .await;
    let (_, form) = stack.client().post("/x").param("a", "1").parts();
    let cases = cases(&Material {
        form: form.into_bytes(),
    });
    assert!(cases.len() >= 80, "{}", cases.len());
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let responses = converse(stack.addresses().gateway, case, ANSWER_TIMEOUT).await;
        // Once this request has arrived, no byte of the case is in flight.
        let fence = format!("/fence-{number}");
        stack.client().get(&fence).send().await.ok();
        let recorded = backend.recorded();
        let arrived: Vec<_> = recorded[seen..]
            .iter()
            .filter(|one| !is_target(one, &fence))
            .collect();
        seen = recorded.len();
        let is_contained = arrived.len() <= case.contains.len()
            && arrived
                .iter()
                .zip(&case.contains)
                .all(|(one, contained)| is_same(one, contained));
        if !is_contained {
            wrong.push(format!("{case}: {arrived:#?}"));
        }
        let passed = responses
            .iter()
            .filter(|response| response.status == 200)
            .count();
        if passed > case.contains.len() {
            wrong.push(format!("{case}: {responses:#?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{paths}: {} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[tokio::test]
async fn every_request_of_a_strict_reading_passes() {
    let (stack, backend) = Stack::recording().await;
    let (_, form) = stack.client().post("/x").param("a", "1").parts();
    let material = Material {
        form: form.into_bytes(),
    };
    let needed = [
        "two requests in one piece",
        "a request behind chunks",
        "Expect with the body at once",
    ];
    let mut cases = cases(&material);
    cases.retain(|case| needed.contains(&case.name));
    assert_eq!(cases.len(), needed.len(), "a case was renamed");
    for case in &cases {
        let before = backend.requests().len();
        converse(stack.addresses().gateway, case, WAIT_TIMEOUT).await;
        assert!(!case.contains.is_empty(), "{}", case.name);
        assert_eq!(
            backend.requests().len() - before,
            case.contains.len(),
            "{}",
            case.name
        );
    }
}

/// Sends all bytes at once and reads the responses until no more can come, or none within `answer_timeout`.
async fn converse(gateway: SocketAddr, case: &Case, answer_timeout: Duration) -> Vec<RawResponse> {
    let mut connection = RawConnection::open(gateway).await;
    connection.send(&case.bytes).await;
    let mut responses = Vec::new();
    loop {
        let is_complete = responses.len() >= case.contains.len().max(1);
        if !connection
            .has_activity_within(if is_complete {
                IN_FLIGHT_TIMEOUT
            } else {
                answer_timeout
            })
            .await
        {
            break;
        }
        match connection.response().await {
            Some(response) if response.status < 200 => {}
            Some(response) => responses.push(response),
            None => return responses,
        }
    }
    // The gateway may wait for more bytes or for another request: there are none.
    connection.finish().await;
    responses.extend(connection.responses_until_close().await);
    responses
}

/// Long enough for a response in flight.
const IN_FLIGHT_TIMEOUT: Duration = Duration::from_millis(40);
/// Long enough for the gateway to answer most cases; some have no answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(400);

fn is_target(recorded: &Recorded, target: &str) -> bool {
    matches!(recorded, Recorded::Request(request) if request.target == target)
}

fn is_same(recorded: &Recorded, (method, target, body): &(&'static str, String, Vec<u8>)) -> bool {
    match recorded {
        Recorded::Request(request) => {
            request.method == *method && request.target == *target && request.body == *body
        }
        Recorded::Unreadable(_) => false,
    }
}

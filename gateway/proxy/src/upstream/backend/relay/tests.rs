//! Bodies of every framing, in pieces of every size, complete and truncated at every byte.

use super::*;
use crate::{
    request::scripted::{Script, ScriptedClient, Step},
    upstream::backend::backend_head::{BackendHead, ResponseScanner},
};

const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_PIECE: usize = 256 * 1024;

/// The result of a relay.
#[derive(Debug)]
struct Relayed {
    outcome: Result<(), BackendFailure>,
    client: ScriptedClient,
    passed: u64,
    is_released: bool,
}

impl Relayed {
    fn body(&self) -> String {
        self.client.sent.concat()
    }
}

fn received(head: &str, arrived: &[u8]) -> ReceivedHead {
    let length = ResponseScanner::default().scan(head.as_bytes());
    let length = length.unwrap().unwrap();
    let head_read = BackendHead::read(head.as_bytes()).unwrap();
    ReceivedHead {
        is_head: false,
        keeps_alive: head_read.keeps_alive,
        head: head_read,
        length,
        bytes: [head.as_bytes(), arrived].concat(),
    }
}

async fn relayed_to(
    mut client: ScriptedClient,
    head: &str,
    arrived: &[u8],
    steps: Vec<Step>,
) -> Relayed {
    let relay = Relay::new(Script::new(steps), received(head, arrived), TIMEOUT);
    let (mut passed, mut is_released) = (0, false);
    let outcome = relay
        .run(
            &mut client,
            &mut passed,
            |_, _| MAX_PIECE,
            |_| is_released = true,
        )
        .await;
    Relayed {
        outcome,
        client,
        passed,
        is_released,
    }
}

async fn relayed(head: &str, arrived: &[u8], steps: Vec<Step>) -> Relayed {
    relayed_to(ScriptedClient::default(), head, arrived, steps).await
}

const LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const UNTIL_CLOSE: &str = "HTTP/1.1 200 OK\r\n\r\n";
const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";
const CHUNKS: &[u8] = b"3\r\n012\r\n7;e=1\r\n3456789\r\n0\r\nX-Gateway-App-Id: 7\r\n\r\n";
const BODY: &str = "0123456789";

#[tokio::test(start_paused = true)]
async fn a_body_is_relayed_whole_in_pieces_of_any_size() {
    for (head, wire) in [(LENGTH, BODY.as_bytes()), (CHUNKED, CHUNKS)] {
        for at_first in 0..wire.len() {
            for size in [1, 3, wire.len()] {
                let rest = Script::giving(&wire[at_first..], size);
                let relayed = relayed(head, &wire[..at_first], rest).await;
                assert_eq!(relayed.outcome, Ok(()), "{head} {at_first} {size}");
                assert_eq!(relayed.body(), BODY);
                assert_eq!(relayed.passed, 10);
                assert!(relayed.client.is_finished && relayed.is_released);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_arrives_with_its_head_is_sent_with_it() {
    for (head, wire) in [(LENGTH, BODY.as_bytes()), (CHUNKED, CHUNKS)] {
        let relayed = relayed(head, wire, vec![]).await;
        assert_eq!(relayed.client.sent, [BODY]);
        assert!(relayed.is_released);
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_does_not_wait_for_a_slow_body() {
    let steps = vec![Step::Wait, Step::Wait, Step::Give(BODY.into())];
    let relayed = relayed(LENGTH, b"", steps).await;
    assert_eq!(relayed.client.sent, ["", BODY]);
}

#[tokio::test(start_paused = true)]
async fn a_body_truncated_at_any_byte_is_not_finished() {
    for (head, wire) in [(LENGTH, BODY.as_bytes()), (CHUNKED, CHUNKS)] {
        for length in 0..wire.len() {
            for end in [Step::End, Step::FailRead] {
                let steps = vec![Step::Wait, end];
                let relayed = relayed(head, &wire[..length], steps).await;
                assert!(matches!(relayed.outcome, Err(BackendFailure::Ended { .. })));
                assert!(!relayed.client.is_finished, "{head} {length}");
                assert!(!relayed.is_released);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_until_the_close_ends_with_a_close_but_not_with_a_reset() {
    let steps = |end| vec![Step::Wait, Step::Give(BODY[4..].into()), end];
    let whole = relayed(UNTIL_CLOSE, &BODY.as_bytes()[..4], steps(Step::End)).await;
    assert_eq!(whole.outcome, Ok(()));
    assert_eq!(whole.body(), BODY);
    assert!(whole.client.is_finished && !whole.is_released);
    let reset = relayed(UNTIL_CLOSE, &BODY.as_bytes()[..4], steps(Step::FailRead)).await;
    assert!(reset.outcome.is_err() && !reset.client.is_finished);
}

#[tokio::test(start_paused = true)]
async fn surplus_bytes_are_dropped_and_the_connection_is_not_reused() {
    let more = b"HTTP/1.1 200 OK\r\n\r\n";
    for (head, wire, body) in [
        (LENGTH, BODY.as_bytes(), BODY),
        (CHUNKED, CHUNKS, BODY),
        (NO_CONTENT, b"", ""),
    ] {
        let clean = relayed(head, wire, vec![]).await;
        assert!(clean.is_released, "{head}");
        let relayed = relayed(head, &[wire, more].concat(), vec![]).await;
        assert_eq!(relayed.body(), body);
        assert!(relayed.client.is_finished && !relayed.is_released, "{head}");
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_chunks_abort_the_response() {
    for wire in [
        "x\r\n",
        "3\r\n0123",
        "3\n012",
        "3\r\n012\r\n-1\r\n",
        "0\r\n fold\r\n\r\n",
    ] {
        let relayed = relayed(CHUNKED, wire.as_bytes(), vec![Step::End]).await;
        assert!(
            matches!(relayed.outcome, Err(BackendFailure::Malformed(_))),
            "{wire:?}"
        );
        assert!(!relayed.client.is_finished && !relayed.is_released);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_body_ends_after_the_timeout() {
    let start = Instant::now();
    let steps = vec![Step::Wait, Step::Give(BODY[..3].into())];
    let relayed = relayed(LENGTH, b"", steps).await;
    assert_eq!(relayed.outcome, Err(BackendFailure::TimedOut));
    assert_eq!(relayed.passed, 3);
    assert_eq!(start.elapsed().as_secs(), TIMEOUT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_relay_ends_when_the_client_disconnects() {
    let disconnected = ScriptedClient {
        is_disconnected: true,
        ..ScriptedClient::default()
    };
    let waiting = relayed_to(disconnected, LENGTH, b"012", vec![]).await;
    assert_eq!(waiting.outcome, Err(BackendFailure::ClientDisconnected));
    let limited = ScriptedClient {
        max_pieces: Some(1),
        ..ScriptedClient::default()
    };
    let steps = Script::giving(&BODY.as_bytes()[3..], 1);
    let stopped = relayed_to(limited, LENGTH, b"012", steps).await;
    assert_eq!(stopped.outcome, Err(BackendFailure::ClientDisconnected));
    assert!(!stopped.client.is_finished && !stopped.is_released);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_will_be_closed_is_not_released() {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\n";
    let relayed = relayed(head, BODY.as_bytes(), vec![]).await;
    assert!(relayed.client.is_finished && !relayed.is_released);
}

#[tokio::test(start_paused = true)]
async fn a_large_body_is_relayed_in_limited_pieces() {
    let wire = vec![b'x'; 5 * MAX_PIECE + 1];
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", wire.len());
    let steps = vec![Step::Give(wire.clone())];
    let relayed = relayed(&head, b"", steps).await;
    assert_eq!(relayed.outcome, Ok(()));
    assert_eq!(relayed.passed, wire.len() as u64);
    let largest = relayed.client.sent.iter().map(String::len).max();
    assert!(largest <= Some(MAX_PIECE), "{largest:?}");
}

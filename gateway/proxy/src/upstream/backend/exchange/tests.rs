//! Exchanges with a backend that sends and accepts single bytes, stops half-way, and fails at every step.

use super::*;
use crate::request::scripted::{Script, ScriptedClient, Step};

const HEAD: &[u8] = b"POST /x HTTP/1.1\r\n\r\n";
const FORM: &[u8] = b"a=1&b=2";
const WHOLE: usize = HEAD.len() + FORM.len();
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const TIMEOUTS: ExchangeTimeouts = ExchangeTimeouts {
    send: Duration::from_secs(10),
    receive: Duration::from_secs(60),
};

async fn run(
    stream: &mut Script,
    client: &mut ScriptedClient,
) -> Result<ReceivedHead, ExchangeFailure> {
    let request = BackendRequest {
        head: HEAD,
        body: FORM,
        spooled: None,
        method: Method::Post,
        response: None,
    };
    exchange(stream, request, client, TIMEOUTS).await
}

async fn exchanged(steps: impl IntoIterator<Item = Step>) -> Result<ReceivedHead, ExchangeFailure> {
    run(&mut Script::new(steps), &mut ScriptedClient::default()).await
}

async fn failure(steps: impl IntoIterator<Item = Step>) -> (BackendFailure, bool) {
    let ExchangeFailure {
        failure,
        has_response,
    } = exchanged(steps).await.unwrap_err();
    (failure, has_response)
}

fn give(bytes: &[u8]) -> Step {
    Step::Give(bytes.to_vec())
}

#[tokio::test(start_paused = true)]
async fn head_and_form_are_sent_in_one_write() {
    let mut stream = Script::new([Step::Until(WHOLE), give(ANSWER)]);
    let received = run(&mut stream, &mut ScriptedClient::default()).await;
    let received = received.unwrap();
    assert_eq!(stream.write_count(), 1);
    assert_eq!(stream.written(), [HEAD, FORM].concat());
    assert_eq!((received.head.status, received.keeps_alive), (200, true));
    assert_eq!(&received.bytes[received.length..], b"ok");
}

#[tokio::test(start_paused = true)]
async fn partial_reads_and_writes_give_the_same_response() {
    for size in [1, 2, 3, 7] {
        let mut steps = vec![Step::TakeAlways(size), Step::Until(WHOLE)];
        steps.extend(Script::giving(ANSWER, size));
        let received = exchanged(steps).await.unwrap();
        assert_eq!(received.head.status, 200, "{size}");
        assert!(received.keeps_alive);
    }
}

#[tokio::test(start_paused = true)]
async fn interim_responses_are_skipped() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    let all = [interim.as_bytes(), ANSWER].concat();
    for size in [1, 10, all.len()] {
        let received = exchanged(Script::giving(&all, size)).await.unwrap();
        assert_eq!(received.head.status, 200, "{size}");
    }
    let many = "HTTP/1.1 100 Continue\r\n\r\n".repeat(MAX_INTERIM + 1);
    let (failure, has_response) = failure([give(many.as_bytes())]).await;
    assert!(matches!(failure, BackendFailure::Malformed(_)) && has_response);
}

#[tokio::test(start_paused = true)]
async fn an_unsolicited_101_is_malformed() {
    let switching = b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n";
    let (failure, _) = failure([give(switching)]).await;
    assert!(
        matches!(failure, BackendFailure::Malformed(_)),
        "{failure:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_early_response_is_used_and_the_connection_is_not_reused() {
    for steps in [
        vec![Step::Take(5), Step::HoldAlways, give(ANSWER)],
        vec![Step::Take(5), Step::FailWrite, Step::Wait, give(ANSWER)],
        vec![Step::FailWrite, give(ANSWER)],
    ] {
        let received = exchanged(steps.clone()).await.unwrap();
        assert_eq!(received.head.status, 200);
        assert!(!received.keeps_alive, "{steps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_closed_at_any_byte_fails_and_reports_whether_a_response_began() {
    let head = ANSWER.len() - 2;
    for length in 0..head {
        for end in [Step::End, Step::FailRead] {
            let steps = [
                Step::Until(WHOLE),
                give(&ANSWER[..length]),
                Step::Wait,
                end.clone(),
            ];
            let steps = steps.into_iter().filter(|step| *step != give(b""));
            let (failure, has_response) = failure(steps).await;
            assert!(
                matches!(failure, BackendFailure::Ended { .. }),
                "{failure:?}"
            );
            assert_eq!(has_response, length > 0, "{length} {end:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_reports_the_systems_error() {
    let (failure, has_response) = failure([Step::FailWrite, Step::Wait, Step::End]).await;
    assert!(matches!(failure, BackendFailure::Ended { why } if why.contains("pipe")));
    assert!(!has_response);
}

#[tokio::test(start_paused = true)]
async fn each_wait_ends_after_its_own_timeout() {
    for (steps, expected, began) in [
        (vec![Step::HoldAlways], TIMEOUTS.send, false),
        (vec![Step::Take(3), Step::HoldAlways], TIMEOUTS.send, false),
        (vec![], TIMEOUTS.receive, false),
        (vec![give(&ANSWER[..9])], TIMEOUTS.receive, true),
    ] {
        let start = Instant::now();
        let (failure, has_response) = failure(steps).await;
        assert_eq!((failure, has_response), (BackendFailure::TimedOut, began));
        assert_eq!(start.elapsed().as_secs(), expected.as_secs());
    }
}

#[tokio::test(start_paused = true)]
async fn an_exchange_ends_when_the_client_disconnects() {
    let mut client = ScriptedClient {
        is_disconnected: true,
        ..ScriptedClient::default()
    };
    for steps in [vec![], vec![Step::HoldAlways], vec![give(b"HTTP/1.1 2")]] {
        let ended = run(&mut Script::new(steps), &mut client).await;
        assert_eq!(
            ended.unwrap_err().failure,
            BackendFailure::ClientDisconnected
        );
    }
}

#[tokio::test(start_paused = true)]
async fn anything_but_a_response_is_malformed() {
    for bytes in [
        "<html>",
        "HTTP/1.1 200 OK\nA: b\n\n",
        "HTTP/1.1 999 X\r\n\r\n",
    ] {
        let (failure, has_response) = failure([give(bytes.as_bytes())]).await;
        assert!(
            matches!(failure, BackendFailure::Malformed(_)) && has_response,
            "{bytes:?}"
        );
    }
}

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use super::{
    context::{new_span_id, new_trace_id},
    recording::Recording,
    span::{Kind, Span},
    *,
};
use crate::clock::{Clock, ManualClock};

const SERVICE: ServiceName = ServiceName {
    name: "test",
    version: "1",
};

/// Timeout of a collector that never answers.
const SHORT: Duration = Duration::from_millis(300);

fn tracer(
    listener: &TcpListener,
    per_million: u32,
    timeout: Duration,
) -> (Arc<Tracer>, Arc<SpanCounters>) {
    let counters = Arc::new(SpanCounters::default());
    let address = listener.local_addr().unwrap();
    let settings = TracingSettings {
        collector: Some(Collector {
            endpoint: format!("http://{address}/v1/traces").parse().unwrap(),
            timeout,
            authorization: None,
            ca: None,
            outgoing: Default::default(),
        }),
        sampled_per_million: per_million,
    };
    let tracer = Tracer::new(&settings, SERVICE, &counters, None).unwrap();
    (tracer, counters)
}

fn send_request(tracer: &Arc<Tracer>) {
    let clock = ManualClock::default();
    let recording = Recording::begin(Arc::clone(tracer), [1; 16], None, &clock);
    let now = clock.instant();
    let span = |kind| -> Span { recording.step(new_span_id(), "step", kind, now, now) };
    let spans = vec![recording.request("request", now, now), span(Kind::Client)];
    recording.finish(spans);
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

#[test]
fn a_parents_decision_holds_and_otherwise_the_share_decides() {
    let listener = listener();
    let (all, _) = tracer(&listener, 1_000_000, SHORT);
    assert!(all.samples(None, *b"ffffffffffffffff"));
    assert!(!all.samples(Some(false), *b"0000000000000000"));
    let (none, _) = tracer(&listener, 0, SHORT);
    assert!(!none.samples(None, *b"0000000000000000"));
    assert!(none.samples(Some(true), *b"ffffffffffffffff"));
}

#[test]
fn a_stalled_collector_holds_up_no_sender_and_the_rest_is_dropped() {
    // It accepts connections in its backlog, and never answers.
    let listener = listener();
    let (tracer, counters) = tracer(&listener, 1_000_000, SHORT);
    let begun = Instant::now();
    let requests = 20_000;
    for _ in 0..requests {
        send_request(&tracer);
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    let dropped = counters.value(SpanResult::Dropped);
    assert!(dropped > 0 && dropped % 2 == 0, "{dropped}");
    let sum = || {
        SpanResult::ALL
            .map(|one| counters.value(one))
            .iter()
            .sum::<u64>()
    };
    until("every span to be counted", || sum() == 2 * requests);
    assert_eq!(counters.value(SpanResult::Exported), 0);
}

#[test]
fn an_exporter_that_cannot_be_built_fails_its_spans_and_the_next_reload_tries_again() {
    let settings = |ca: &str| TracingSettings {
        collector: Some(Collector {
            endpoint: "https://127.0.0.1:1/v1/traces".parse().unwrap(),
            timeout: SHORT,
            authorization: None,
            ca: Some(ca.as_bytes().to_vec()),
            outgoing: Default::default(),
        }),
        sampled_per_million: 1_000_000,
    };
    let unusable = settings("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let counters = Arc::new(SpanCounters::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    // Dropping a runtime within another one panics.
    let first = runtime.unwrap().block_on(async {
        let first = Tracer::new(&unusable, SERVICE, &counters, None).unwrap();
        send_request(&first);
        first
    });
    until("the spans to be counted", || {
        counters.value(SpanResult::Failed) == 2
    });
    until("the thread to end", || !first.exporter.is_running());
    first.flush();
    send_request(&first);
    assert_eq!(counters.value(SpanResult::Failed), 4);
    let second = Tracer::new(&unusable, SERVICE, &counters, Some(&first)).unwrap();
    assert!(!second.exporter.is_shared_with(&first.exporter));
}

#[test]
fn a_flush_exports_what_is_queued_and_does_not_wait_for_a_stalled_collector() {
    let stalled = listener();
    let (tracer_of_stalled, _) = tracer(&stalled, 1_000_000, SHORT);
    send_request(&tracer_of_stalled);
    let begun = Instant::now();
    tracer_of_stalled.flush();
    assert!(begun.elapsed() < Duration::from_secs(20));

    let responding = listener();
    let (tracer, counters) = tracer(&responding, 1_000_000, Duration::from_secs(60));
    thread::spawn(move || {
        for stream in responding.incoming() {
            response(stream.unwrap());
        }
    });
    send_request(&tracer);
    tracer.flush();
    until("the spans to be exported", || {
        counters.value(SpanResult::Exported) == 2
    });
}

/// Reads a request, and answers it with 200.
fn response(mut stream: TcpStream) {
    let (mut read, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            let head = read
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
                .unwrap();
            if read.len() >= head + 4 + length {
                break;
            }
        }
        let length = stream.read(&mut piece).unwrap();
        read.extend_from_slice(&piece[..length]);
    }
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(response).unwrap();
}

fn sampled(per_million: u32, requests: usize) -> usize {
    let sampler = Sampler::new(per_million);
    let is_sampled = |_: &usize| {
        let mut digits = [0; 16];
        hex::encode_to_slice(&new_trace_id()[8..], &mut digits).unwrap();
        sampler.samples(digits)
    };
    (0..requests).filter(is_sampled).count()
}

#[test]
fn the_share_is_the_one_of_the_setting() {
    assert_eq!(sampled(0, 10_000), 0);
    assert_eq!(sampled(1_000_000, 10_000), 10_000);
    let one_in_ten = sampled(100_000, 100_000);
    assert!((9_000..11_000).contains(&one_in_ten), "{one_in_ten}");
}

#[test]
fn the_edges_are_exact() {
    let half = Sampler::new(500_000);
    assert!(half.samples(*b"7fffffffffffffff"));
    assert!(!half.samples(*b"8000000000000000"));
    assert!(Sampler::new(1_000_000).samples(*b"ffffffffffffffff"));
    assert!(!Sampler::new(0).samples(*b"0000000000000000"));
}

//! Attacks by one connection: it ends within seconds, the process' memory stays bounded, and a good client beside it is
//! served.

use std::time::{Duration, Instant};

use end_to_end::{
    program::Program,
    raw_http2::{
        END_HEADERS, END_STREAM, RawHttp2, Reaction, block, fields, frame, get, headers, kind,
    },
    recording_backend::{Behaviour, Delivery},
    stack::Stack,
    waiting::until,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::{client, stack};

/// Bytes after which a flood must have ended: far more than the budget of a connection allows.
const MAX_FLOOD: usize = 64 * 1024 * 1024;
/// Time after which it must have ended.
const MAX_TIME: Duration = Duration::from_secs(30);
/// Growth of the process' memory that one connection may cause, at its peak.
const MAX_GROWTH_KIB: u64 = 24 * 1024;
/// Growth after all floods: the allocator keeps some freed memory for each thread.
const MAX_KEPT_KIB: u64 = 64 * 1024;

/// Hostile connections of the test that counts log lines.
const HOSTILE: usize = 200;

#[tokio::test]
async fn hostile_connections_leave_few_log_lines() {
    let (stack, _backend) = stack("").await;
    let before = stack.log(Program::Gateway).lines().count();
    // Acknowledges pings that the gateway never sent, then resets more streams than are allowed.
    let mut bytes = frame(kind::PING, END_STREAM, 0, &[7; 8]).repeat(10);
    for number in 0..150 {
        bytes.extend(frame(
            kind::HEADERS,
            END_HEADERS,
            2 * number + 1,
            &[0xff; 4],
        ));
    }
    for _ in 0..HOSTILE {
        let mut connection = RawHttp2::open(stack.addresses().gateway).await;
        connection.send(&bytes).await;
        while connection.frame().await.is_some() {}
    }
    let client = client(&stack).await;
    let response = client.send(&stack.client().get("/last")).await.unwrap();
    assert_eq!(response.status, 200);
    stack.log_with(Program::Gateway, "/last").await;
    let log = stack.log(Program::Gateway);
    let written = log.lines().count() - before;
    assert!(written < 20, "{written} lines:\n{log}");
}

/// A flood: what begins it, and what is repeated.
struct Flood {
    name: &'static str,
    begin: Vec<u8>,
    /// The frames with this number.
    repeat: Box<dyn Fn(u32) -> Vec<u8> + Send>,
    /// Whether the attacker reads what it gets.
    reads: bool,
}

fn flood(
    name: &'static str,
    begin: Vec<u8>,
    repeat: impl Fn(u32) -> Vec<u8> + Send + 'static,
) -> Flood {
    Flood {
        name,
        begin,
        repeat: Box::new(repeat),
        reads: true,
    }
}

/// A stream whose body has not ended.
fn open_stream() -> Vec<u8> {
    headers(
        1,
        0,
        &fields(
            "POST",
            "/x",
            &[(b"content-type", b"application/x-www-form-urlencoded")],
        ),
    )
}

fn floods() -> Vec<Flood> {
    let same = |bytes: Vec<u8>| move |_| bytes.repeat(64);
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    let bomb = {
        // One large entry in the table, then references to it.
        let mut entry = vec![0x40, 1, b'x'];
        entry.extend([0x7f, 0x81, 0x1e]);
        entry.extend([b'a'; 4096 - 128]);
        entry
    };
    vec![
        flood("PING", vec![], same(ping.clone())),
        Flood {
            reads: false,
            ..flood("PING, unread", vec![], same(ping))
        },
        flood(
            "SETTINGS",
            vec![],
            same(frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255])),
        ),
        Flood {
            reads: false,
            ..flood(
                "SETTINGS, unread",
                vec![],
                same(frame(kind::SETTINGS, 0, 0, &[])),
            )
        },
        flood(
            "PRIORITY",
            vec![],
            same(frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 3, 1])),
        ),
        flood(
            "WINDOW_UPDATE",
            open_stream(),
            same(frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
        ),
        flood(
            "unknown frames",
            vec![],
            same(frame(kind::UNKNOWN, 0, 0, &[])),
        ),
        flood(
            "large unknown frames",
            vec![],
            same(frame(kind::UNKNOWN, 0, 0, &[0; 16_000])),
        ),
        flood(
            "empty DATA",
            open_stream(),
            same(frame(kind::DATA, 0, 1, &[])),
        ),
        flood(
            "DATA of padding",
            open_stream(),
            same(frame(
                kind::DATA,
                8,
                1,
                &[[255].as_slice(), &[0; 255]].concat(),
            )),
        ),
        flood(
            "DATA of one byte",
            open_stream(),
            same(frame(kind::DATA, 0, 1, b"a")),
        ),
        flood(
            "empty CONTINUATION",
            frame(kind::HEADERS, 0, 1, &[0x82]),
            same(frame(kind::CONTINUATION, 0, 1, &[])),
        ),
        flood(
            "large CONTINUATION",
            frame(kind::HEADERS, 0, 1, &[0x82]),
            same(frame(
                kind::CONTINUATION,
                0,
                1,
                &block(&[(b"x-a", &[b'a'; 1000])]),
            )),
        ),
        flood(
            "a literal without end",
            frame(
                kind::HEADERS,
                0,
                1,
                &[0, 1, b'x', 0x7f, 0xff, 0xff, 0xff, 0x03],
            ),
            same(frame(kind::CONTINUATION, 0, 1, &[b'a'; 16_000])),
        ),
        flood(
            "heads that reference a large entry",
            vec![],
            move |number| {
                let mut block = block(&fields("GET", "/x?a=%zz", &[]));
                if number == 0 {
                    block.extend(&bomb);
                }
                // Entry 62, the newest.
                block.extend([0xbe; 2000]);
                frame(
                    kind::HEADERS,
                    END_STREAM | END_HEADERS,
                    number * 2 + 1,
                    &block,
                )
            },
        ),
        flood("rapid reset", vec![], |number| {
            (0..16)
                .flat_map(|step| {
                    let stream = (number * 16 + step) * 2 + 1;
                    [
                        get(stream, "/held"),
                        frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8]),
                    ]
                    .concat()
                })
                .collect()
        }),
        flood(
            "resets by the gateway: window updates of 0",
            vec![],
            |number| {
                (0..16)
                    .flat_map(|step| {
                        let stream = (number * 16 + step) * 2 + 1;
                        [
                            get(stream, "/held"),
                            frame(kind::WINDOW_UPDATE, 0, stream, &[0; 4]),
                        ]
                        .concat()
                    })
                    .collect()
            },
        ),
        flood(
            "resets by the gateway: windows too large",
            vec![],
            |number| {
                (0..16)
                    .flat_map(|step| {
                        let stream = (number * 16 + step) * 2 + 1;
                        [
                            get(stream, "/held"),
                            frame(kind::WINDOW_UPDATE, 0, stream, &[0x7f, 255, 255, 255]),
                        ]
                        .concat()
                    })
                    .collect()
            },
        ),
        flood("resets by the gateway: malformed heads", vec![], |number| {
            (0..16)
                .flat_map(|step| {
                    let stream = (number * 16 + step) * 2 + 1;
                    headers(
                        stream,
                        END_STREAM,
                        &fields("GET", "/x", &[(b"connection", b"x")]),
                    )
                })
                .collect()
        }),
        flood("streams beyond the limit", vec![], |number| {
            (0..16)
                .flat_map(|step| get((number * 16 + step) * 2 + 1, "/held"))
                .collect()
        }),
    ]
}

/// Runs a flood to its end.
async fn run(stack: &Stack, flood: Flood) {
    let Flood {
        name,
        begin,
        repeat,
        reads,
    } = flood;
    let mut connection = RawHttp2::open(stack.addresses().gateway).await;
    connection.send(&begin).await;
    let (mut reader, mut writer) = connection.into_halves();
    let reading = tokio::spawn(async move {
        if !reads {
            std::future::pending::<()>().await;
        }
        let mut buffer = [0; 16 * 1024];
        while !matches!(reader.read(&mut buffer).await, Ok(0) | Err(_)) {}
    });
    let writing = async {
        let mut sent = 0;
        for number in 0_u32.. {
            let bytes = repeat(number);
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
            sent += bytes.len();
            assert!(sent < MAX_FLOOD, "{name}: {sent} bytes were taken");
        }
    };
    let ended = timeout(MAX_TIME, writing).await;
    assert!(ended.is_ok(), "{name}: not ended after {MAX_TIME:?}");
    reading.abort();
}

#[tokio::test]
async fn floods_end_and_harm_nobody() {
    let (mut stack, backend) = stack("[timeouts]\nsend_seconds = 2\n").await;
    let good = client(&stack).await;
    let signer = stack.client();
    assert_eq!(good.send(&signer.get("/warm")).await.unwrap().status, 200);
    let before = stack.running(Program::Gateway).resident_kib();
    for flood in floods() {
        let name = flood.name;
        let gateway = stack.running(Program::Gateway);
        let idle = gateway.resident_kib();
        gateway.reset_peak();
        let flooding = run(&stack, flood);
        let calling = async {
            // An own connection: the floods share no more than the process with it.
            let mut times = Vec::new();
            for _ in 0..20 {
                let call = signer.get("/good").param("a", "1");
                let called = Instant::now();
                let response = good.send(&call).await.unwrap();
                assert_eq!(response.status, 200, "{name}");
                times.push(called.elapsed());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            times.sort_unstable();
            times
        };
        let ((), times) = tokio::join!(flooding, calling);
        // A busy machine delays a few calls by seconds. A flood that harms others delays most, or one for long.
        let is_harmless = times[15] < Duration::from_secs(2) && times[19] < Duration::from_secs(10);
        assert!(is_harmless, "{name}: {times:?}");
        let peak = stack.running(Program::Gateway).peak_kib();
        assert!(
            peak < idle + MAX_GROWTH_KIB,
            "{name}: {idle} KiB, then {peak} KiB"
        );
    }
    let after = stack.running(Program::Gateway).resident_kib();
    assert!(
        after < before + MAX_KEPT_KIB,
        "{before} KiB, then {after} KiB"
    );
    assert!(!backend.recorded().is_empty());
}

#[tokio::test]
async fn a_client_without_a_window_gets_a_reset_after_the_timeout() {
    let (mut stack, backend) = stack("[timeouts]\nsend_seconds = 1\n").await;
    backend.behave(Behaviour {
        body: vec![b'x'; 2_000_000],
        ..Behaviour::default()
    });
    let before = stack.running(Program::Gateway).resident_kib();
    let mut connection = RawHttp2::open(stack.addresses().gateway).await;
    // INITIAL_WINDOW_SIZE 0.
    connection
        .send(&frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]))
        .await;
    let requests: Vec<u8> = (0..100)
        .flat_map(|number| get(number * 2 + 1, "/large"))
        .collect();
    connection.send(&requests).await;
    let mut reset = 0;
    let mut largest = 0;
    while reset < 100 {
        largest = largest.max(stack.running(Program::Gateway).resident_kib());
        let frame = connection.frame().await.expect("the connection stays open");
        assert!(frame.kind != kind::DATA);
        reset += usize::from(frame.kind == kind::RST_STREAM);
    }
    // One piece of each response at most, and some kernel buffers of the backend's connections.
    assert!(
        largest < before + 64 * 1024,
        "{before} KiB, then {largest} KiB"
    );
    // The connection still serves.
    backend.behave(Behaviour::default());
    connection
        .send(&frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255]))
        .await;
    connection.send(&get(1001, "/x")).await;
    assert_eq!(
        connection.reaction(1001).await,
        Reaction::Response(200, None)
    );
}

#[tokio::test]
async fn clients_that_disconnect_free_everything() {
    let (mut stack, backend) = stack("").await;
    backend.behave(Behaviour::responding(Delivery::Never));
    let address = stack.addresses().gateway;
    for round in 1..=10 {
        let mut connection = RawHttp2::open(address).await;
        let requests: Vec<u8> = (0..100)
            .flat_map(|number| get(number * 2 + 1, "/x"))
            .collect();
        connection.send(&requests).await;
        until("the requests arrive", || async {
            (backend.recorded().len() >= round * 100).then_some(())
        })
        .await;
    }
    // A stop would wait for requests in flight for longer than this does.
    backend.behave(Behaviour::default());
    stack.running(Program::Gateway).terminate();
    until("the gateway ends", || {
        let ended = stack.running(Program::Gateway).exit_status();
        async move { ended }
    })
    .await;
}

#[tokio::test]
async fn many_idle_connections_take_little_memory() {
    let (mut stack, _backend) = stack("").await;
    let address = stack.addresses().gateway;
    let good = client(&stack).await;
    let signer = stack.client();
    assert_eq!(good.send(&signer.get("/x")).await.unwrap().status, 200);
    let before = stack.running(Program::Gateway).resident_kib();
    let mut idle = Vec::new();
    for _ in 0..500 {
        let mut connection = RawHttp2::open(address).await;
        connection.send(&get(1, "/x")).await;
        assert_eq!(connection.reaction(1).await, Reaction::Response(200, None));
        idle.push(connection);
    }
    let each = (stack.running(Program::Gateway).resident_kib() - before) / 500;
    assert!(each < 96, "{each} KiB for each connection");
    assert_eq!(good.send(&signer.get("/x")).await.unwrap().status, 200);
}

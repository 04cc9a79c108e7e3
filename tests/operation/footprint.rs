//! Memory when idle, and the time from start to ready.
//!
//! The bounds are for release builds. A debug build carries its checks and its unoptimised code, so it
//! gets twice the memory and five times the time: enough to notice when something grows tenfold.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use end_to_end::{
    logins::log_in_by_redirect,
    metrics::Scrape,
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::RecordingBackend,
    stack::Stack,
    waiting::until,
};

const MEMORY_FACTOR: u64 = if cfg!(debug_assertions) { 2 } else { 1 };
const TIME_FACTOR: u32 = if cfg!(debug_assertions) { 5 } else { 1 };
const GATEWAY_KIB: u64 = 40 * 1024;
const BACKEND_KIB: u64 = 30 * 1024;

const APPLICATIONS: usize = 10_000;
/// What the gateway needs for `APPLICATIONS` in its cache.
const APPLICATIONS_KIB: u64 = 15 * 1024;

/// Fewer than a process may usually have open, and than are allowed from one address.
const CONNECTIONS: u64 = 800;
/// What the gateway needs for `CONNECTIONS` that have just served a request: 7 KiB each. Soon after, they need 2.
const CONNECTIONS_KIB: u64 = CONNECTIONS * 7;

/// Of a program, of which one must be in time.
const MAX_STARTS: usize = 15;

#[tokio::test]
async fn idle_programs_use_little_memory() {
    let mut stack = Stack::start().await;
    log_in_by_redirect(&stack.client(), "ada").await;
    for (program, bound) in [
        (Program::Gateway, GATEWAY_KIB),
        (Program::V1, BACKEND_KIB),
        (Program::V2, BACKEND_KIB),
    ] {
        let resident = stack.running(program).resident_kib();
        assert!(
            resident < bound * MEMORY_FACTOR,
            "{program} has {resident} KiB"
        );
    }
}

#[tokio::test]
async fn cached_applications_and_idle_connections_need_little_memory() {
    let backend = RecordingBackend::start().await;
    let builder = Stack::builder().multi().in_front_of(&backend);
    let mut stack = builder.start().await;
    let of_none = stack.running(Program::Gateway).resident_kib();
    let mut file = "ident,key,name\n".to_owned();
    for number in 0..APPLICATIONS {
        let key = format!("4283fefc63f0cd0e873a0000c6d07ef7{number:032x}");
        writeln!(file, "app-{number},{key},Application {number}").unwrap();
    }
    let path = stack.folder().join("apps.csv");
    std::fs::write(&path, file).unwrap();
    let imported = stack.command(&["app", "import", &path.display().to_string()]);
    assert!(imported.status.success(), "{imported:?}");
    stack.restart(Program::Gateway).await;
    until("all applications are cached", || async {
        let scrape = Scrape::of(stack.addresses().management).await;
        let cached = scrape.value("signpost_cache_entries", &[("cache", "applications")]);
        cached.filter(|&cached| cached >= APPLICATIONS as f64)
    })
    .await;
    // What was freed goes back to the system later, with the end of threads that are idle.
    let bound = of_none + APPLICATIONS_KIB * MEMORY_FACTOR;
    let gateway = stack.running(Program::Gateway);
    let is_below = || async { (gateway.resident_kib() < bound).then_some(()) };
    until("applications take too much memory", is_below).await;
    let before = gateway.resident_kib();
    let get = request("GET", "/x", &["Acme-X-App: app-1"], b"");
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = RawConnection::open(stack.addresses().gateway).await;
        connection.send(&get).await;
        assert_eq!(connection.response().await.unwrap().status, 200);
        idle.push(connection);
    }
    let grown = stack.running(Program::Gateway).resident_kib();
    let grown = grown.saturating_sub(before);
    assert!(grown < CONNECTIONS_KIB * MEMORY_FACTOR, "{grown} KiB");
}

#[tokio::test]
async fn programs_are_ready_within_a_second() {
    let mut stack = Stack::start().await;
    for program in [Program::Gateway, Program::V1, Program::V2] {
        // Other tests use the processors, too: the best of some starts counts.
        let (mut best, mut starts) = (Duration::MAX, 0);
        while best >= Duration::from_secs(1) * TIME_FACTOR {
            assert!(starts < MAX_STARTS, "{program} took {best:?}");
            let start = Instant::now();
            stack.restart(program).await;
            best = best.min(start.elapsed());
            starts += 1;
        }
    }
}

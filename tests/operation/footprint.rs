//! Memory when idle, and the time from start to ready.
//!
//! The bounds are for release builds. A debug build carries its checks and its unoptimised code, so it
//! gets twice the memory and five times the time: enough to notice when something grows tenfold.

use std::time::{Duration, Instant};

use end_to_end::{logins::log_in_by_redirect, program::Program, stack::Stack};

const MEMORY_FACTOR: u64 = if cfg!(debug_assertions) { 2 } else { 1 };
const TIME_FACTOR: u32 = if cfg!(debug_assertions) { 5 } else { 1 };
const GATEWAY_KIB: u64 = 40 * 1024;
const BACKEND_KIB: u64 = 30 * 1024;

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
async fn programs_are_ready_within_a_second() {
    let mut stack = Stack::start().await;
    for program in [Program::Gateway, Program::V1, Program::V2] {
        // Other tests use the processors, too: the best of three counts.
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            stack.restart(program).await;
            best = best.min(start.elapsed());
        }
        assert!(
            best < Duration::from_secs(1) * TIME_FACTOR,
            "{program} took {best:?}"
        );
    }
}

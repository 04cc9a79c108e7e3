//! Partial writes, and deadlines that move.

use std::{future::poll_fn, task::Waker, time::Duration};

use super::*;
use crate::request::scripted::{Script, Step};

#[tokio::test]
async fn parts_are_written_in_one_write_if_the_stream_accepts_it() {
    let mut stream = Script::new([Step::Take(100)]);
    let mut writer = PartsWriter::new([&b"head"[..], b"", b"form"]);
    let written = poll_fn(|context| writer.poll_write(&mut stream, context)).await;
    assert_eq!(written.unwrap(), 8);
    let flushed = poll_fn(|context| writer.poll_write(&mut stream, context)).await;
    assert_eq!(flushed.unwrap(), 0);
    assert_eq!(stream.written(), b"headform");
}

#[tokio::test]
async fn parts_are_written_whole_by_partial_writes() {
    for size in 1..=9 {
        let mut stream = Script::new([Step::TakeAlways(size)]);
        let mut writer = PartsWriter::new([&b"abc"[..], b"de", b"", b"fghi"]);
        let mut write = async || {
            let written = poll_fn(|context| writer.poll_write(&mut stream, context));
            written.await.unwrap()
        };
        while write().await > 0 {}
        assert_eq!(stream.written(), b"abcdefghi", "{size}");
    }
}

#[tokio::test]
async fn a_write_of_zero_bytes_is_an_error() {
    let mut stream = Script::new([Step::Take(0)]);
    let mut writer = PartsWriter::new([b"a"]);
    let written = poll_fn(|context| writer.poll_write(&mut stream, context)).await;
    assert_eq!(written.unwrap_err().kind(), io::ErrorKind::WriteZero);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_passes_on_time_after_any_other_deadline() {
    let mut timer = Timer::default();
    for milliseconds in [500, 20, 3000, 1, 700] {
        let start = Instant::now();
        let deadline = start + Duration::from_millis(milliseconds);
        poll_fn(|context| timer.poll(context, deadline)).await;
        assert_eq!(start.elapsed(), Duration::from_millis(milliseconds));
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_deadline_does_not_reset_the_timer() {
    let mut timer = Timer::default();
    let context = &mut Context::from_waker(Waker::noop());
    let start = Instant::now();
    for seconds in 1..100 {
        let deadline = start + Duration::from_secs(seconds);
        assert!(timer.poll(context, deadline).is_pending());
    }
    let armed = timer.sleep.as_ref().unwrap().deadline();
    assert_eq!(armed, start + Duration::from_secs(1));
}

const LIMITS: SendLimits = SendLimits {
    timeout: Duration::from_secs(10),
    min_rate: NonZeroU32::new(100).unwrap(),
};

/// How long a client that takes `bytes` every `interval` is served, up to an hour.
async fn served_for(bytes: usize, interval: Duration, pace: &mut SendPace) -> Duration {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(3600) {
        let next = Instant::now() + interval;
        let deadline = pace.deadline(LIMITS);
        sleep_until(deadline.min(next)).await;
        if deadline < next {
            break;
        }
        pace.take(bytes, LIMITS);
    }
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_client_below_the_smallest_rate_is_served_for_the_timeout_and_what_its_bytes_pay() {
    let second = Duration::from_secs(1);
    for (bytes, interval, seconds) in [
        (100, second, 3600),
        (1000, 9 * second, 3600),
        (1_000_000, 11 * second, 10),
        (0, 60 * second, 10),
        (1, second, 10),
        (50, second, 19),
        (90, second, 91),
    ] {
        let served = served_for(bytes, interval, &mut SendPace::default()).await;
        let seconds = seconds * second;
        assert!(
            served >= seconds && served <= seconds + interval,
            "{bytes} in {interval:?}: {served:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_waits_count_and_no_bytes_pay_for_later_ones() {
    let mut pace = SendPace::default();
    // What the buffers take at once, and an hour in which the backend sends nothing.
    pace.take(10_000_000, LIMITS);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let served = served_for(1, Duration::from_secs(2), &mut pace).await;
    assert!(served <= Duration::from_secs(12), "{served:?}");
}

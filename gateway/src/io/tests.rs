//! Partial writes, and deadlines that move.

use std::{future::poll_fn, task::Waker, time::Duration};

use super::*;
use crate::scripted::{Script, Step};

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

//! An unread log blocks neither requests nor the end of a program. #9

use std::{
    io::{PipeReader, Read},
    net::SocketAddr,
};

use end_to_end::{
    metrics::Scrape,
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    stack::Stack,
    waiting::WAIT_TIMEOUT,
};
use tokio::task::spawn_blocking;

const REQUESTS: usize = 2000;
/// Requests sent at once: few enough for the socket's buffers.
const BATCH: usize = 50;
/// Both programs buffer about 1 MiB of the log for a slow reader; 2,000 lines with such paths are more.
const PATH_LENGTH: usize = 500;

#[tokio::test]
async fn a_stalled_log_does_not_stop_the_gateway() {
    let (mut stack, backend) = Stack::recording().await;
    let reader = stack.restart_into_pipe(Program::Gateway).await;
    serve_unread(&stack, &backend).await;
    assert_stops(&mut stack, Program::Gateway).await;
    drop(reader);
}

#[tokio::test]
async fn the_gateway_logs_how_many_lines_were_dropped() {
    let (mut stack, backend) = Stack::recording().await;
    let reader = stack.restart_into_pipe(Program::Gateway).await;
    serve_unread(&stack, &backend).await;
    let dropped = assert_every_line_is_accounted_for(reader).await;
    let scrape = Scrape::of(stack.addresses().management).await;
    let counted = scrape.sum("signpost_log_lines_dropped_total", &[]);
    assert!(counted >= dropped as f64, "{counted} of {dropped}");
    assert_stops(&mut stack, Program::Gateway).await;
}

#[tokio::test]
async fn a_stalled_log_does_not_stop_a_backend() {
    let mut stack = Stack::start().await;
    let reader = stack.restart_into_pipe(Program::V1).await;
    call(stack.addresses().v1, 404).await;
    assert_stops(&mut stack, Program::V1).await;
    drop(reader);
}

#[tokio::test]
async fn a_backend_logs_how_many_lines_were_dropped() {
    let mut stack = Stack::start().await;
    let reader = stack.restart_into_pipe(Program::V1).await;
    call(stack.addresses().v1, 404).await;
    assert_every_line_is_accounted_for(reader).await;
    assert_stops(&mut stack, Program::V1).await;
}

/// Fills the log from both sides: a thread of its own writes access lines, the serving threads write errors.
async fn serve_unread(stack: &Stack, backend: &RecordingBackend) {
    let gateway = stack.addresses().gateway;
    call(gateway, 200).await;
    backend.behave(Behaviour::responding(Delivery::HangUp));
    for _ in 0..BATCH {
        let mut connection = RawConnection::open(gateway).await;
        connection.send(&request("GET", "/fails", &[], b"")).await;
        assert_eq!(connection.response().await.unwrap().status, 502);
    }
    backend.behave(Behaviour::default());
    call(gateway, 200).await;
}

async fn call(address: SocketAddr, status: u16) {
    let path = format!("/{}", "x".repeat(PATH_LENGTH - 1));
    let batch = request("GET", &path, &[], b"").repeat(BATCH);
    let mut connection = RawConnection::open(address).await;
    for _ in 0..REQUESTS / BATCH {
        connection.send(&batch).await;
        for _ in 0..BATCH {
            assert_eq!(connection.response().await.unwrap().status, status);
        }
    }
}

async fn assert_stops(stack: &mut Stack, program: Program) {
    stack.running(program).terminate();
    let ended = stack.wait_for_exit(program).await;
    assert!(ended.success(), "{ended}");
}

/// Reads the log up to the line with the number of dropped lines, and checks that number. Returns it.
async fn assert_every_line_is_accounted_for(mut reader: PipeReader) -> usize {
    let read = spawn_blocking(move || {
        let (mut log, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
        loop {
            let length = reader.read(&mut piece).unwrap();
            assert!(length > 0, "the program ended");
            log.extend_from_slice(&piece[..length]);
            let log = String::from_utf8_lossy(&log);
            if let Some(dropped) = dropped_lines(&log) {
                let written = log.lines().filter(|line| line.contains("/xxx")).count();
                // The pipe stays open until the numbers are checked.
                return (written, dropped, reader);
            }
        }
    });
    let (written, dropped, _reader) = tokio::time::timeout(WAIT_TIMEOUT, read)
        .await
        .expect("the count comes in time")
        .unwrap();
    assert!(dropped > 0, "nothing was dropped");
    assert!(written + dropped >= REQUESTS, "{written} and {dropped}");
    dropped
}

fn dropped_lines(log: &str) -> Option<usize> {
    let line = log
        .lines()
        .find(|line| line.contains("log lines were dropped"))?;
    let (_, number) = line.split_once("dropped_lines=")?;
    number.split_whitespace().next()?.parse().ok()
}

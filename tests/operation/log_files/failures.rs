//! A full disk: requests go on, lost lines are counted, and no line is torn.

use std::{fs, process::Command};

use end_to_end::{
    program::{Program, output_text},
    recording_backend::RecordingBackend,
    stack::Stack,
    waiting::until,
};

use super::{dropped, read_until, read_with};

#[tokio::test]
async fn requests_go_on_while_the_disk_is_full_and_lost_lines_are_counted() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[log]\noutput = \"/dev/full\"")
        .start()
        .await;
    for _ in 0..50 {
        stack.client().get("/served").send().await.ok();
    }
    until("all lost lines to be counted", || async {
        (dropped(&stack, "access").await == 50).then_some(())
    })
    .await;
    assert!(
        dropped(&stack, "error").await >= 1,
        "the line about the start"
    );
    let free = stack.folder().join("free.log");
    stack.configure(Program::Gateway, &format!("[log]\noutput = {free:?}"));
    let output = stack.reload(Program::Gateway);
    assert!(output.status.success(), "{}", output_text(&output));
    stack.client().get("/written").send().await.ok();
    read_with(&free, "http.path=/written").await;
    assert_eq!(dropped(&stack, "access").await, 50);
}

#[tokio::test]
async fn a_full_disk_does_not_stop_a_backend() {
    let full = "[log]\noutput = \"/dev/full\"";
    let stack = Stack::builder().backends(full).start().await;
    for _ in 0..20 {
        stack.client().post("/login").signed().send().await.ok();
    }
}

/// Limit of the file's size. 8 blocks of `ulimit -f`: of 512 bytes in POSIX' shell, of 1,024 in bash.
const LIMIT: &str = "ulimit -f 8; exec \"$0\" \"$@\"";

#[tokio::test]
async fn no_line_is_torn_by_a_disk_that_fills_up_and_the_count_is_logged_when_it_has_room() {
    let backend = RecordingBackend::start().await;
    let mut stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[log]\noutput = \"$FOLDER/all.log\"\nformat = \"json\"")
        .start()
        .await;
    let path = stack.folder().join("all.log");
    let mut command = Command::new("sh");
    command.args(["-c", LIMIT]).arg(Program::Gateway.path());
    command.current_dir(stack.folder()).env_remove("RUST_LOG");
    stack.restart_as(Program::Gateway, command).await;
    let client = stack.client();
    let mut requests = 0;
    while dropped(&stack, "access").await == 0 {
        client.get("/counted").send().await.ok();
        requests += 1;
        assert!(requests < 1000, "the limit has no effect");
    }
    let begun = fs::read_to_string(&path).unwrap();
    // Makes room, as an operator would. The program appends, so it goes on at the beginning.
    let kept = stack.folder().join("kept");
    fs::copy(&path, &kept).unwrap();
    fs::File::options()
        .write(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    client.get("/counted/last").send().await.ok();
    requests += 1;
    let is_complete = |read: &str| read.contains("dropped_lines") && read.contains("/last");
    let written = read_until(&path, "the count and the last line", is_complete).await;
    let both = format!("{begun}{written}");
    let mut reported = 0;
    let mut access = 0;
    for line in both.lines() {
        let line: serde_json::Value = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{error}, torn: {line}\n{both}"));
        if let Some(lines) = line["dropped_lines"].as_u64() {
            reported += lines;
            let cause = line["cause"].as_str().unwrap();
            assert!(cause.contains("os error 27"), "{cause}");
        }
        access += u64::from(
            line["http.path"]
                .as_str()
                .is_some_and(|path| path.starts_with("/counted")),
        );
    }
    let lost = dropped(&stack, "access").await + dropped(&stack, "error").await;
    assert_eq!(reported, lost, "{both}");
    assert_eq!(access + dropped(&stack, "access").await, requests, "{both}");
}

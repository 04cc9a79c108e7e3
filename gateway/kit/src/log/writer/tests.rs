//! Queues, dropped lines and reopening.

use std::{
    fs,
    io::{self, PipeReader, Read},
};

use super::{sink::Sink, *};
use crate::{
    config::shared_keys::{LogFormat, LogOutput},
    log::test_subscriber,
};

/// A log that writes into a pipe.
fn piped() -> (LogWriter, PipeReader) {
    let (reader, output) = io::pipe().unwrap();
    let dropped = DroppedLines::default();
    let sink = Sink::new(output.into(), None);
    let error = Output::start(LogOutput::Stdout, sink, LogKind::Error, dropped.clone()).unwrap();
    let outputs = RwLock::new(Outputs {
        error,
        access: None,
    });
    (LogWriter(Arc::new(Shared { outputs, dropped })), reader)
}

fn push(writer: &LogWriter, kind: LogKind, line: &str) {
    writer
        .output(kind)
        .push(kind, format!("{line}\n").as_bytes());
}

/// Reads until `end` was read; more may follow it.
fn read_until(reader: &mut PipeReader, end: &str) -> String {
    let (mut read, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    while !String::from_utf8_lossy(&read).contains(end) {
        let length = reader.read(&mut piece).unwrap();
        read.extend_from_slice(&piece[..length]);
    }
    String::from_utf8(read).unwrap()
}

fn to_files(output: &str, access_output: Option<&str>) -> Log {
    let file = |path: &str| LogOutput::File(path.into());
    Log {
        format: LogFormat::Human,
        filter: "info".to_owned(),
        access: true,
        output: file(output),
        access_output: access_output.map(file),
        access_sample: 1,
    }
}

#[test]
fn lines_are_written_in_order() {
    let (writer, mut reader) = piped();
    for number in 0..100 {
        push(&writer, LogKind::Access, &format!("line {number}"));
    }
    writer.flush();
    let read = read_until(&mut reader, "line 99\n");
    let expected: String = (0..100).map(|number| format!("line {number}\n")).collect();
    assert_eq!(read, expected);
}

#[test]
fn a_stalled_reader_blocks_no_thread_and_dropped_lines_are_counted() {
    let (writer, mut reader) = piped();
    // Set globally, since the writer thread logs, too.
    tracing::subscriber::set_global_default(test_subscriber(&writer)).unwrap();
    let line = "x".repeat(1023);
    let lines = 4 * MAX_QUEUED_BYTES / 1024;
    for number in 0..lines {
        push(&writer, LogKind::ALL[number % 2], &line);
    }
    let before = Instant::now();
    writer.flush();
    assert!(before.elapsed() < 4 * FLUSH_TIMEOUT);
    let counted = writer.dropped_lines();
    let read = read_until(&mut reader, "log lines were dropped");
    let kept = read.lines().filter(|read| *read == line).count();
    let dropped: usize = read
        .split_whitespace()
        .zip(read.split_whitespace().skip(1))
        .find_map(|(count, word)| (word == "log").then(|| count.parse().ok())?)
        .unwrap();
    // Other tests may log meanwhile.
    assert!(kept + dropped >= lines, "{kept} + {dropped}");
    assert!(dropped >= MAX_QUEUED_BYTES / 1024, "{dropped}");
    for kind in LogKind::ALL {
        assert!(counted.value(kind) >= MAX_QUEUED_BYTES as u64 / 2048 - 1);
    }
}

#[test]
fn a_closed_reader_blocks_no_thread_and_its_lines_are_counted() {
    let (writer, reader) = piped();
    drop(reader);
    push(&writer, LogKind::Access, "lost");
    writer.flush();
    let before = Instant::now();
    push(&writer, LogKind::Error, "lost");
    writer.flush();
    // What cannot be reported does not delay a stop.
    assert!(before.elapsed() < FLUSH_TIMEOUT);
    assert_eq!(
        LogKind::ALL.map(|kind| writer.dropped_lines().value(kind)),
        [1, 1]
    );
}

#[test]
fn lines_before_a_reopening_are_in_the_old_file_and_others_in_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let log = to_files(&path("error"), Some(&path("access")));
    let writer = LogWriter::open(&log).unwrap();
    for number in 0..50 {
        for kind in LogKind::ALL {
            push(&writer, kind, &format!("{number}"));
            fs::rename(
                path(kind.as_str()),
                path(&format!("{}.{number}", kind.as_str())),
            )
            .unwrap();
        }
        writer.reopen();
        // A rotation waits for the new file.
        writer.flush();
    }
    for kind in LogKind::ALL {
        for number in 0..50 {
            let read = fs::read_to_string(path(&format!("{}.{number}", kind.as_str())));
            assert_eq!(read.unwrap(), format!("{number}\n"));
        }
        assert_eq!(fs::read_to_string(path(kind.as_str())).unwrap(), "");
    }
}

#[test]
fn another_path_is_used_from_the_next_line_on_and_an_impossible_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let writer = LogWriter::open(&to_files(&path("a"), None)).unwrap();
    push(&writer, LogKind::Access, "1");
    let impossible = to_files(&path("b"), Some(&path("none/b")));
    let error = format!("{:#}", writer.prepare(&impossible).unwrap_err());
    assert!(
        error.contains("log.access_output") && error.contains(&path("none/b")),
        "{error}"
    );
    push(&writer, LogKind::Access, "2");
    let apart = to_files(&path("a"), Some(&path("access")));
    writer.replace(writer.prepare(&apart).unwrap());
    push(&writer, LogKind::Access, "3");
    push(&writer, LogKind::Error, "4");
    writer.replace(
        writer
            .prepare(&to_files(&path("c"), Some(&path("c"))))
            .unwrap(),
    );
    push(&writer, LogKind::Access, "5");
    writer.flush();
    assert_eq!(read("a"), "1\n2\n4\n");
    assert_eq!(read("access"), "3\n");
    assert_eq!(read("c"), "5\n");
}

#[test]
fn a_log_without_files_has_nothing_to_reopen() {
    let (writer, mut reader) = piped();
    push(&writer, LogKind::Error, "one");
    writer.reopen();
    push(&writer, LogKind::Error, "two");
    assert_eq!(read_until(&mut reader, "two\n"), "one\ntwo\n");
}

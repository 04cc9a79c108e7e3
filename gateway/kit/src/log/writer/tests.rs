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
    let output = Output::start(LogOutput::Stdout, sink, dropped.clone()).unwrap();
    let output = RwLock::new(output);
    (LogWriter(Arc::new(Shared { output, dropped })), reader)
}

fn push(writer: &LogWriter, kind: LogKind, line: &str) {
    writer.output().push(kind, format!("{line}\n").as_bytes());
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

fn to_file(path: &str) -> Log {
    Log {
        format: LogFormat::Human,
        filter: "info".to_owned(),
        output: LogOutput::File(path.into()),
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
    assert!(before.elapsed() < 10 * FLUSH_TIMEOUT);
    let counted = writer.dropped_lines();
    let (mut read, mut kept, mut dropped) = (String::new(), 0, 0);
    // In one report, or in several. Other tests may log meanwhile.
    while kept + dropped < lines {
        read += &read_until(&mut reader, "\n");
        kept = read.lines().filter(|read| *read == line).count();
        let reports = read.split("dropped_lines=").skip(1);
        let numbers = reports.filter_map(|report| report.split_whitespace().next());
        dropped = numbers.map(|number| number.parse::<usize>().unwrap()).sum();
    }
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
    writer.flush_patiently();
    let before = Instant::now();
    push(&writer, LogKind::Error, "lost");
    writer.flush_patiently();
    // What cannot be reported does not delay a stop: it would take all of the flush's time.
    assert!(before.elapsed() < 8 * FLUSH_TIMEOUT);
    assert_eq!(
        LogKind::ALL.map(|kind| writer.dropped_lines().value(kind)),
        [1, 1]
    );
}

#[test]
fn lines_before_a_reopening_are_in_the_old_file_and_others_in_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let writer = LogWriter::open(&to_file(&path("log"))).unwrap();
    for number in 0..50 {
        for kind in LogKind::ALL {
            push(&writer, kind, &format!("{number}"));
        }
        fs::rename(path("log"), path(&format!("log.{number}"))).unwrap();
        writer.reopen();
        // A rotation waits for the new file.
        writer.flush_patiently();
    }
    for number in 0..50 {
        let read = fs::read_to_string(path(&format!("log.{number}")));
        assert_eq!(read.unwrap(), format!("{number}\n{number}\n"));
    }
    assert_eq!(fs::read_to_string(path("log")).unwrap(), "");
}

#[test]
fn another_path_is_used_from_the_next_line_on_and_an_impossible_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let writer = LogWriter::open(&to_file(&path("a"))).unwrap();
    push(&writer, LogKind::Access, "1");
    let error = writer.prepare(&to_file(&path("none/b"))).unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("log.output") && error.contains(&path("none/b")),
        "{error}"
    );
    push(&writer, LogKind::Access, "2");
    writer.replace(writer.prepare(&to_file(&path("a"))).unwrap());
    push(&writer, LogKind::Error, "3");
    let old = writer.output();
    writer.replace(writer.prepare(&to_file(&path("c"))).unwrap());
    push(&writer, LogKind::Access, "4");
    for output in [old, writer.output()] {
        output.flush(Instant::now() + 15 * FLUSH_TIMEOUT);
    }
    assert_eq!(read("a"), "1\n2\n3\n");
    assert_eq!(read("c"), "4\n");
}

#[test]
fn a_log_without_files_has_nothing_to_reopen() {
    let (writer, mut reader) = piped();
    push(&writer, LogKind::Error, "one");
    writer.reopen();
    push(&writer, LogKind::Error, "two");
    assert_eq!(read_until(&mut reader, "two\n"), "one\ntwo\n");
}

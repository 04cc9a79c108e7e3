//! Format, filter, fields.

use std::fs;

use serde_json::Value;
use tracing_log::log::{self, Log as _, Record};

use super::{
    lines::{MAX_NAME_BYTES, RETAINED_BYTES, retained_bytes},
    *,
};
use crate::config::shared_keys::LogOutput;

/// A log into a file.
struct TestLog {
    folder: tempfile::TempDir,
    logging: Logging,
    subscriber: Option<Box<dyn Subscriber + Send + Sync>>,
}

impl TestLog {
    fn new(filter: &str, format: LogFormat) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = config(&folder, filter, format);
        let writer = LogWriter::open(&log).unwrap();
        let (subscriber, filter, format) = subscriber(&log, &writer).unwrap();
        Self {
            folder,
            logging: Logging {
                writer,
                filter,
                format,
            },
            subscriber: Some(subscriber),
        }
    }

    fn apply(&self, filter: &str, format: LogFormat) {
        let log = config(&self.folder, filter, format);
        let outputs = self.logging.writer.prepare(&log).unwrap();
        let logging = &self.logging;
        PreparedLog {
            logging,
            log,
            outputs,
        }
        .apply();
    }

    /// The lines of both logs written while `work` runs; it may change the log.
    fn written(mut self, work: impl FnOnce(&Self)) -> [String; 2] {
        let subscriber = self.subscriber.take().unwrap();
        tracing::subscriber::with_default(subscriber, || work(&self));
        self.logging.writer.flush();
        ["error", "access"].map(|name| fs::read_to_string(self.folder.path().join(name)).unwrap())
    }
}

fn config(folder: &tempfile::TempDir, filter: &str, format: LogFormat) -> Log {
    let file = |name| LogOutput::File(folder.path().join(name));
    Log {
        format,
        filter: filter.to_owned(),
        access: true,
        output: file("error"),
        access_output: Some(file("access")),
        access_sample: 1,
    }
}

fn log_from_library(target: &str, level: log::Level) {
    log_text_from_library(target, level, "said");
}

fn log_text_from_library(target: &str, level: log::Level, text: &str) {
    let mut record = Record::builder();
    let record = record.target(target).level(level);
    LogTracer::new().log(&record.args(format_args!("{text}")).build());
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn libraries_are_quiet_unless_the_filter_names_them() {
    let of = |filter: &str, target: &str, level| {
        let log = TestLog::new(filter, LogFormat::Human);
        let [error, _] = log.written(|_| log_from_library(target, level));
        error
    };
    for (target, quiet, loud) in [
        ("pingora_core::server", log::Level::Info, log::Level::Warn),
        (
            "pingora_load_balancing",
            log::Level::Warn,
            log::Level::Error,
        ),
        ("deadpool.postgres", log::Level::Warn, log::Level::Error),
        ("rustls::msgs", log::Level::Warn, log::Level::Error),
        ("h2::proto::ping_pong", log::Level::Warn, log::Level::Error),
    ] {
        assert_eq!(of("debug", target, quiet), "", "{target}");
        assert!(of("info", target, loud).contains("said"), "{target}");
    }
    assert!(of("info,deadpool=info", "deadpool.postgres", log::Level::Info).contains("said"));
    assert!(of("info", "tokio_postgres::query", log::Level::Info).contains("said"));
    assert_eq!(of("warn", "tokio_postgres::query", log::Level::Info), "");
}

#[test]
fn a_line_of_the_log_crate_has_its_own_target_and_no_further_fields() {
    let log = TestLog::new("info", LogFormat::Json);
    let [error, _] = log.written(|_| log_from_library("tokio_postgres::query", log::Level::Warn));
    let line = json(&error);
    let keys: Vec<_> = line.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["level", "message", "target", "timestamp"]);
    assert_eq!(line["target"], "tokio_postgres::query");
    assert_eq!(line["level"], "WARN");
}

#[test]
fn format_and_filter_can_change_within_a_request() {
    let log = TestLog::new("info", LogFormat::Human);
    let [lines, _] = log.written(|log| {
        let span = tracing::info_span!("request", request.id = "r-1");
        let _entered = span.enter();
        tracing::debug!("filtered out");
        tracing::info!("first");
        log.apply("debug", LogFormat::Json);
        tracing::debug!("second");
        let span = tracing::info_span!("inner", request.id = "r-2");
        span.in_scope(|| tracing::info!("third"));
        log.apply("warn", LogFormat::Human);
        tracing::info!("filtered out");
        tracing::warn!("fourth");
    });
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].contains(" INFO request{request.id=\"r-1\"}: first"));
    assert_eq!(json(lines[1])["message"], "second");
    assert_eq!(json(lines[1])["request.id"], "r-1");
    assert_eq!(json(lines[2])["request.id"], "r-2");
    assert!(lines[3].contains("fourth") && lines[3].contains("r-1"));
}

#[test]
fn a_field_is_in_the_message_of_plain_text_but_not_of_json() {
    let event = || {
        tracing::info!(
            backend.addr = %"127.0.0.1:1",
            cause = "it said \"no\"\n",
            times = 3,
            part = 1.5,
            "{{backend.addr}} failed {{times}} times: {{cause}}, {{unknown}} {{"
        );
    };
    let [human, _] = TestLog::new("info", LogFormat::Human).written(|_| event());
    let expected = "  INFO 127.0.0.1:1 failed 3 times: it said \"no\"\\n, {unknown} { backend.addr=127.0.0.1:1 \
                    cause=\"it said \\\"no\\\"\\n\" times=3 part=1.5\n";
    assert!(human.ends_with(expected), "{human}");
    let [line, _] = TestLog::new("info", LogFormat::Json).written(|_| event());
    let line = json(&line);
    assert_eq!(
        line["message"],
        "{backend.addr} failed {times} times: {cause}, {unknown} {"
    );
    assert_eq!(line["backend.addr"], "127.0.0.1:1");
    assert_eq!(line["cause"], "it said \"no\"\n");
    assert_eq!((&line["times"], &line["part"]), (&3.into(), &1.5.into()));
    let timestamp = line["timestamp"].as_str().unwrap();
    assert_eq!(timestamp.len(), "2026-01-01T00:00:00.000000Z".len());
}

#[test]
fn a_librarys_message_stays_as_it_is_and_is_short() {
    for format in [LogFormat::Human, LogFormat::Json] {
        let short = "illegal name {message} {} {{ {log.target} {target}";
        let [line, _] = TestLog::new("info", format)
            .written(|_| log_text_from_library("tls", log::Level::Warn, short));
        assert!(line.contains(short), "{line}");
        for text in ["{message}".repeat(7_000), "{".repeat(60_000)] {
            let [line, _] = TestLog::new("info", format)
                .written(|_| log_text_from_library("tls", log::Level::Warn, &text));
            assert!(line.contains(&format!("{}…", &text[..8 * 1024])), "{line}");
            assert!(line.len() < 8 * 1024 + 200, "{}", line.len());
        }
    }
}

#[test]
fn a_message_with_fields_is_expanded_once_and_within_a_limit() {
    let of = |text: &str, value: &str| {
        let log = TestLog::new("info", LogFormat::Human);
        let [line, _] = log.written(|_| tracing::info!(name = value, "{text}"));
        line.split_once(" INFO ").unwrap().1.to_owned()
    };
    // A value's braces are no placeholders.
    let line = of("{name}, {name}", "{name} {message}");
    assert!(
        line.starts_with("{name} {message}, {name} {message} name=\""),
        "{line}"
    );
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    let unknown = format!("{{message}} {{{{name}} {{{long}}} {{}} }} {{name");
    let expected = format!("{{message}} {{V {{{long}}} {{}} }} {{name name=\"V\"\n");
    assert_eq!(of(&unknown, "V"), expected);
    for (text, value) in [
        ("{name}".repeat(10_000), "v".repeat(10_000)),
        ("{name}".to_owned(), "\u{85}é".repeat(3_000)),
        ("{".repeat(60_000), "v".to_owned()),
        ("{message}".repeat(7_000), "v".to_owned()),
    ] {
        let line = of(&text, &value);
        let (message, _) = line.split_once("… name=").unwrap();
        assert!((8 * 1024 - 4..=8 * 1024).contains(&message.len()));
    }
}

#[test]
fn a_long_line_leaves_no_large_buffer() {
    let value = "v".repeat(10 * RETAINED_BYTES);
    TestLog::new("info", LogFormat::Human).written(|_| tracing::info!(value, "said"));
    assert!(retained_bytes() <= 2 * RETAINED_BYTES);
}

#[test]
fn a_spans_field_is_there_once_with_its_last_value() {
    let log = TestLog::new("info", LogFormat::Json);
    let [line, _] = log.written(|_| {
        let empty = tracing::field::Empty;
        let outer = tracing::info_span!("request", app.ident = empty, version = "v1", a = 1);
        let _outer = outer.enter();
        outer.record("app.ident", "first");
        outer.record("app.ident", "second");
        let inner = tracing::info_span!("step", a = 2);
        inner.in_scope(|| tracing::info!(version = "v2", "served"));
    });
    assert_eq!(line.matches("\"app.ident\"").count(), 1, "{line}");
    assert_eq!(line.matches("\"version\"").count(), 1, "{line}");
    assert_eq!(line.matches("\"a\"").count(), 1, "{line}");
    let line = json(&line);
    assert_eq!(line["app.ident"], "second");
    assert_eq!((&line["version"], &line["a"]), (&"v2".into(), &2.into()));
}

#[test]
fn nothing_in_a_value_begins_another_line_or_controls_a_terminal() {
    for format in [LogFormat::Human, LogFormat::Json] {
        let [lines, _] = TestLog::new("info", format).written(|_| {
            let forged = "a\r\n2026 ERROR \u{1b}[31m\u{85}\u{7f}\0";
            let span = tracing::info_span!("request", http.path = %forged);
            span.in_scope(|| tracing::info!(%forged, "{forged}"));
        });
        assert_eq!(lines.matches('\n').count(), 1, "{lines}");
        let line = lines.trim_end_matches('\n');
        assert!(!line.bytes().any(|byte| byte.is_ascii_control()), "{line}");
    }
}

#[test]
fn access_lines_go_to_their_own_output() {
    let log = TestLog::new("info", LogFormat::Human);
    let [error, access] = log.written(|_| {
        tracing::info!(target: ACCESS_TARGET, "answered");
        tracing::info!("started");
    });
    assert!(error.contains("started") && !error.contains("answered"));
    assert!(access.contains("answered") && !access.contains("started"));
}

#[test]
fn a_value_that_logs_when_it_is_shown_gets_a_line_of_its_own() {
    struct Loud;
    impl std::fmt::Display for Loud {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            tracing::info!("inner");
            formatter.write_str("outer")
        }
    }
    let [lines, _] =
        TestLog::new("info", LogFormat::Json).written(|_| tracing::info!(loud = %Loud, "said"));
    // `tracing` itself drops events within an event of the same thread.
    assert_eq!(json(lines.lines().last().unwrap())["loud"], "outer");
}

#[test]
fn an_invalid_filter_is_rejected() {
    filter("info,login=debug").unwrap();
    filter("login=loud").unwrap_err();
}

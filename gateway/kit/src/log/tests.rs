//! Format, filter, fields.

use std::fs;

use serde_json::Value;
use tracing_log::log::{self, Log as _, Record};

use super::{lines::MAX_VALUE_BYTES, *};

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
        let (logging, subscriber) = Logging::with_subscriber(&log).unwrap();
        Self {
            folder,
            logging,
            subscriber: Some(subscriber),
        }
    }

    fn apply(&self, filter: &str, format: LogFormat) {
        let log = config(&self.folder, filter, format);
        let output = self.logging.writer.prepare(&log).unwrap();
        let logging = &self.logging;
        PreparedLog {
            logging,
            log,
            output,
        }
        .apply();
    }

    /// The lines written while `work` runs; it may change the log.
    fn written(mut self, work: impl FnOnce(&Self)) -> String {
        let subscriber = self.subscriber.take().unwrap();
        tracing::subscriber::with_default(subscriber, || work(&self));
        self.logging.writer.flush_patiently();
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

fn config(folder: &tempfile::TempDir, filter: &str, format: LogFormat) -> Log {
    Log {
        format,
        filter: filter.to_owned(),
        output: LogOutput::File(folder.path().join("log")),
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
        log.written(|_| log_from_library(target, level))
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
    let line = log.written(|_| log_from_library("tokio_postgres::query", log::Level::Warn));
    let line = json(&line);
    let keys: Vec<_> = line.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["level", "message", "target", "timestamp"]);
    assert_eq!(line["target"], "tokio_postgres::query");
    assert_eq!(line["level"], "WARN");
}

#[test]
fn format_and_filter_can_change_within_a_request() {
    let log = TestLog::new("info", LogFormat::Human);
    let lines = log.written(|log| {
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
fn fields_follow_the_message_in_both_formats() {
    let event = || {
        tracing::info!(
            backend.addr = %"127.0.0.1:1",
            cause = "it said \"no\"\n",
            times = 3,
            part = 1.5,
            "the backend failed"
        );
    };
    let human = TestLog::new("info", LogFormat::Human).written(|_| event());
    let expected = "  INFO the backend failed backend.addr=127.0.0.1:1 \
                    cause=\"it said \\\"no\\\"\\n\" times=3 part=1.5\n";
    assert!(human.ends_with(expected), "{human}");
    let line = TestLog::new("info", LogFormat::Json).written(|_| event());
    let line = json(&line);
    assert_eq!(line["message"], "the backend failed");
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
        let line = TestLog::new("info", format)
            .written(|_| log_text_from_library("tls", log::Level::Warn, short));
        assert!(line.contains(short), "{line}");
        for text in ["{message}".repeat(7_000), "{".repeat(60_000)] {
            let line = TestLog::new("info", format)
                .written(|_| log_text_from_library("tls", log::Level::Warn, &text));
            assert!(line.contains(&format!("{}…", &text[..8 * 1024])), "{line}");
            assert!(line.len() < 8 * 1024 + 200, "{}", line.len());
        }
    }
}

#[test]
fn braces_are_text_and_a_message_and_a_value_have_a_limit() {
    for (text, value) in [
        ("{name}, {name}", "{name} {message}".to_owned()),
        ("{{", "v".repeat(10 * MAX_VALUE_BYTES)),
        ("{name}", "\u{85}é\n\"".repeat(MAX_VALUE_BYTES)),
    ] {
        for format in [LogFormat::Human, LogFormat::Json] {
            let event = || tracing::info!(shown = %value, quoted = value, number = 1, "{text}");
            let line = TestLog::new("info", format).written(|_| event());
            assert!(line.contains(text), "{line}");
            assert!(line.len() < 2 * MAX_VALUE_BYTES + 200, "{}", line.len());
            let is_cut = value.len() > MAX_VALUE_BYTES;
            assert_eq!(line.matches('…').count(), if is_cut { 2 } else { 0 });
            assert!(line.contains("number") && line.matches('\n').count() == 1);
            if format == LogFormat::Json {
                assert_eq!(json(&line)["shown"], json(&line)["quoted"]);
            }
        }
    }
}

#[test]
fn a_spans_field_is_there_once_with_its_last_value() {
    let log = TestLog::new("info", LogFormat::Json);
    let line = log.written(|_| {
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
        let forged = "a\r\n2026 ERROR \u{1b}[31m\u{85}\u{7f}\0\u{2028}\u{202e}\u{2066}b";
        let lines = TestLog::new("info", format).written(|_| {
            let span = tracing::info_span!("request", http.path = %forged, quoted = forged);
            span.in_scope(|| tracing::info!(%forged, text = forged, debug = ?forged, "{forged}"));
        });
        assert_eq!(lines.matches('\n').count(), 1, "{lines}");
        let line = lines.trim_end_matches('\n');
        assert!(
            line.bytes().all(|byte| matches!(byte, b' '..=b'~')),
            "{line}"
        );
        if format == LogFormat::Json {
            for key in ["http.path", "quoted", "forged", "text"] {
                assert_eq!(json(line)[key], forged, "{key}");
            }
            assert!(json(line)["message"].as_str().unwrap().starts_with(forged));
        }
    }
}

#[test]
fn a_filter_can_leave_out_access_lines() {
    let log = TestLog::new("info,signpost::access=off", LogFormat::Human);
    let lines = log.written(|_| {
        tracing::info!(target: ACCESS_TARGET, "answered");
        tracing::info!("started");
    });
    assert!(lines.contains("started") && !lines.contains("answered"));
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
    let lines =
        TestLog::new("info", LogFormat::Json).written(|_| tracing::info!(loud = %Loud, "said"));
    // `tracing` itself drops events within an event of the same thread.
    assert_eq!(json(lines.lines().last().unwrap())["loud"], "outer");
}

#[test]
fn an_invalid_filter_is_rejected() {
    filter("info,login=debug").unwrap();
    filter("login=loud").unwrap_err();
}

#[test]
fn a_failure_is_not_sampled_away_unless_no_request_has_a_line() {
    assert!(has_access_line(1, false) && has_access_line(1_000_000, true));
    assert!(!has_access_line(0, true) && !has_access_line(0, false));
}

#[test]
fn one_success_in_so_many_is_logged_also_after_a_change() {
    let logged = |one_in, of| (0..of).filter(|_| is_sampled(one_in)).count();
    assert_eq!(logged(10, 1000), 100);
    assert_eq!(logged(1, 7), 7);
    assert_eq!(logged(1_000_000, 900_000), 1);
    // The counter is above the new rate, and begins again.
    assert!((99..=100).contains(&logged(10, 1000)));
}

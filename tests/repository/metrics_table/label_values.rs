//! The values of labels: those that the programs can serve, for the matchers of dashboard and rules.

use std::collections::BTreeMap;

use end_to_end::observe::{
    documented,
    promql::{Matcher, uses},
    rules,
};
use signpost_protocol::problem::ProblemCode;

use super::unsuffixed;

/// Labels with any value: names of the configuration or the store, addresses, and bounds of buckets.
const OPEN: [&str; 12] = [
    "address", "app", "backend", "change", "endpoint", "file", "instance", "le", "listener",
    "program", "provider", "version",
];

const CLASSES: &[&str] = &["2xx", "3xx", "4xx", "5xx"];
const CLASSES_OR_NONE: &[&str] = &["2xx", "3xx", "4xx", "5xx", "none"];
const LIMITS: &[&str] = &["unsigned", "address", "app", "path", "replay_memory"];
const CACHES: &[&str] = &["applications", "accounts", "credentials"];
const MODES: &[&str] = &["polling", "redirect"];

/// All other labels of each metric, with their values; those of problem codes and hints have more.
const VALUES: [(&str, &str, &[&str]); 33] = [
    ("signpost_body_bytes", "where", &["memory", "spool"]),
    (
        "signpost_requests_total",
        "version_source",
        &[
            "", "header", "host", "prefix", "app", "default", "unknown", "state",
        ],
    ),
    ("signpost_requests_total", "status_class", CLASSES_OR_NONE),
    ("signpost_requests_total", "problem_code", &["", "other"]),
    (
        "signpost_application_requests_total",
        "status_class",
        CLASSES_OR_NONE,
    ),
    (
        "signpost_backend_responses_total",
        "status_class",
        &["none", "1xx", "2xx", "3xx", "4xx", "5xx"],
    ),
    ("signpost_verification_failures_total", "cause", &[]),
    (
        "signpost_clock_skew_seconds",
        "verified",
        &["true", "false"],
    ),
    (
        "signpost_clock_skew_seconds",
        "direction",
        &["ahead", "behind"],
    ),
    (
        "signpost_shadow_copies_total",
        "result",
        &[
            "equal",
            "different",
            "failed",
            "refused",
            "dropped",
            "skipped",
            "noise",
        ],
    ),
    (
        "signpost_connections",
        "state",
        &["negotiating", "active", "idle"],
    ),
    (
        "signpost_connections_refused_total",
        "cause",
        &[
            "max",
            "per_address",
            "handshake_rate",
            "proxy_header",
            "tls",
            "certificate_subject",
            "no_protocol",
            "timeout",
        ],
    ),
    ("signpost_rate_limited_total", "limit", LIMITS),
    (
        "signpost_replay_shared_total",
        "outcome",
        &["accepted", "replayed", "unavailable", "full"],
    ),
    (
        "signpost_rate_limit_keys",
        "limit",
        &["unsigned", "address", "app", "path"],
    ),
    ("signpost_cache_lookups_total", "cache", CACHES),
    (
        "signpost_cache_lookups_total",
        "result",
        &["hit", "miss", "stale"],
    ),
    ("signpost_cache_entries", "cache", CACHES),
    (
        "signpost_backend_health_checks_total",
        "result",
        &["passed", "failed"],
    ),
    (
        "signpost_backend_failures_total",
        "cause",
        &["connect", "tls", "reset", "timeout", "malformed"],
    ),
    (
        "signpost_backend_connections_total",
        "result",
        &["reused", "new", "failed"],
    ),
    (
        "signpost_store_call_duration_seconds",
        "result",
        &["success", "failure"],
    ),
    ("signpost_store_connections", "state", &["idle", "in_use"]),
    (
        "signpost_log_lines_dropped_total",
        "log",
        &["error", "access"],
    ),
    (
        "signpost_spans_total",
        "result",
        &["exported", "failed", "dropped"],
    ),
    ("signpost_login_requests_total", "status_class", CLASSES),
    ("signpost_logins_begun_total", "mode", MODES),
    ("signpost_logins_finished_total", "mode", MODES),
    (
        "signpost_logins_finished_total",
        "outcome",
        &[
            "success",
            "denied",
            "provider_failed",
            "provider_timeout",
            "login_expired",
            "store_unavailable",
            "internal",
            "other",
        ],
    ),
    (
        "signpost_provider_call_duration_seconds",
        "call",
        &["token", "user"],
    ),
    (
        "signpost_provider_call_duration_seconds",
        "result",
        &["success", "failure", "timeout"],
    ),
    // Prometheus' own.
    ("ALERTS", "alertstate", &["pending", "firing"]),
    ("", "job", &["signpost-gateway", "signpost-login"]),
];

/// Whether a metric can have this value of a label.
pub(super) fn is_possible(metric: &str, label: &str, value: &str) -> bool {
    if OPEN.contains(&label) {
        return true;
    }
    if label == "alertname" {
        return rules()
            .iter()
            .any(|rule| rule.is_alert && rule.name == value);
    }
    let is_code = || ProblemCode::ALL.iter().any(|code| code.as_str() == value);
    listed(metric, label).is_some_and(|values| values.contains(&value))
        || (label == "problem_code" && is_code())
        || (metric == "signpost_verification_failures_total"
            && (is_code() || value.starts_with("hint_")))
}

fn listed(metric: &str, label: &str) -> Option<&'static [&'static str]> {
    let mut rows = VALUES.iter();
    let row = rows.find(|(of, name, _)| *name == label && (*of == metric || of.is_empty()));
    row.map(|(.., values)| *values)
}

/// The matchers of an expression that match no possible value.
pub(super) fn impossible(expression: &str) -> Vec<String> {
    let rules = rules();
    let recorded: BTreeMap<_, _> = rules
        .iter()
        .filter(|rule| !rule.is_alert)
        .map(|rule| (&*rule.name, &*rule.expression))
        .collect();
    let matchers = uses(expression).matchers;
    let wrong = matchers.into_iter().filter(|matcher| {
        let mut values = matcher.values();
        !values.all(|value| matches(&recorded, &matcher.series, matcher, value))
    });
    wrong
        .map(|wrong| format!("{wrong:?} in {expression}"))
        .collect()
}

/// Whether a series can have this value. One that is computed ahead has those of the metrics behind it.
fn matches(recorded: &BTreeMap<&str, &str>, series: &str, matcher: &Matcher, value: &str) -> bool {
    if let Some(expression) = recorded.get(series) {
        let of = uses(expression).series.into_keys();
        return of
            .into_iter()
            .any(|series| matches(recorded, &series, matcher, value));
    }
    let (metric, label) = (unsuffixed(series), &*matcher.label);
    match value.strip_suffix(".*") {
        Some(start) if label == "alertname" => {
            rules().iter().any(|rule| rule.name.starts_with(start))
        }
        Some(start) => listed(metric, label)
            .is_some_and(|values| values.iter().any(|value| value.starts_with(start))),
        None => is_possible(metric, label, value),
    }
}

#[test]
fn each_label_is_open_or_has_listed_values() {
    let mut missing = Vec::new();
    for metric in documented() {
        for label in &metric.labels {
            let is_listed = listed(&metric.name, label).is_some();
            if OPEN.contains(&&**label) == is_listed {
                missing.push(format!("{} of {}", label, metric.name));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn impossible_values_are_found() {
    for (expression, expected) in [
        (
            r#"signpost_requests_total{status_class="5xx", instance="x"}"#,
            0,
        ),
        (r#"signpost_requests_total{status_class="5XX"}"#, 1),
        (
            r#"signpost_requests_total{status_class=~"4xx|6xx", problem_code!="gone"}"#,
            2,
        ),
        (
            r#"rate(signpost_provider_call_duration_seconds_count{result!="success"}[5m])"#,
            0,
        ),
        (
            r#"rate(signpost_store_call_duration_seconds_count{result="timeout"}[5m])"#,
            1,
        ),
        (
            r#"signpost:verification_failures:ratio5m{cause="time_out_of_window"}"#,
            0,
        ),
        (r#"signpost:verification_failures:ratio5m{cause="time"}"#, 1),
        (
            r#"up{job=~"signpost-.*"} or up{job="gateway"} or up{job=~"other-.*"}"#,
            2,
        ),
        (r#"ALERTS{alertstate="firing", alertname=~"Signpost.*"}"#, 0),
    ] {
        let found = impossible(expression);
        assert_eq!(found.len(), expected, "{found:?}");
    }
}

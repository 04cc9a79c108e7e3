//! What is counted, and the text of it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderMap, StatusCode};
use signpost_kit::metrics::Metrics;

use super::{
    checks::with_waits,
    providers::{CallKind, LoginMode, LoginOutcome},
    *,
};
use crate::{config::ProviderName, error::LoginError, records::logins::FailureReason};

fn text(metrics: &Arc<LoginMetrics>) -> String {
    let metrics = Arc::clone(metrics);
    let response = Metrics::default()
        .with(move |scrape| metrics.write(scrape))
        .response(&HeaderMap::new());
    response.into_body()
}

fn provider(name: &str) -> ProviderName {
    name.parse().unwrap()
}

#[test]
fn every_family_is_there_before_anything_was_counted() {
    let text = text(&Arc::default());
    for (name, kind) in [
        ("signpost_login_requests_total", "counter"),
        ("signpost_login_request_duration_seconds", "histogram"),
        ("signpost_logins_begun_total", "counter"),
        ("signpost_logins_finished_total", "counter"),
        ("signpost_provider_call_duration_seconds", "histogram"),
        ("signpost_provider_calls_in_flight", "gauge"),
        ("signpost_checks_waiting", "gauge"),
    ] {
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{text}");
    }
    assert!(text.contains("\nsignpost_checks_waiting 0\n"), "{text}");
}

#[test]
fn a_path_without_a_route_is_other() {
    let metrics = Arc::new(LoginMetrics::default());
    let v1 = metrics
        .requests
        .of_version("v1", ["/user", "/login", "/user"]);
    for (path, status) in [
        ("/user", 200),
        ("/user", 204),
        ("/user", 500),
        ("/user/", 404),
        ("/%75ser", 404),
        ("/../etc\n\"{}", 404),
        ("other", 404),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        v1.count(v1.endpoint(path), status, Duration::from_millis(1));
    }
    // A reload creates the routes again.
    let again = metrics.requests.of_version("v1", ["/user", "/login"]);
    assert!(Arc::ptr_eq(&v1, &again));
    let text = text(&metrics);
    let samples: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("signpost_login_requests_total"))
        .collect();
    assert_eq!(
        samples,
        [
            "{version=\"v1\",endpoint=\"/user\",status_class=\"2xx\"} 2",
            "{version=\"v1\",endpoint=\"/user\",status_class=\"5xx\"} 1",
            "{version=\"v1\",endpoint=\"other\",status_class=\"4xx\"} 4",
        ]
    );
    assert!(
        text.contains("\nsignpost_login_request_duration_seconds_count{version=\"v1\"} 7\n"),
        "{text}"
    );
}

#[test]
fn only_configured_providers_have_a_name() {
    let metrics = Arc::new(LoginMetrics::default());
    metrics.providers.register(&provider("known"));
    let foreign = metrics.providers.of(&provider("foreign"));
    assert!(
        !text(&metrics).contains("provider=\"other\""),
        "only once there is one"
    );
    foreign.count_finished(LoginMode::Redirect, FailureReason::ProviderFailed.into());
    let known = metrics.providers.of(&provider("known"));
    for outcome in [
        LoginOutcome::Success,
        FailureReason::AccessDenied.into(),
        FailureReason::ProviderTimeout.into(),
        (&LoginError::LoginExpired).into(),
        // No code of a login's end.
        (&LoginError::NotFound { slip: None }).into(),
    ] {
        known.count_finished(LoginMode::Polling, outcome);
    }
    // A reload finds the same counters.
    metrics
        .providers
        .register(&provider("known"))
        .count_begun(LoginMode::Polling);
    let text = text(&metrics);
    assert!(!text.contains("foreign"), "{text}");
    let value = |labels: &str| {
        let start = format!("signpost_logins_finished_total{labels} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&start));
        value.map(str::to_owned)
    };
    let of = |mode: &str, provider: &str, outcome: &str| {
        value(&format!(
            "{{mode=\"{mode}\",provider=\"{provider}\",outcome=\"{outcome}\"}}"
        ))
    };
    assert_eq!(of("redirect", "other", "provider_failed").unwrap(), "1");
    assert_eq!(of("redirect", "other", "success"), None);
    assert_eq!(of("redirect", "known", "success").unwrap(), "0");
    for outcome in ["success", "denied", "provider_timeout", "login_expired"] {
        assert_eq!(of("polling", "known", outcome).unwrap(), "1", "{outcome}");
    }
    assert_eq!(of("polling", "known", "other").unwrap(), "1");
    let begun = "signpost_logins_begun_total{mode=\"polling\",provider=\"known\"} 1\n";
    assert!(text.contains(begun), "{text}");
}

#[tokio::test]
async fn an_aborted_call_is_a_timeout() {
    let metrics = Arc::new(LoginMetrics::default());
    let one = metrics.providers.register(&provider("one"));
    let good = one.measure(CallKind::Token, async { Ok::<_, ()>(1) });
    assert_eq!(good.await, Ok(1));
    let bad = one.measure(CallKind::User, async { Err::<(), _>(2) });
    assert_eq!(bad.await, Err(2));
    let endless = one.measure(CallKind::User, std::future::pending::<Result<(), ()>>());
    let in_flight = "signpost_provider_calls_in_flight";
    let aborted = tokio::time::timeout(Duration::from_millis(20), async {
        tokio::join!(endless, async {
            assert!(text(&metrics).contains(&format!("{in_flight} 1\n")));
        })
    });
    assert!(aborted.await.is_err());
    let text = text(&metrics);
    assert!(text.contains(&format!("{in_flight} 0\n")));
    for (call, result, count) in [
        ("token", "success", 1),
        ("token", "failure", 0),
        ("user", "failure", 1),
        ("user", "timeout", 1),
    ] {
        let sample = format!(
            "signpost_provider_call_duration_seconds_count\
             {{provider=\"one\",call=\"{call}\",result=\"{result}\"}} {count}\n"
        );
        assert!(text.contains(&sample), "{sample}{text}");
    }
}

#[tokio::test]
async fn a_wait_is_measured_until_it_ends() {
    let checks = WaitingChecks::default();
    let pause = Duration::from_millis(30);
    let begun_at = Instant::now();
    let (count, waited) = with_waits(async {
        for _ in 0..2 {
            let _waiting = checks.wait();
            assert_eq!(checks.count(), 1);
            tokio::time::sleep(pause).await;
        }
        checks.count()
    })
    .await;
    assert_eq!(count, 0);
    assert!(
        2 * pause <= waited && waited <= begun_at.elapsed(),
        "{waited:?}"
    );
    // Without a measured request, it only counts.
    drop(checks.wait());
}

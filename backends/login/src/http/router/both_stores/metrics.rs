//! What requests and logins count.

use signpost_kit::{metrics::Metrics, server::shutdown::Phase};

use super::{
    polling::{begin, check, confirm},
    users::log_in,
    *,
};
/// The value of a sample, with its labels in their order; `None` if it is not there.
fn value(setup: &Setup, sample: &str) -> Option<f64> {
    let state = &setup.service.state;
    let (counted, cached) = (Arc::clone(&state.metrics), Arc::clone(state));
    let metrics = Metrics::default()
        .with(move |scrape| counted.write(scrape))
        .with(move |scrape| cached.write_caches(scrape));
    let response = metrics.response(&HeaderMap::new());
    let mut lines = response.body().lines();
    let value = lines.find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    value.map(|value| value.parse().unwrap())
}

fn requests(endpoint: &str, status_class: &str) -> String {
    format!(
        "signpost_login_requests_total{{version=\"v1\",endpoint=\"{endpoint}\",status_class=\"{status_class}\"}}"
    )
}

#[tokio::test]
async fn every_response_is_counted_by_its_route() {
    let setup = Setup::new().await;
    for (method, path) in [
        ("GET", "/user"),
        ("PUT", "/user"),
        ("GET", "/user/x"),
        ("GET", "/%75ser"),
        ("GET", "/healthz"),
    ] {
        setup.call(method, path, &[]).await;
    }
    let count = |endpoint, class| value(&setup, &requests(endpoint, class));
    assert_eq!(count("/user", "4xx"), Some(2.0));
    assert_eq!(count("other", "4xx"), Some(2.0));
    assert_eq!(count("/healthz", "2xx"), Some(1.0));
    assert_eq!(count("/login", "4xx"), None);
}

#[tokio::test]
async fn a_login_is_counted_when_it_begins_and_when_it_ends() {
    let setup = Setup::new().await;
    let begun = begin(&setup).await;
    let finished =
        "signpost_logins_finished_total{mode=\"polling\",provider=\"sandbox\",outcome=\"success\"}";
    assert_eq!(value(&setup, finished), Some(0.0));
    let cookie = confirm(&setup, &begun).await;
    let callback = format!("/login?state={}&code=good", begun.state);
    setup.browse(&callback, &cookie).await;
    assert_eq!(check(&setup, &begun.token).await["status"], "complete");
    // A second callback ends no login.
    setup.browse(&callback, &cookie).await;
    let begun = "signpost_logins_begun_total{mode=\"polling\",provider=\"sandbox\"}";
    assert_eq!(value(&setup, begun), Some(1.0));
    assert_eq!(value(&setup, finished), Some(1.0));
    for call in ["token", "user"] {
        let calls = format!(
            "signpost_provider_call_duration_seconds_count\
             {{provider=\"sandbox\",call=\"{call}\",result=\"success\"}}"
        );
        assert_eq!(value(&setup, &calls), Some(1.0));
    }
}

#[tokio::test]
async fn lookups_in_the_cache_of_credentials_are_counted() {
    let setup = Setup::new().await;
    let authorization = log_in(&setup).await;
    for _ in 0..3 {
        let header = [("acme-x-authorization", &*authorization)];
        assert_eq!(setup.call("GET", "/user", &header).await.status, 200);
    }
    for (result, expected) in [("hit", 2.0), ("miss", 1.0), ("stale", 0.0)] {
        let sample =
            format!("signpost_cache_lookups_total{{cache=\"credentials\",result=\"{result}\"}}");
        assert_eq!(value(&setup, &sample), Some(expected), "{result}");
    }
    let entries = "signpost_cache_entries{cache=\"credentials\"}";
    assert_eq!(value(&setup, entries), Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_of_a_check_is_not_its_duration() {
    let setup = Arc::new(Setup::new().await);
    let begun = begin(&setup).await;
    let (waiting, token) = (Arc::clone(&setup), begun.token.clone());
    let sum = "signpost_login_request_duration_seconds_sum{version=\"v1\"}";
    let before = value(&setup, sum).unwrap();
    let begun_at = Instant::now();
    let check = tokio::spawn(async move {
        let target = format!("/check?token={token}&wait=30");
        waiting.call("POST", &target, &[]).await
    });
    while value(&setup, "signpost_checks_waiting") != Some(1.0) {
        assert!(
            begun_at.elapsed() < Duration::from_secs(20),
            "no check waits"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // So long it waits at least; the stop ends that.
    tokio::time::sleep(Duration::from_secs(2)).await;
    setup.service.state.phase.send_replace(Phase::Closing);
    assert_eq!(check.await.unwrap().json()["status"], "pending");
    let took = begun_at.elapsed().as_secs_f64();
    let measured = value(&setup, sum).unwrap() - before;
    // The rest may be long on a slow machine, but it is not the wait.
    assert!(measured < took - 1.0, "{measured} s of {took} s");
    assert_eq!(value(&setup, "signpost_checks_waiting"), Some(0.0));
}

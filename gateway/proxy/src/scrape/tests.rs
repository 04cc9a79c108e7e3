//! What a scrape shows of a gateway, and what a reload changes of it.

use http::HeaderMap;

use super::*;
use crate::{
    config::{
        Config,
        tests::{MINIMAL, load},
    },
    request::quotas::RequestLimit,
    upstream::routing::status::BackendEvent,
};

fn config(v1: &str) -> Config {
    load(&MINIMAL.replace("backend = '127.0.0.1:7001'", v1)).unwrap()
}

fn gateway(v1: &str) -> Arc<ArcSwap<Gateway>> {
    let gateway = crate::serve::tests::gateway(config(v1));
    Arc::new(ArcSwap::from_pointee(gateway))
}

fn reload(current: &Arc<ArcSwap<Gateway>>, v1: &str) {
    let apps = current.load().policy.apps.clone();
    let gateway = current.load().with_config(config(v1), apps).unwrap();
    current.store(Arc::new(gateway));
}

async fn resolve(current: &Arc<ArcSwap<Gateway>>) {
    for balancer in current.load().policy.backends.balancers() {
        balancer.resolve().await;
    }
}

fn scrape(metrics: &Metrics) -> String {
    metrics.response(&HeaderMap::new()).into_body()
}

/// The samples whose names begin with `prefix`.
fn samples<'t>(text: &'t str, prefix: &str) -> Vec<&'t str> {
    text.lines()
        .filter(|line| line.starts_with(prefix))
        .collect()
}

#[test]
fn a_gateway_without_requests_shows_every_family() {
    let current = gateway("backend = '127.0.0.1:7001'");
    let text = scrape(&metrics(&current, DroppedLines::default()));
    for family in [
        "signpost_connections gauge",
        "signpost_connections_accepted_total counter",
        "signpost_connections_refused_total counter",
        "signpost_http2_streams gauge",
        "signpost_replay_shared_total counter",
        "signpost_replay_signatures gauge",
        "signpost_rate_limited_total counter",
        "signpost_rate_limit_keys gauge",
        "signpost_cache_lookups_total counter",
        "signpost_cache_entries gauge",
        "signpost_backend_healthy gauge",
        "signpost_backend_in_flight gauge",
        "signpost_backend_ejections_total counter",
        "signpost_backend_health_checks_total counter",
        "signpost_backend_retries_total counter",
        "signpost_backend_failures_total counter",
        "signpost_backend_connections_total counter",
        "signpost_backend_idle_connections gauge",
        "signpost_secret_rejections gauge",
        "signpost_certificate_expiry_timestamp_seconds gauge",
        "signpost_certificate_not_before_timestamp_seconds gauge",
        "signpost_tls_files_last_reload_successful gauge",
        "signpost_config_last_reload_successful gauge",
        "signpost_config_last_reload_success_timestamp_seconds gauge",
    ] {
        let lines = samples(&text, &format!("# TYPE {family}"));
        assert_eq!(lines.len(), 1, "{family}: {text}");
    }
    // Nothing tells whether an address without checks is healthy, until a connection fails.
    assert!(
        samples(&text, "signpost_backend_healthy").is_empty(),
        "{text}"
    );
    assert!(
        samples(&text, "signpost_backend_available").is_empty(),
        "{text}"
    );
    let in_flight = samples(&text, "signpost_backend_in_flight");
    assert!(
        in_flight.iter().all(|sample| sample.ends_with(" 0")),
        "{text}"
    );
    // Without a store there are no caches.
    assert!(samples(&text, "signpost_cache_").is_empty());
}

#[tokio::test]
async fn counts_of_a_backend_continue_as_long_as_it_has_its_name() {
    let current = gateway("backend = '127.0.0.1:7001'");
    let metrics = metrics(&current, DroppedLines::default());
    let count = || {
        current
            .load()
            .policy
            .backends
            .targets()
            .next()
            .unwrap()
            .counts
            .count(BackendEvent::Connect)
    };
    let failures = |number: u32| {
        format!("signpost_backend_failures_total{{backend=\"v1\",cause=\"connect\"}} {number}\n")
    };
    count();
    // Then it has a balancer, and a route.
    let more = "backends = ['127.0.0.1:1', '127.0.0.1:2']\n\
                [[versions.v1.routes]]\npath = '/x'\nbackend = '127.0.0.1:3'";
    reload(&current, more);
    resolve(&current).await;
    count();
    let text = scrape(&metrics);
    assert!(text.contains(&failures(2)), "{text}");
    assert_eq!(samples(&text, "signpost_backend_in_flight").len(), 3);
    let route = "signpost_backend_retries_total{backend=\"v1 /x\"} 0\n";
    assert!(text.contains(route), "{text}");
    // Addresses and routes that are gone have no samples.
    reload(&current, "backends = ['127.0.0.1:2', '127.0.0.1:4']");
    resolve(&current).await;
    let text = scrape(&metrics);
    assert!(text.contains(&failures(2)), "{text}");
    assert!(!text.contains("127.0.0.1:1\""), "{text}");
    for family in ["retries_total", "failures_total", "in_flight"] {
        let samples = samples(&text, &format!("signpost_backend_{family}"));
        let of_route = samples.iter().any(|sample| sample.contains("/x"));
        assert!(!samples.is_empty() && !of_route, "{samples:?}");
    }
    let in_flight = samples(&text, "signpost_backend_in_flight");
    assert_eq!(in_flight.len(), 2, "{text}");
}

#[test]
fn rejections_by_limits_are_counted() {
    let current = gateway("backend = '127.0.0.1:7001'");
    let limited = &current.load().state.records.limited;
    for (index, limit) in RequestLimit::ALL.into_iter().enumerate() {
        assert_eq!(limit as usize, index);
        for _ in 0..=index {
            limited.count(limit);
        }
    }
    let text = scrape(&metrics(&current, DroppedLines::default()));
    let expected = ["unsigned", "address", "app", "path", "replay_memory"];
    let expected = expected.iter().enumerate();
    let line = |(index, limit)| {
        let requests = index + 1;
        format!("signpost_rate_limited_total{{limit=\"{limit}\"}} {requests}")
    };
    let expected: Vec<_> = expected.map(line).collect();
    assert_eq!(samples(&text, "signpost_rate_limited_total"), expected);
}

#[tokio::test]
async fn the_shown_addresses_of_a_backend_are_limited() {
    let addresses = (0..300).map(|number| format!("'127.0.{}.{}:1'", number / 200, number % 200));
    let addresses: Vec<_> = addresses.collect();
    let current = gateway(&format!("backends = [{}]", addresses.join(", ")));
    resolve(&current).await;
    assert_eq!(
        current
            .load()
            .policy
            .backends
            .balancers()
            .next()
            .unwrap()
            .address_count(),
        300
    );
    let text = scrape(&metrics(&current, DroppedLines::default()));
    let shown = samples(&text, "signpost_backend_in_flight").len();
    assert_eq!(shown, backends::MAX_SHOWN_ADDRESSES);
}

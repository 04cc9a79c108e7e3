//! Metrics of the store and of its change feed, as each program with a store has them.

use std::fmt;

use signpost_store::{
    StoreStatistics,
    statistics::{CALL_BOUNDS_MICROS, CallDurations},
};

use super::{Scrape, cells::Observed};

crate::families! {
    CALLS = "signpost_store_call_duration_seconds", Histogram, ["result"],
        "Calls to the store, with the wait for a connection: success, failure. With Postgres each statement is a \
         call; with SQLite each transaction or read as a whole. A call whose caller left is not counted. A gateway \
         without a store has no samples of the five families of the store.";
    CONNECTIONS = "signpost_store_connections", Gauge, ["state"],
        "Connections in the pool to the store: idle, in_use. The change feed has one more.";
    WAITING = "signpost_store_waiting", Gauge, [],
        "Calls that wait for a connection to the store; with SQLite also writes that wait for another one.";
    LAG = "signpost_change_feed_lag_seconds", Gauge, [],
        "Age of the last complete read of the change feed: caches may be that old. Up to 0.1 s with SQLite and 0.5 s \
         with Postgres; more means that the store does not answer.";
    CHANGES = "signpost_change_feed_changes_total", Counter, [], "Changes that the change feed has reported.";
}

const MICROS_PER_SECOND: f64 = 1e6;

/// Writes the families; without statistics there is no store, and they have no samples.
///
/// # Errors
///
/// Only errors of `scrape`.
pub fn write(scrape: &mut Scrape<'_>, statistics: Option<&StoreStatistics>) -> fmt::Result {
    let calls = statistics.into_iter().flat_map(|calls| {
        let (succeeded, failed) = (observed(&calls.succeeded), observed(&calls.failed));
        [(["success"], succeeded), (["failure"], failed)]
    });
    scrape.histogram(CALLS, calls)?;
    let pool = statistics.map(|statistics| statistics.pool);
    let connections = pool.into_iter().flat_map(|pool| {
        [
            (["idle"], pool.idle as u64),
            (["in_use"], pool.in_use as u64),
        ]
    });
    scrape.numbers(CONNECTIONS, connections)?;
    scrape.number(WAITING, pool.map(|pool| pool.waiting as u64))?;
    let lag = statistics.and_then(|statistics| statistics.feed_lag);
    scrape.number(LAG, lag.map(|lag| lag.as_secs_f64()))?;
    scrape.number(CHANGES, statistics.map(|statistics| statistics.changes))
}

fn observed(calls: &CallDurations) -> Observed {
    let bounds = CALL_BOUNDS_MICROS.map(|micros| micros as f64 / MICROS_PER_SECOND);
    Observed {
        sum: calls.micros as f64 / MICROS_PER_SECOND,
        buckets: bounds
            .into_iter()
            .chain([f64::INFINITY])
            .zip(calls.counts)
            .collect(),
    }
}

#[cfg(test)]
mod both_stores {
    use http::HeaderMap;
    use signpost_store::{Store, testing::TestStore};

    use super::*;
    use crate::metrics::Metrics;

    fn text(store: Option<Store>) -> String {
        let metrics = Metrics::default().with(move |scrape| {
            let statistics = store.as_ref().map(Store::statistics);
            write(scrape, statistics.as_ref())
        });
        metrics.response(&HeaderMap::new()).into_body()
    }

    #[test]
    fn without_a_store_the_families_have_no_samples() {
        let text = text(None);
        assert_eq!(text.lines().count(), 10, "{text}");
        assert!(text.lines().all(|line| line.starts_with("# ")), "{text}");
        assert!(text.contains("# TYPE signpost_change_feed_changes_total counter\n"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn calls_connections_and_the_feed_are_shown() {
        let test = TestStore::chosen();
        let store = test.open().await;
        let watched = store.clone();
        let watch =
            tokio::task::spawn_blocking(move || watched.watch(std::time::Duration::default, drop));
        let _watch = watch.await.unwrap().unwrap();
        let count = "SELECT count(*) FROM accounts";
        store.row::<(i64,)>(count, Vec::new()).await.unwrap();
        let text = text(Some(store));
        let value = |sample: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(sample));
            line.unwrap_or_else(|| panic!("{sample}: {text}"))
                .trim()
                .parse()
                .unwrap()
        };
        let success = "signpost_store_call_duration_seconds_count{result=\"success\"}";
        assert!(value(success) >= 1.0);
        let failure = "signpost_store_call_duration_seconds_bucket{le=\"+Inf\",result=\"failure\"}";
        assert_eq!(value(failure), 0.0);
        // With Postgres the feed may use one at this moment, to compare the clocks.
        let connections = ["idle", "in_use"]
            .map(|state| value(&format!("signpost_store_connections{{state=\"{state}\"}}")));
        assert!(connections.iter().sum::<f64>() >= 1.0, "{connections:?}");
        assert_eq!(value("signpost_store_waiting"), 0.0);
        assert!(value("signpost_change_feed_lag_seconds") < 60.0);
        assert_eq!(value("signpost_change_feed_changes_total"), 0.0);
    }
}

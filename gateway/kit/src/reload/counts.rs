//! What the metrics show of reloads.

use std::{
    fmt,
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
};

use crate::{clock::Timestamp, metrics::Scrape};

crate::families! {
    RELOADS = "signpost_reloads", "Reloads of the configuration";
    LAST_RELOAD = "signpost_config_last_reload_timestamp_seconds",
        "When the current configuration was loaded, in seconds since the epoch";
}

/// Reloads of a process so far, and when its configuration was loaded. A program hands it to its
/// [`Reloader`](super::Reloader), and shows it.
#[derive(Debug, Default)]
pub struct ReloadCounts {
    successes: AtomicU64,
    failures: AtomicU64,
    /// In milliseconds since the epoch; 0 before the start.
    loaded_at: AtomicI64,
}

impl ReloadCounts {
    /// The program has started with its first configuration.
    pub(super) fn start(&self, now: Timestamp) {
        self.loaded_at.store(now.as_millis(), Ordering::Relaxed);
    }

    /// A reload was applied.
    pub(super) fn succeed(&self, now: Timestamp) {
        self.successes.fetch_add(1, Ordering::Relaxed);
        self.start(now);
    }

    /// A reload changed nothing, because the file is invalid or could not be applied.
    pub(super) fn fail(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes the families.
    ///
    /// # Errors
    ///
    /// Those of `scrape`.
    pub fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        scrape.counter(RELOADS, |add| {
            add(
                &[("result", "success")],
                self.successes.load(Ordering::Relaxed),
            )?;
            add(
                &[("result", "failure")],
                self.failures.load(Ordering::Relaxed),
            )
        })?;
        let millis = self.loaded_at.load(Ordering::Relaxed);
        scrape.gauge(LAST_RELOAD, |add| add(&[], millis as f64 / 1e3))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::HeaderMap;

    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn only_a_success_changes_the_time() {
        let counts = Arc::new(ReloadCounts::default());
        let shown = Arc::clone(&counts);
        counts.start(Timestamp::from_millis(1_500));
        counts.fail();
        counts.fail();
        let metrics = Metrics::default().with(move |scrape| shown.write(scrape));
        let scrape = || metrics.response(&HeaderMap::new()).into_body();
        let before = scrape();
        assert!(
            before.contains("signpost_reloads_total{result=\"success\"} 0\n"),
            "{before}"
        );
        assert!(
            before.contains("signpost_reloads_total{result=\"failure\"} 2\n"),
            "{before}"
        );
        assert!(
            before.contains("signpost_config_last_reload_timestamp_seconds 1.5\n"),
            "{before}"
        );
        counts.succeed(Timestamp::from_millis(2_500));
        let after = scrape();
        assert!(
            after.contains("signpost_reloads_total{result=\"success\"} 1\n"),
            "{after}"
        );
        assert!(
            after.contains("signpost_config_last_reload_timestamp_seconds 2.5\n"),
            "{after}"
        );
    }
}

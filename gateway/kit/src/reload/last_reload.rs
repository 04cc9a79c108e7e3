//! The last reload, as the metrics and the list of gateways show it.

use std::{
    fmt,
    sync::atomic::{AtomicBool, AtomicI64, Ordering},
};

use crate::{clock::Timestamp, metrics::Scrape};

crate::families! {
    SUCCESSFUL = "signpost_config_last_reload_successful", Gauge, [],
        "1 if the last reload was applied; 0 if it was rejected: the file is invalid, or cannot be applied. 1 from \
         the start.";
    SUCCESS_TIME = "signpost_config_last_reload_success_timestamp_seconds", Gauge, [],
        "When the current configuration was loaded, at the start or by the last successful reload, in seconds since \
         the epoch.";
}

/// Result of a process' last reload, and when its configuration was loaded. A program hands it to its
/// [`Reloader`](super::Reloader), and shows it. The start counts as a successful reload.
#[derive(Debug, Default)]
pub struct LastReload {
    is_rejected: AtomicBool,
    /// In milliseconds since the epoch; 0 before the start.
    loaded_at: AtomicI64,
}

impl LastReload {
    /// The program has started with its first configuration, or a reload was applied.
    pub(super) fn succeed(&self, now: Timestamp) {
        // Scrapes read the two apart, so their order does not matter.
        self.loaded_at.store(now.as_millis(), Ordering::Relaxed);
        self.is_rejected.store(false, Ordering::Relaxed);
    }

    /// A reload changed nothing, because the file is invalid or could not be applied.
    pub(super) fn fail(&self) {
        self.is_rejected.store(true, Ordering::Relaxed);
    }

    /// When the current configuration was loaded.
    #[must_use]
    pub fn loaded_at(&self) -> Timestamp {
        Timestamp::from_millis(self.loaded_at.load(Ordering::Relaxed))
    }

    /// Whether a later reload was rejected.
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        self.is_rejected.load(Ordering::Relaxed)
    }

    /// Writes the families.
    ///
    /// # Errors
    ///
    /// Only errors of `scrape`.
    pub fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        scrape.number(SUCCESSFUL, Some(u64::from(!self.is_rejected())))?;
        let millis = self.loaded_at().as_millis();
        scrape.number(SUCCESS_TIME, Some(millis as f64 / 1e3))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::HeaderMap;

    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn the_last_reload_decides_and_only_a_success_changes_the_time() {
        let last = Arc::new(LastReload::default());
        let shown = Arc::clone(&last);
        let metrics = Metrics::default().with(move |scrape| shown.write(scrape));
        let assert_shown = |successful: u8, time: &str| {
            let text = metrics.response(&HeaderMap::new()).into_body();
            for sample in [
                format!("signpost_config_last_reload_successful {successful}\n"),
                format!("signpost_config_last_reload_success_timestamp_seconds {time}\n"),
            ] {
                assert!(text.contains(&sample), "{sample}: {text}");
            }
        };
        last.succeed(Timestamp::from_millis(1_500));
        assert_shown(1, "1.5");
        last.fail();
        last.fail();
        assert_shown(0, "1.5");
        last.succeed(Timestamp::from_millis(2_500));
        assert_shown(1, "2.5");
    }
}

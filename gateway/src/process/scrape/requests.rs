//! Metrics of requests: their numbers, their durations and their verification.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use signpost_kit::{families, metrics::Scrape};

use crate::{
    gateway::Gateway,
    observe::{
        metrics::{RequestMetrics, labels::STATUS_CLASSES},
        usage::Usage,
    },
};

families! {
    REQUESTS = "signpost_requests", "Requests, counted at the end of the response";
    APPLICATION_REQUESTS = "signpost_application_requests",
        "Requests of the busiest applications, and of all others";
    REQUEST_DURATION = "signpost_request_duration_seconds",
        "From the received head to the end of the response, in seconds";
    GATEWAY_DURATION = "signpost_gateway_duration_seconds",
        "The gateway's own time for a request, in seconds";
    BACKEND_DURATION = "signpost_backend_duration_seconds",
        "From forwarding to the head of the backend's response, in seconds";
    VERIFICATION_FAILURES = "signpost_verification_failures", "Requests whose verification failed";
    CLOCK_SKEW = "signpost_clock_skew_seconds",
        "How far a request's time is from the gateway's, in seconds";
}

/// Shows what the request path has counted.
#[derive(Debug)]
pub(super) struct RequestSource {
    metrics: Arc<RequestMetrics>,
    /// Requests by application; `None` in single-application mode.
    usage: Option<Arc<Usage>>,
}

impl RequestSource {
    /// The source of the process that this gateway belongs to.
    pub(super) fn new(current: &ArcSwap<Gateway>) -> Self {
        let records = &current.load().state.records;
        Self {
            metrics: Arc::clone(&records.metrics),
            usage: records.usage.clone(),
        }
    }

    /// Writes the families.
    pub(super) fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        let metrics = &*self.metrics;
        scrape.counter(REQUESTS, |sample| {
            metrics.for_requests(|[version, source, class, problem], count| {
                let labels = [
                    ("version", version),
                    ("version_source", source),
                    ("status_class", class),
                    ("problem_code", problem),
                ];
                sample(&labels, count)
            })
        })?;
        scrape.counter(APPLICATION_REQUESTS, |sample| {
            let shown = self.usage.as_ref().map(|usage| usage.scrape());
            let shown = metrics.unnamed().chain(shown.into_iter().flatten());
            let shown: Vec<_> = shown.collect();
            let counts = shown.iter().flat_map(|(app, counts)| {
                let by_class = STATUS_CLASSES.iter().zip(counts);
                by_class.map(move |(class, count)| (&**app, *class, *count))
            });
            counts
                .filter(|(_, _, count)| *count > 0)
                .try_for_each(|(app, class, count)| {
                    sample(&[("app", app), ("status_class", class)], count)
                })
        })?;
        self.write_durations(scrape)?;
        scrape.counter(VERIFICATION_FAILURES, |sample| {
            let mut failures = metrics.verification_failures();
            failures.try_for_each(|(cause, count)| sample(&[("cause", cause)], count))
        })?;
        scrape.histogram(CLOCK_SKEW, |sample| {
            let skew = metrics.clock_skew();
            for (is_verified, verified) in [(true, "true"), (false, "false")] {
                for (is_behind, direction) in [(false, "ahead"), (true, "behind")] {
                    let labels = [("verified", verified), ("direction", direction)];
                    sample(&labels, &skew.observed(is_verified, is_behind))?;
                }
            }
            Ok(())
        })
    }

    fn write_durations(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        scrape.histogram(REQUEST_DURATION, |sample| {
            let durations = self.metrics.request_durations();
            let mut durations = durations.iter();
            durations.try_for_each(|(version, observed)| sample(&[("version", version)], observed))
        })?;
        scrape.histogram(GATEWAY_DURATION, |sample| {
            sample(&[], &self.metrics.own_durations())
        })?;
        scrape.histogram(BACKEND_DURATION, |sample| {
            let durations = self.metrics.backend_durations();
            let mut durations = durations.iter();
            durations.try_for_each(|(backend, observed)| sample(&[("backend", backend)], observed))
        })
    }
}

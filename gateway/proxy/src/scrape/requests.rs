//! Metrics of requests: their numbers, their durations and their verification.

use std::fmt;

use signpost_kit::{families, metrics::Scrape};

use crate::{
    observe::metrics::{RequestMetrics, labels::STATUS_CLASSES},
    serve::Gateway,
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
    BACKEND_RESPONSES = "signpost_backend_responses",
        "Requests that were forwarded to the backend, by the response that the client got";
    VERIFICATION_FAILURES = "signpost_verification_failures", "Requests whose verification failed";
    CLOCK_SKEW = "signpost_clock_skew_seconds",
        "How far a request's time is from the gateway's, in seconds";
    SHADOW_COPIES = "signpost_shadow_copies", "Requests that were chosen to be copied to another version";
    BRIDGE_FAILURES = "signpost_bridge_failures", "Requests to which a change between two versions did not apply";
}

/// Writes the families.
pub(super) fn write(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let records = &gateway.state.records;
    let metrics = &*records.metrics;
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
    write_applications(gateway, scrape)?;
    scrape.counter(BACKEND_RESPONSES, |sample| {
        let backends = metrics.backend_responses();
        backends.iter().try_for_each(|(backend, counts)| {
            // Also those of 0: a share can be computed only where both numbers are there.
            let mut counts = STATUS_CLASSES.iter().zip(counts);
            counts.try_for_each(|(class, count)| {
                sample(&[("backend", backend), ("status_class", class)], *count)
            })
        })
    })?;
    write_durations(metrics, scrape)?;
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
    })?;
    scrape.label_counters(SHADOW_COPIES, "result", &gateway.state.shadows.counts)?;
    scrape.counter(BRIDGE_FAILURES, |sample| {
        let failures = metrics.bridge_failures();
        let mut failures = failures.iter();
        failures.try_for_each(|((version, change), count)| {
            sample(&[("version", version), ("change", change)], *count)
        })
    })
}

fn write_applications(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let records = &gateway.state.records;
    scrape.counter(APPLICATION_REQUESTS, |sample| {
        let shown = records.usage.as_ref().map(|usage| usage.scrape());
        let shown = records.metrics.unnamed().chain(shown.into_iter().flatten());
        let shown: Vec<_> = shown.collect();
        let counts = shown.iter().flat_map(|(app, counts)| {
            let by_class = STATUS_CLASSES.iter().zip(counts);
            by_class.map(move |(class, count)| (&**app, *class, *count))
        });
        counts
            // Without this, each application would have a series for each class that it never got.
            .filter(|(_, _, count)| *count > 0)
            .try_for_each(|(app, class, count)| {
                sample(&[("app", app), ("status_class", class)], count)
            })
    })
}

fn write_durations(metrics: &RequestMetrics, scrape: &mut Scrape<'_>) -> fmt::Result {
    scrape.histogram(REQUEST_DURATION, |sample| {
        let durations = metrics.request_durations();
        let mut durations = durations.iter();
        durations.try_for_each(|(version, observed)| sample(&[("version", version)], observed))
    })?;
    scrape.histogram(GATEWAY_DURATION, |sample| {
        sample(&[], &metrics.own_durations())
    })?;
    scrape.histogram(BACKEND_DURATION, |sample| {
        let durations = metrics.backend_durations();
        let mut durations = durations.iter();
        durations.try_for_each(|(backend, observed)| sample(&[("backend", backend)], observed))
    })
}

//! Metrics of requests: their numbers, their durations and their verification.

use std::fmt;

use signpost_kit::{
    families,
    metrics::{NO_LABELS, Scrape},
};

use crate::{
    observe::metrics::{
        RequestMetrics,
        labels::{ClassCounts, STATUS_CLASSES},
    },
    serve::Gateway,
};

families! {
    REQUESTS = "signpost_requests_total", Counter, ["version", "version_source", "status_class", "problem_code"],
        "Requests, counted at the end of the response; also redirects to https, preflights, ACME challenges, the \
         gateway's own pages and malformed heads. version and version_source are empty if the request was rejected \
         before it had a version. status_class is 2xx to 5xx, or none if the client left without a response. \
         problem_code is empty without one, and other for a code that the contract does not have. If reloads remove \
         versions, the last 16 of them keep their counts.";
    APPLICATION_REQUESTS = "signpost_application_requests_total", Counter, ["app", "status_class"],
        "Requests by application: the busiest ones, as many as metrics.applications says. app is other for all \
         others, none for requests that name no known application, and default in single-application mode.";
    REQUEST_DURATION = "signpost_request_duration_seconds", Histogram, ["version"],
        "From the received head to the end of the response.";
    GATEWAY_DURATION = "signpost_gateway_duration_seconds", Histogram, [],
        "The gateway's own time for a request, without the wait for the client's form: from the received head until \
         the gateway begins to forward the request, or to answer it.";
    BACKEND_DURATION = "signpost_backend_duration_seconds", Histogram, ["backend"],
        "From forwarding to the complete head of the backend's response, with connecting and retries. Requests \
         without such a response are not in it.";
    BACKEND_RESPONSES = "signpost_backend_responses_total", Counter, ["backend", "status_class"],
        "Forwarded requests, by the response that the client got: the backend's, or the gateway's if the backend \
         gave none.";
    VERIFICATION_FAILURES = "signpost_verification_failures_total", Counter, ["cause"],
        "Requests whose verification failed. cause is the response's hint, or the problem code if it has none.";
    CLOCK_SKEW = "signpost_clock_skew_seconds", Histogram, ["verified", "direction"],
        "How far a request's time is from the gateway's. direction is ahead or behind: the client's clock. verified \
         is true if the signature was right; anyone can send the others. Requests outside the window are false: \
         their signature is not checked. More than an hour counts as an hour in the sum.";
    SHADOW_COPIES = "signpost_shadow_copies_total", Counter, ["result"],
        "Requests that were chosen to be copied to another version: equal; different; failed (no response within 10 \
         s); refused (by X-Gateway-Refused); dropped (256 copies were in flight, or memory was full while the store \
         took nothing); skipped (a response too large, incomplete, or encoded in an unknown way). noise is counted \
         beside one of these: the request was sent to its own version again.";
    BRIDGE_FAILURES = "signpost_bridge_failures_total", Counter, ["version", "change"],
        "Requests with 502 bridge_failed, by the version of the client and the change that did not apply.";
}

/// Writes the families.
pub(super) fn write(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let records = &gateway.state.records;
    let metrics = &*records.metrics;
    let mut requests = Vec::new();
    metrics.for_requests(|labels, count| {
        requests.push((labels.map(str::to_owned), count));
        Ok(())
    })?;
    scrape.numbers(REQUESTS, requests)?;
    write_applications(gateway, scrape)?;
    let backends = metrics.backend_responses();
    // Samples of 0 are written, too: a share can be computed only from both numbers.
    scrape.numbers(BACKEND_RESPONSES, by_class(&backends))?;
    write_durations(metrics, scrape)?;
    let failures = metrics.verification_failures();
    scrape.numbers(
        VERIFICATION_FAILURES,
        failures.map(|(cause, count)| ([cause], count)),
    )?;
    let skew = metrics.clock_skew();
    let verified = [(true, "true"), (false, "false")].into_iter();
    let skews = verified.flat_map(|(is_verified, verified)| {
        [(false, "ahead"), (true, "behind")].map(|(is_behind, direction)| {
            ([verified, direction], skew.observed(is_verified, is_behind))
        })
    });
    scrape.histogram(CLOCK_SKEW, skews)?;
    scrape.label_counters(SHADOW_COPIES, &gateway.state.shadows.counts)?;
    let failures = metrics.bridge_failures();
    let failures = failures.iter();
    scrape.numbers(
        BRIDGE_FAILURES,
        failures.map(|((version, change), count)| ([&**version, &**change], *count)),
    )
}

/// The counts of each name, by the class of the status.
fn by_class(named: &[(Box<str>, ClassCounts)]) -> impl Iterator<Item = ([&str; 2], u64)> {
    named.iter().flat_map(|(name, counts)| {
        let counts = STATUS_CLASSES.iter().zip(counts);
        counts.map(|(class, count)| ([&**name, *class], *count))
    })
}

fn write_applications(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let records = &gateway.state.records;
    let shown = records.usage.as_ref().map(|usage| usage.scrape());
    let shown = records.metrics.unnamed().chain(shown.into_iter().flatten());
    let shown: Vec<_> = shown.collect();
    // Otherwise each application would have a series for each class that it never got.
    let counts = by_class(&shown).filter(|(_, count)| *count > 0);
    scrape.numbers(APPLICATION_REQUESTS, counts)
}

fn write_durations(metrics: &RequestMetrics, scrape: &mut Scrape<'_>) -> fmt::Result {
    let named = |(name, observed)| ([name], observed);
    let versions = metrics.request_durations().into_iter();
    scrape.histogram(REQUEST_DURATION, versions.map(named))?;
    scrape.histogram(GATEWAY_DURATION, [(NO_LABELS, metrics.own_durations())])?;
    let backends = metrics.backend_durations().into_iter();
    scrape.histogram(BACKEND_DURATION, backends.map(named))
}

//! The families of the login service. `login-v1 metrics` prints them.

use std::{fmt, sync::Arc};

use signpost_kit::{families, metrics::Scrape};

use super::{
    LoginMetrics,
    providers::{CallKind, CallResult, LoginMode, LoginOutcome, OTHER, ProviderMetrics},
};
use crate::config::ProviderName;

families! {
    REQUESTS = "signpost_login_requests_total", Counter, ["version", "endpoint", "status_class"],
        "Requests that a backend answered, health checks too. endpoint is a route as in its code, or other. \
         login-all counts all of its versions; version tells them apart.";
    DURATION = "signpost_login_request_duration_seconds", Histogram, ["version"],
        "From the received head to the response, without the waits of /check.";
    BEGUN = "signpost_logins_begun_total", Counter, ["mode", "provider"],
        "Logins that were begun: polling, redirect. provider is a name of the configuration. Logins and calls to \
         providers are counted by process, not by version.";
    FINISHED = "signpost_logins_finished_total", Counter, ["mode", "provider", "outcome"],
        "Logins that ended, counted by the process that got the provider's callback. outcome is success, denied, or \
         the problem code: provider_failed, provider_timeout, login_expired, store_unavailable, internal, other. \
         provider is other if only another process has it. A login that is not finished is not counted.";
    CALL_DURATION = "signpost_provider_call_duration_seconds", Histogram, ["provider", "call", "result"],
        "Calls to providers: token, user. result is success, failure or timeout. Both calls of a login share 9.5 s.";
    IN_FLIGHT = "signpost_provider_calls_in_flight", Gauge, [], "Calls in flight, of all providers.";
    WAITING = "signpost_checks_waiting", Gauge, [], "Clients whose /check waits.";
}

impl LoginMetrics {
    /// Writes the counters of a process as metrics.
    pub(crate) fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        let versions = self.requests.all();
        let requests = versions.iter().flat_map(|version| {
            let counted = version.counted();
            counted.map(|(endpoint, class, number)| ([version.version, endpoint, class], number))
        });
        scrape.numbers(REQUESTS, requests)?;
        let durations = versions.iter();
        let durations = durations.map(|version| ([version.version], version.durations.observed()));
        scrape.histogram(DURATION, durations)?;
        let providers = self.providers.all();
        write_logins(&providers, &self.providers.other, scrape)?;
        write_calls(&providers, scrape)?;
        let in_flight = providers.iter().map(|(_, provider)| provider.in_flight());
        scrape.number(IN_FLIGHT, Some(in_flight.sum::<usize>() as u64))?;
        scrape.number(WAITING, Some(self.checks.count() as u64))?;
        self.own.write(scrape)
    }
}

/// A provider's counters, and the label for it.
type Named = (ProviderName, Arc<ProviderMetrics>);

/// Writes a configured provider from 0 on, so that its first failure is an increase; all others once there is one.
fn write_logins(
    providers: &[Named],
    other: &ProviderMetrics,
    scrape: &mut Scrape<'_>,
) -> fmt::Result {
    // All others share one label: their names are another process' configuration.
    let known = providers
        .iter()
        .map(|(name, provider)| (name.as_str(), &**provider, 0));
    let all: Vec<_> = known.chain([(OTHER, other, 1)]).collect();
    let by_mode = || {
        let all = all.iter();
        all.flat_map(|named| LoginMode::ALL.map(|mode| (named, mode)))
    };
    let begun = by_mode()
        .map(|((name, provider, min), mode)| ([mode.as_str(), *name], provider.begun(mode), *min));
    let begun = begun.filter(|(_, number, min)| number >= min);
    scrape.numbers(BEGUN, begun.map(|(labels, number, _)| (labels, number)))?;
    let finished = by_mode().flat_map(|((name, provider, min), mode)| {
        let outcomes = LoginOutcome::ALL.map(|outcome| {
            let labels = [mode.as_str(), *name, outcome.as_str()];
            (labels, provider.finished(mode, outcome))
        });
        outcomes.into_iter().filter(|(_, number)| number >= min)
    });
    scrape.numbers(FINISHED, finished)
}

fn write_calls(providers: &[Named], scrape: &mut Scrape<'_>) -> fmt::Result {
    let calls = providers.iter().flat_map(|(name, provider)| {
        CallKind::ALL.into_iter().flat_map(|kind| {
            CallResult::ALL.map(|result| {
                let labels = [name.as_str(), kind.as_str(), result.as_str()];
                (labels, provider.calls(kind, result).observed())
            })
        })
    });
    scrape.histogram(CALL_DURATION, calls)
}

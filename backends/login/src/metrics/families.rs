//! The families of the login service. conf/observe/README.md describes each.

use std::{fmt, sync::Arc};

use signpost_kit::{families, metrics::Scrape};

use super::{
    LoginMetrics,
    providers::{CallKind, CallResult, LoginMode, LoginOutcome, OTHER, ProviderMetrics},
};
use crate::config::ProviderName;

families! {
    REQUESTS = "signpost_login_requests", "Requests that a backend answered";
    DURATION = "signpost_login_request_duration_seconds",
        "From the received head to the response, without the waits of /check";
    BEGUN = "signpost_logins_begun", "Logins that were begun";
    FINISHED = "signpost_logins_finished", "Logins that ended";
    CALL_DURATION = "signpost_provider_call_duration_seconds", "Calls to providers";
    IN_FLIGHT = "signpost_provider_calls_in_flight", "Calls in flight, of all providers";
    WAITING = "signpost_checks_waiting", "Clients whose /check waits";
}

impl LoginMetrics {
    /// Writes the counters of a process as metrics.
    pub(crate) fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        self.write_requests(scrape)?;
        let providers = self.providers.all();
        write_logins(&providers, &self.providers.other, scrape)?;
        write_calls(&providers, scrape)?;
        let in_flight = providers.iter().map(|(_, provider)| provider.in_flight());
        let in_flight = in_flight.sum::<usize>() as u64;
        scrape.gauge(IN_FLIGHT, |add| add(&[], in_flight))?;
        let waiting = self.checks.count() as u64;
        scrape.gauge(WAITING, |add| add(&[], waiting))?;
        self.own.write(scrape)
    }

    fn write_requests(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        let versions = self.requests.all();
        scrape.counter(REQUESTS, |add| {
            for version in &versions {
                for (endpoint, status_class, number) in version.counted() {
                    let labels = [
                        ("version", version.version),
                        ("endpoint", endpoint),
                        ("status_class", status_class),
                    ];
                    add(&labels, number)?;
                }
            }
            Ok(())
        })?;
        scrape.histogram(DURATION, |add| {
            for version in &versions {
                let labels = [("version", version.version)];
                add(&labels, &version.durations.observed())?;
            }
            Ok(())
        })
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
    scrape.counter(BEGUN, |add| {
        for ((name, provider, min), mode) in by_mode() {
            let number = provider.begun(mode);
            if number >= *min {
                add(&[("mode", mode.as_str()), ("provider", name)], number)?;
            }
        }
        Ok(())
    })?;
    scrape.counter(FINISHED, |add| {
        for ((name, provider, min), mode) in by_mode() {
            for outcome in LoginOutcome::ALL {
                let labels = [
                    ("mode", mode.as_str()),
                    ("provider", name),
                    ("outcome", outcome.as_str()),
                ];
                let number = provider.finished(mode, outcome);
                if number >= *min {
                    add(&labels, number)?;
                }
            }
        }
        Ok(())
    })
}

fn write_calls(providers: &[Named], scrape: &mut Scrape<'_>) -> fmt::Result {
    scrape.histogram(CALL_DURATION, |add| {
        for (name, provider) in providers {
            for kind in CallKind::ALL {
                for result in CallResult::ALL {
                    let labels = [
                        ("provider", name.as_str()),
                        ("call", kind.as_str()),
                        ("result", result.as_str()),
                    ];
                    add(&labels, &provider.calls(kind, result).observed())?;
                }
            }
        }
        Ok(())
    })
}

//! Hands a request's outcome to all that read it.

use http::header::{HOST, USER_AGENT};
use signpost_kit::log::has_access_line;

use super::{Gateway, request::Received};
use crate::{
    observe::{
        access_log::{self, RequestFacts},
        outcome::Outcome,
    },
    request::{Headers, is_named},
    wire::syntax::field::NameAndValue,
};

/// Hands a request's outcome to all that read it.
pub(super) fn record<H: Headers>(
    gateway: &Gateway,
    request: &Received<'_, H>,
    outcome: &Outcome<'_>,
) {
    let (recording, records) = (&gateway.policy.recording, &gateway.state.records);
    if has_access_line(recording.access_sample, outcome.is_failure()) {
        access_log::write(outcome, &facts(gateway, request));
    }
    records.failures.log(outcome);
    let cells = &gateway.policy.backends.cells;
    records.metrics.count(outcome, cells);
    if let Some(spans) = &request.timing.spans {
        // Spans follow the access log: if it is off, no client's address leaves the gateway, either.
        spans.record(outcome, recording.access_sample > 0);
    }
    if let Some(watch) = &records.watch {
        let names = &gateway.policy.rules.admission.names;
        watch.see(outcome, names, || gateway.state.clock.now());
    }
    if let Some(usage) = &records.usage {
        let is_user_agent = |(name, _): &NameAndValue<'_>| is_named(name, &USER_AGENT);
        // A closure: few requests need the user agent, and finding it walks through the whole head.
        usage.count(outcome, || {
            let field = request.headers.each().find(is_user_agent);
            field.map(|(_, value)| value)
        });
    }
}

/// What only the access log needs of a request. Reads the headers once.
fn facts<'r, H: Headers>(gateway: &Gateway, request: &Received<'r, H>) -> RequestFacts<'r> {
    let version = &gateway.policy.rules.admission.names.version;
    let mut facts = RequestFacts {
        protocol: request.protocol,
        tls_version: request.tls_version,
        host: None,
        user_agent: None,
        version: None,
    };
    for (name, value) in request.headers.each() {
        if is_named(name, &HOST) {
            facts.host = Some(value);
        } else if is_named(name, &USER_AGENT) {
            facts.user_agent = Some(value);
        } else if is_named(name, version) {
            facts.version = Some(value);
        }
    }
    facts
}

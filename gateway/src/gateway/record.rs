//! Hands a request's outcome to all that read it.

use http::header::USER_AGENT;
use signpost_kit::log::is_sampled;

use super::{Gateway, received::ReceivedRequest};
use crate::{
    observe::{access_log::AccessLog, outcome::Outcome, record},
    request::{Headers, is_named},
    wire::syntax::field::NameAndValue,
};

impl Gateway {
    /// Hands a request's outcome to all that read it.
    pub(super) fn record<H: Headers>(
        &self,
        request: &ReceivedRequest<'_, H>,
        outcome: &Outcome<'_>,
    ) {
        record(outcome, self.access_log(outcome));
        if let Some(metrics) = &self.metrics {
            metrics.count(outcome);
        }
        if let Some(spans) = &request.spans {
            spans.record(outcome, self.logs_access);
        }
        if let Some(usage) = &self.state.usage {
            let is_user_agent = |(name, _): &NameAndValue<'_>| is_named(name, &USER_AGENT);
            usage.count(outcome, || {
                let field = request.headers.each().find(is_user_agent);
                field.map(|(_, value)| value)
            });
        }
    }

    /// Whether anything reads how long requests take.
    pub(super) fn reads_times(&self) -> bool {
        self.metrics.is_some() || self.logs_access || self.tracer.is_some()
    }

    /// The access log, if it gets the line of this request.
    fn access_log(&self, outcome: &Outcome<'_>) -> Option<&AccessLog> {
        let log = self.state.access_log.as_ref();
        log.filter(|_| self.logs_access && (outcome.is_failure() || is_sampled(self.access_sample)))
    }
}

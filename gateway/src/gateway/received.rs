//! A request that is being served: what its outcome needs, from its received head to the end of its response.

use std::{
    future::poll_fn,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use signpost_protocol::request_id::RequestId;

use super::Gateway;
use crate::{
    directory::apps::App,
    observe::{
        outcome::{Outcome, Times},
        spans::{RequestSpans, Step},
    },
    phases::{origin::Peer, route::Route},
    request::{Headers, quotas::Quotas},
};

/// A request whose head was received: the data that its outcome needs, served or rejected.
pub struct ReceivedRequest<'r, H> {
    pub(super) method: &'r [u8],
    pub(super) path: &'r str,
    pub(super) headers: &'r H,
    /// The gateway's id, or a trusted proxy's.
    pub(super) id: RequestId,
    /// When the head was complete, if anything reads that.
    pub(super) received: Option<Instant>,
    /// Whether the metrics read when it reaches its steps.
    pub(super) has_timed_steps: bool,
    /// The wait for the client's form, if the metrics read that.
    pub(super) form_wait: Duration,
    pub(super) client: IpAddr,
    /// The application that it claims. It may be forged: the verified one is in [`RoutedRequest`](crate::phases::route::RoutedRequest).
    pub(super) named_app: Option<Arc<App>>,
    /// Whether its signature was verified.
    pub(super) is_signed: bool,
    /// Its route, if it was rejected although it has one: its version does not serve now, or its account was rejected.
    pub(super) rejected_route: Option<Box<Route>>,
    /// What the rate limits leave that counted it.
    pub(super) quotas: Quotas,
    /// Its spans, if it is sampled.
    pub(super) spans: Option<Box<RequestSpans>>,
}

impl Gateway {
    /// Begins a request: assigns its id and start time.
    pub fn begin_request<'r, H: Headers>(
        &self,
        method: &'r [u8],
        path: &'r str,
        headers: &'r H,
        peer: &Peer,
    ) -> ReceivedRequest<'r, H> {
        ReceivedRequest {
            method,
            path,
            headers,
            id: self.state.ids.next(),
            received: self.reads_times().then(Instant::now),
            has_timed_steps: self.metrics.is_some(),
            form_wait: Duration::ZERO,
            client: peer.address,
            named_app: None,
            is_signed: false,
            rejected_route: None,
            quotas: Quotas::default(),
            spans: None,
        }
    }
}

impl<H> ReceivedRequest<'_, H> {
    /// The request id: the gateway's, or a trusted proxy's.
    #[must_use]
    pub const fn id(&self) -> &RequestId {
        &self.id
    }

    /// Begins a step that has a span, if the request is sampled.
    pub(super) fn begin_step(&mut self, step: Step) {
        if let Some(spans) = &mut self.spans {
            spans.begin_step(step);
        }
    }

    /// Ends the step that has begun, if there is one.
    pub(super) fn end_step(&mut self) {
        if let Some(spans) = &mut self.spans {
            spans.end_step();
        }
    }

    /// The time at which it reaches a step, if anything reads that.
    pub(super) fn step_time(&self) -> Option<Instant> {
        (self.has_timed_steps || self.spans.is_some()).then(Instant::now)
    }

    /// Waits for the client's form. Most forms arrive with their heads: then there is no wait, and no clock is read.
    pub(super) async fn wait_for_form<F: Future>(&mut self, mut form: Pin<&mut F>) -> F::Output {
        let mut since = None;
        let form = poll_fn(|context| {
            let form = form.as_mut().poll(context);
            if form.is_pending() && since.is_none() {
                since = self.step_time();
            }
            form
        });
        let form = form.await;
        self.form_wait = since.map_or(Duration::ZERO, |since| since.elapsed());
        form
    }

    /// Its outcome, if it ends now; neither rejected nor aborted.
    pub(super) fn outcome<'o>(
        &'o self,
        route: Option<&'o Route>,
        forwarded: &'o ForwardOutcome,
    ) -> Outcome<'o> {
        Outcome {
            request_id: &self.id,
            client: self.client,
            method: self.method,
            path: self.path,
            app: self.named_app.as_ref(),
            is_signed: self.is_signed,
            route,
            backend: forwarded.backend,
            status: forwarded.status,
            size: forwarded.size,
            times: Times {
                received: self.received,
                form_wait: self.form_wait,
                forwarded: forwarded.forwarded_at,
                answered: forwarded.responded_at,
                ended: self.received.map(|_| Instant::now()),
            },
            rejection: None,
            backend_problem: forwarded.problem.as_deref(),
        }
    }
}

/// The result of forwarding a request.
#[derive(Debug, Default)]
pub(super) struct ForwardOutcome {
    /// When the gateway began to forward the request, if anything reads that.
    pub(super) forwarded_at: Option<Instant>,
    /// When the head of the response was complete, or the gateway began its own; likewise.
    pub(super) responded_at: Option<Instant>,
    pub(super) backend: Option<SocketAddr>,
    pub(super) status: u16,
    pub(super) size: u64,
    pub(super) problem: Option<String>,
}

//! A request that is being served: what is known of it from its head on, and when it reached its steps.

use std::{
    future::poll_fn,
    net::IpAddr,
    pin::Pin,
    time::{Duration, Instant},
};

use http::HeaderValue;
use signpost_protocol::request_id::RequestId;

use super::Gateway;
use crate::{
    config::Placed,
    observe::{
        outcome::{Learnt, Outcome, Sent, Times},
        spans::{RequestSpans, Step},
    },
    phases::origin::Peer,
    request::{Headers, Target, rejection::Rejection},
};

/// A request whose head was received.
pub struct Received<'r, H> {
    pub(super) method: &'r [u8],
    pub(super) target: Target<'r>,
    /// The versions that host and path name.
    pub(super) placed: Placed,
    pub(super) headers: &'r H,
    /// The gateway's id, or a trusted proxy's.
    pub(super) id: RequestId,
    pub(super) client: IpAddr,
    /// The value of `Strict-Transport-Security` in its response.
    pub(super) hsts: Option<&'r HeaderValue>,
    /// The protocol's name and version.
    pub(super) protocol: &'static str,
    /// The version of TLS; `None` without TLS.
    pub(super) tls_version: Option<&'static str>,
    pub(super) timing: Timing,
}

/// When a request reached its steps.
pub(super) struct Timing {
    /// So far; it has not ended.
    times: Times,
    /// Its spans, if it is sampled.
    pub spans: Option<Box<RequestSpans>>,
}

impl<'r, H: Headers> Received<'r, H> {
    /// Assigns its id and start time.
    pub fn new(
        gateway: &Gateway,
        method: &'r [u8],
        target: Target<'r>,
        headers: &'r H,
        peer: &'r Peer,
        protocol: &'static str,
    ) -> Self {
        let mut target = target;
        let placed = gateway.policy.backends.versions.place(&mut target);
        Self {
            method,
            target,
            placed,
            headers,
            id: gateway.state.ids.next(),
            client: peer.address(),
            hsts: peer.connection.hsts.as_deref(),
            protocol,
            tls_version: peer.connection.tls_version,
            timing: Timing {
                times: Times::beginning(Instant::now()),
                spans: None,
            },
        }
    }
}

impl<H> Received<'_, H> {
    /// The request id: the gateway's, or a trusted proxy's.
    #[must_use]
    pub const fn id(&self) -> &RequestId {
        &self.id
    }

    /// Its outcome: it ends now.
    pub(super) fn outcome<'o>(
        &'o self,
        learnt: Learnt<'o>,
        sent: Sent,
        rejection: Option<&'o Rejection>,
    ) -> Outcome<'o> {
        Outcome {
            request_id: &self.id,
            client: self.client,
            method: self.method,
            path: self.target.path,
            compared: self.target.compared(),
            query: self.target.query,
            learnt,
            sent,
            times: Times {
                ended: Instant::now(),
                ..self.timing.times
            },
            rejection,
        }
    }
}

impl Timing {
    /// The gateway begins to forward the request.
    pub(super) fn begin_forwarding(&mut self) {
        self.times.forwarded = Some(Instant::now());
    }

    /// Since its head was received.
    pub(super) fn lasted(&self) -> Duration {
        self.times.received.elapsed()
    }

    /// The head of the response is complete.
    pub(super) fn begin_response(&mut self) {
        self.times.responded = Some(Instant::now());
    }

    /// The gateway begins a response of its own. If the request was forwarded, that is not the backend's time.
    pub(super) fn begin_own_response(&mut self) {
        if self.times.forwarded.is_none() {
            self.begin_response();
        }
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

    /// Waits for the client's form. Most forms arrive with their heads: then there is no wait, and no clock is read.
    pub(super) async fn wait_for_form<F: Future>(&mut self, mut form: Pin<&mut F>) -> F::Output {
        let mut since = None;
        let form = poll_fn(|context| {
            let form = form.as_mut().poll(context);
            if form.is_pending() && since.is_none() {
                since = Some(Instant::now());
            }
            form
        });
        let form = form.await;
        self.times.form_wait = since.map_or(Duration::ZERO, |since| since.elapsed());
        form
    }
}

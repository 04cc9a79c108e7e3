//! What one phase leaves for the next.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use gateway_protocol::request_id::RequestId;
use http::HeaderValue;

use crate::{
    apps::App,
    balance::attempts::Attempts,
    downstream::head::Head,
    phases::{
        admit::Passing,
        origin::{Origin, Peer},
        route::Route,
    },
    upstream::Sending,
};

/// A request whose head has come, and how far it got.
#[derive(Debug)]
pub struct Exchange {
    /// The head as sent.
    pub head: Head,
    /// What the phases made of it.
    pub context: RequestContext,
}

/// One request's state, filled in as it goes.
#[derive(Debug)]
pub struct RequestContext {
    /// When the head had come; known where there is an access log to say how long it took.
    pub started: Option<Instant>,
    /// Ours, or a trusted proxy's.
    pub request_id: RequestId,
    /// The trace that a trusted proxy is part of.
    pub traceparent: Option<HeaderValue>,
    /// The client's address, as far as it is known: the connection's other end, or whom trusted proxies say it is.
    pub client: IpAddr,
    /// Where the request comes from, for the backend; known once the request is admitted.
    pub origin: Option<Origin>,
    /// The headers that go on to the backend as they are.
    pub passing: Passing,
    /// Whether the connection ends with this request, whatever becomes of it.
    pub is_last: bool,
    /// The application that the request says it is of; verified once there is a route.
    pub app: Option<Arc<App>>,
    /// Bytes of the form body; `None` where there is none.
    pub body_length: Option<usize>,
    /// Where the request goes. Set once, when it is verified.
    pub route: Option<Route>,
    /// The code of the problem that the backend answered, as it says in `X-Gateway-Problem`.
    pub backend_problem: Option<String>,
    /// How it was sent: to which addresses, where there are several.
    pub attempts: Attempts,
    /// The connection to the backend, as far as this request is concerned; the last one, where it was sent again.
    pub sending: Option<Arc<Sending>>,
}

impl RequestContext {
    /// A request of which nothing is known but who sent it, and when.
    #[must_use]
    pub fn new(request_id: RequestId, peer: &Peer, started: Option<Instant>) -> Self {
        Self {
            started,
            request_id,
            traceparent: None,
            client: peer.address,
            origin: None,
            passing: Passing::new(),
            is_last: false,
            app: None,
            body_length: None,
            route: None,
            backend_problem: None,
            attempts: Attempts::default(),
            sending: None,
        }
    }

    /// How long it has taken until now.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.started
            .map_or(Duration::ZERO, |started| started.elapsed())
    }
}

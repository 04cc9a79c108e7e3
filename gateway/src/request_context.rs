//! What one phase leaves for the next.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Instant,
};

use gateway_protocol::request_id::RequestId;

use crate::{
    apps::App,
    phases::{origin::Origin, route::Route},
};

/// One request's state, filled in as it goes.
#[derive(Debug)]
pub struct RequestContext {
    /// When the head had come.
    pub started: Instant,
    /// Ours, or a trusted proxy's.
    pub request_id: RequestId,
    /// The trace that a trusted proxy is part of.
    pub traceparent: Option<String>,
    /// The connection's other end.
    pub peer: Option<IpAddr>,
    /// Who the client is; known once the request is admitted.
    pub origin: Option<Origin>,
    /// The application that the request says it is of; verified once there is a route.
    pub app: Option<Arc<App>>,
    /// Bytes of the form body; `None` where there is none.
    pub body_length: Option<usize>,
    /// Where the request goes. Set once, when it is verified.
    pub route: Option<Route>,
}

impl RequestContext {
    /// A request of which nothing is known but its id.
    #[must_use]
    pub fn new(request_id: RequestId) -> Self {
        Self {
            started: Instant::now(),
            request_id,
            traceparent: None,
            peer: None,
            origin: None,
            app: None,
            body_length: None,
            route: None,
        }
    }

    /// The client's address, as far as it is known.
    #[must_use]
    pub fn client(&self) -> IpAddr {
        let origin = self.origin.as_ref().map(|origin| origin.client);
        origin
            .or(self.peer)
            .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    /// Whether what proxies say of this request is believed.
    #[must_use]
    pub fn is_from_trusted_proxy(&self) -> bool {
        self.origin
            .as_ref()
            .is_some_and(|origin| origin.is_from_trusted_proxy)
    }

    /// The application that the request is of.
    #[must_use]
    pub fn app(&self) -> Option<&App> {
        self.app.as_deref()
    }
}

//! Sends a copy to a backend, and takes the whole response.

use std::{
    future::Future as _,
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use signpost_protocol::request_id::RequestId;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::MAX_BODY;
use crate::{
    directory::apps::App,
    request::{
        Method,
        client::{BodyLimits, Client, Disconnected, ResponseHead},
        recorder::WholeResponse,
        rejection::Rejection,
    },
    upstream::{
        backend::{exchange::BackendRequest, upstream::BackendClient},
        routing::destination::{Callee, Destination},
    },
    wire::syntax::field::NameAndValue,
};

/// What a copy may take longer than its request did, from its beginning to the whole response.
const MARGIN: Duration = Duration::from_secs(10);
/// Limit of a copy's time: some requests wait for an event.
const MAX_TIME: Duration = Duration::from_secs(60);

/// A request, and the backend that it is sent to.
pub struct CopyRequest {
    /// The head, without its closing empty line.
    pub headers: Vec<u8>,
    /// The request's id, which a response may have to echo.
    pub id: RequestId,
    /// The body.
    pub body: Vec<u8>,
    /// Its method.
    pub method: Method,
    /// The backend.
    pub callee: Callee,
}

// Prints no content, which includes credentials.
signpost_protocol::hide_in_debug!(CopyRequest);

impl CopyRequest {
    /// The whole response, with a body of at most [`MAX_BODY`] bytes; `None` if there was none in time. `lasted` is what the
    /// client's own request has taken.
    pub(super) async fn send(
        &self,
        backends: &BackendClient,
        (app, client): (Option<&App>, IpAddr),
        lasted: Duration,
    ) -> Option<WholeResponse> {
        let destination = Destination::new(&self.callee, app, client);
        let mut destination = destination.ok()?.of_copy();
        let head = [&*self.headers, b"\r\n"].concat();
        let request = BackendRequest {
            head: &head,
            body: &self.body,
            spooled: None,
            method: self.method,
            response: None,
        };
        let mut no_client = NoClient::default();
        let to = &mut destination;
        let fetched = backends.fetch(request, to, &self.id, MAX_BODY, &mut no_client);
        // A request that waits for an event takes as long at the other version.
        let limit = lasted.saturating_add(MARGIN).min(MAX_TIME);
        timeout(limit, fetched).await.ok()?.ok()
    }
}

/// The client's side of a copy: it takes everything, and never leaves.
#[derive(Default)]
pub(super) struct NoClient {
    timer: Option<Pin<Box<Sleep>>>,
}

impl Client for NoClient {
    fn protocol(&self) -> &'static str {
        ""
    }

    async fn read_body(&mut self, _: bool, _: BodyLimits) -> Result<Vec<u8>, Rejection> {
        Ok(Vec::new())
    }

    fn poll_disconnected(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(context)
    }

    fn has_begun_response(&self) -> bool {
        false
    }

    fn begin<'f>(&mut self, _: ResponseHead<'_>, _: impl Iterator<Item = NameAndValue<'f>>) {}

    async fn send(&mut self, _: &[u8]) -> Result<(), Disconnected> {
        Ok(())
    }

    async fn finish(&mut self, _: &[u8]) -> Result<(), Disconnected> {
        Ok(())
    }
}

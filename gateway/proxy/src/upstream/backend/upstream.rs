//! Sends one request, with retries on other addresses, and returns the head of its response.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use signpost_kit::{counted_label, label_enum, metrics::cells::LabelCounters};
use signpost_protocol::request_id::RequestId;

use super::{
    backend_head::BackendHead,
    connector::Connector,
    exchange::{BackendRequest, ExchangeFailure, ExchangeTimeouts, ReceivedHead, exchange},
    failure::BackendFailure,
    pool,
    relay::Relay,
    retry::{Attempt, Retry, retry},
    stream::BackendStream,
};
use crate::{
    config::Timeouts,
    request::{
        Method,
        client::{Client, ResponseHead},
        recorder::{Keep, Recorder, WholeResponse},
        rejection::Rejection,
    },
    tls::backend::Endpoint,
    upstream::routing::{destination::Destination, status::BackendEvent},
};

/// Sends requests to backends.
pub struct BackendClient {
    connector: Connector,
    timeouts: ExchangeTimeouts,
    taken: Arc<LabelCounters<Taken>>,
}

/// A backend's response whose head was read; the body follows.
pub struct Response {
    received: ReceivedHead,
    stream: BackendStream,
    endpoint: Endpoint,
}

label_enum! {
    /// Where the connection for an attempt comes from: the label `result`.
    pub enum Taken {
        /// From the thread's pool.
        Reused = "reused",
        /// It was established.
        New = "new",
        /// It could not be established.
        Failed = "failed",
    }
}

counted_label!(Taken);

impl BackendClient {
    /// Creates a client with these timeouts.
    #[must_use]
    pub fn new(timeouts: &Timeouts) -> Self {
        Self {
            connector: Connector::new(timeouts.connect),
            timeouts: exchange_timeouts(timeouts),
            taken: Arc::default(),
        }
    }

    /// Returns the same client with other timeouts.
    #[must_use]
    pub(crate) fn with_timeouts(&self, timeouts: &Timeouts) -> Self {
        Self {
            connector: self.connector.with_timeout(timeouts.connect),
            timeouts: exchange_timeouts(timeouts),
            taken: Arc::clone(&self.taken),
        }
    }

    /// The connections that were taken for requests so far.
    #[must_use]
    pub fn taken(&self) -> &LabelCounters<Taken> {
        &self.taken
    }

    /// Sends a request, retries it if allowed, and waits for the head of its response.
    ///
    /// # Errors
    ///
    /// No address is healthy, the last attempt failed, or the client disconnected.
    pub async fn send<C: Client>(
        &self,
        request: BackendRequest<'_>,
        destination: &mut Destination<'_>,
        client: &mut C,
    ) -> Result<Response, Rejection> {
        let mut endpoint = destination.choose()?;
        let mut was_repeated = false;
        loop {
            let connected = self.connect(
                &endpoint,
                destination.idle_seconds(),
                request.method,
                was_repeated,
            );
            let connected = connected.await;
            let is_reused = matches!(connected, Ok((_, true)));
            let failed = match connected {
                Ok((mut stream, _)) => {
                    // An idle connection shows that the address is healthy only once it brings a response.
                    if !is_reused {
                        destination.restore();
                    }
                    match exchange(&mut stream, request, client, self.timeouts).await {
                        Ok(received) => {
                            if is_reused {
                                destination.restore();
                            }
                            return Ok(Response {
                                received,
                                stream,
                                endpoint,
                            });
                        }
                        Err(failed) => failed,
                    }
                }
                Err(failure) => ExchangeFailure {
                    failure,
                    has_response: false,
                },
            };
            // Before the retry is decided: other requests must stop choosing an address that no connection reaches.
            note_failure(destination, &failed.failure);
            let attempt = Attempt {
                is_idempotent: request.method.is_idempotent(),
                is_reused,
                has_response: failed.has_response,
                has_another: destination.has_another(),
                was_repeated,
            };
            match retry(&failed.failure, attempt) {
                Retry::No => return Err(failed.failure.into()),
                Retry::OtherAddress => endpoint = destination.choose()?,
                Retry::SameAddress => was_repeated = true,
            }
            destination.count(BackendEvent::Retry);
        }
    }

    /// Sends a request and takes the whole response, with a body of at most `limit` bytes. `client` only ends the exchange.
    ///
    /// # Errors
    ///
    /// As of [`Self::send`]; or the response belongs to a request with another id than `id`.
    pub(crate) async fn fetch<C: Client>(
        &self,
        request: BackendRequest<'_>,
        destination: &mut Destination<'_>,
        id: &RequestId,
        limit: usize,
        client: &mut C,
    ) -> Result<WholeResponse, Rejection> {
        let keep = |_: &ResponseHead<'_>, _: &[u8]| Keep::Whole;
        let mut recorder = Recorder::new(client, limit, keep);
        let mut response = self.send(request, destination, &mut recorder).await?;
        response.check_id(id)?;
        let (head, bytes) = response.head();
        let response_head = ResponseHead {
            status: head.status,
            reason: b"",
            body: head.body.into(),
        };
        recorder.begin(response_head, head.fields(bytes));
        let (idle_seconds, mut passed) = (destination.idle_seconds(), 0);
        let relayed = self.relay(response, (idle_seconds, None), &mut recorder, &mut passed);
        // A body that is too large is broken off: it is kept as such.
        let _ = relayed.await;
        Ok(recorder.kept().unwrap_or_default())
    }

    /// Relays the body of a response to the client and counts its bytes in `passed`. If it was read to its end, its connection
    /// can then be idle for `idle_seconds`. `timeout` limits each wait for a part, if the backend has one of its own.
    ///
    /// # Errors
    ///
    /// The body is incomplete or malformed, or the client disconnected.
    pub fn relay<C: Client>(
        &self,
        response: Response,
        (idle_seconds, timeout): (u16, Option<Duration>),
        client: &mut C,
        passed: &mut u64,
    ) -> impl Future<Output = Result<(), BackendFailure>> {
        // Not async itself: the future of every request would have room for this response twice.
        let endpoint = response.endpoint;
        let release = move |stream| pool::put(endpoint, stream, idle_seconds);
        let timeout = timeout.unwrap_or(self.timeouts.receive);
        let relay = Relay::new(response.stream, response.received, timeout);
        relay.run(client, passed, BackendStream::piece_limit, release)
    }

    /// Takes an idle connection, or establishes a new one; returns whether it was idle. A repeated request always gets a new one.
    ///
    /// If the client disconnects, the attempt continues: its result shows whether the address is healthy.
    async fn connect(
        &self,
        endpoint: &Endpoint,
        idle_seconds: u16,
        method: Method,
        is_repeated: bool,
    ) -> Result<(BackendStream, bool), BackendFailure> {
        let idle = match (is_repeated, method.is_idempotent()) {
            (true, _) => None,
            (false, true) => pool::take(endpoint, idle_seconds),
            // A POST is not repeated if its connection turns out to be closed, so it pays for a check.
            (false, false) => pool::take_checked(endpoint, idle_seconds).await,
        };
        if let Some(stream) = idle {
            self.taken.count(Taken::Reused);
            return Ok((stream, true));
        }
        // Boxed to keep the future of every request small: most need no new connection.
        let connected = Box::pin(self.connector.connect(endpoint)).await;
        self.taken.count(match connected {
            Ok(_) => Taken::New,
            Err(_) => Taken::Failed,
        });
        Ok((connected?, false))
    }
}

/// Counts a failed attempt, and marks its address as unreachable if that is at fault.
fn note_failure(destination: &Destination<'_>, failure: &BackendFailure) {
    failure.cause().inspect(|cause| destination.count(*cause));
    if let BackendFailure::NotConnected {
        is_backend_fault: true,
        why,
        ..
    } = failure
    {
        destination.fail(why);
    }
}

const fn exchange_timeouts(timeouts: &Timeouts) -> ExchangeTimeouts {
    ExchangeTimeouts {
        send: timeouts.forward,
        receive: timeouts.response,
    }
}

impl Response {
    /// The head, and the bytes that it was parsed from.
    #[must_use]
    pub fn head(&self) -> (&BackendHead, &[u8]) {
        (&self.received.head, &self.received.bytes)
    }

    /// The address that answered.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.endpoint.address
    }

    /// Checks that it belongs to the request of this id, as [`BackendStream::check_id`] does.
    ///
    /// # Errors
    ///
    /// It belongs to another one.
    pub(crate) fn check_id(&mut self, id: &RequestId) -> Result<(), BackendFailure> {
        let ReceivedHead { head, bytes, .. } = &self.received;
        self.stream.check_id(head, bytes, id.as_bytes())
    }
}

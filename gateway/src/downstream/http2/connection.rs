//! The connection loop: accepts streams, serves them, and ends the connection.
//!
//! One task serves the connection and all its streams. So a request needs no task, and its response is written to the
//! socket in the same step in which it arrives from the backend.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, Stream as _};
use h2::{
    Reason, RecvStream,
    server::{Connection, SendResponse},
};
use tokio::time::{Instant, timeout_at};

use super::{
    bounds::{GOAWAY_TIMEOUT, LINGER_TIMEOUT, MAX_IDLE_TIMERS, MAX_LATE_REQUESTS, settings},
    exchange::{Http2Exchange, RequestFacts},
    head::{JudgedHead, StreamHead},
    meter::{Meter, UnfinishedHead},
    snapshot::{Snapshot, Snapshots},
    stream::MeteredStream,
};
use crate::{
    config::{ConnectionLimits, Timeouts},
    downstream::http1::connection::unparsed_head,
    gateway::{Gateway, reject_bad_head, serve},
    limits::connections::OpenStreams,
    request::{
        BodyLength,
        client::ConnectionInfo,
        drain::{Beginning, ClosingWatch, Drain, InFlight},
    },
    wire::io::{Stream, Timer, arrival_deadline},
};

/// Serves HTTP/2 connections.
pub(crate) struct Http2Connections {
    /// The gateway of the current configuration.
    pub current: Arc<ArcSwap<Gateway>>,
}

impl Http2Connections {
    /// Serves a client's connection until it ends. The client's preface has not been read. `beginning` ends after the
    /// handshake and the requests that came with it.
    pub(crate) async fn serve<S: Stream + 'static>(
        &self,
        stream: S,
        client: ConnectionInfo,
        open_streams: OpenStreams,
        beginning: Beginning,
    ) {
        let mut snapshots = Snapshots::new(&self.current, client);
        let gateway = Arc::clone(&snapshots.get().gateway);
        let is_proxy = snapshots.get().peer.is_trusted;
        let (state, bounds) = (Arc::clone(&gateway.state), gateway.policy.bounds);
        let meter = Arc::new(Meter::default());
        let first_request = Instant::now() + bounds.timeouts.head;
        let head_limits = &bounds.requests.head;
        let stream = MeteredStream::new(stream, Arc::clone(&meter), head_limits);
        let handshake = settings(head_limits).handshake(stream);
        drop(gateway);
        // Boxed, so that the space is free afterwards.
        let Ok(Ok(connection)) = Box::pin(timeout_at(first_request, handshake)).await else {
            return;
        };
        let closing = pin!(state.drain.closing());
        let mut serving = Serving {
            connection: Some(connection),
            streams: FuturesUnordered::new(),
            served: Vec::new(),
            timers: Vec::new(),
            requests: 0,
            late_requests: 0,
            is_proxy,
            open_streams,
            drain: &state.drain,
            closing: ClosingWatch::new(&state.drain, closing),
            meter: &meter,
            refilled: Instant::now(),
            timeouts: bounds.timeouts,
            limits: bounds.connections,
            deadlines: Deadlines::idle_until(first_request),
            timer: Timer::default(),
            is_going_away: false,
            going_away: None,
        };
        let mut begin = |stream: NewStream, timer: Timer, in_flight| {
            let snapshot = Arc::clone(snapshots.get());
            let bounds = &snapshot.gateway.policy.bounds;
            let (timeouts, limits) = (bounds.timeouts, bounds.connections);
            Begun {
                future: serve_stream(snapshot, stream, timer, &meter, in_flight),
                timeouts,
                limits,
            }
        };
        let mut beginning = Some(beginning);
        poll_fn(|context| {
            let polled = serving.poll(context, &mut begin);
            drop(beginning.take());
            polled
        })
        .await;
    }
}

/// A stream whose head was received.
struct NewStream {
    head: StreamHead,
    body: RecvStream,
    respond: SendResponse<Bytes>,
}

/// What a served stream leaves: its timer, and the guard that counts it until its last bytes were handed to the socket.
type Served<'d> = (Timer, InFlight<'d>);

/// A stream that is served from now on, and the settings that its connection has by the same configuration.
struct Begun<F> {
    future: F,
    timeouts: Timeouts,
    limits: ConnectionLimits,
}

/// Serves one stream.
async fn serve_stream<'d>(
    snapshot: Arc<Snapshot>,
    stream: NewStream,
    timer: Timer,
    meter: &'d Meter,
    in_flight: InFlight<'d>,
) -> Served<'d> {
    let Snapshot { gateway, peer } = &*snapshot;
    let NewStream {
        head,
        body,
        respond,
    } = stream;
    let limits = &gateway.policy.bounds.requests.head;
    let send = gateway.policy.bounds.send();
    let exchange = |method: &[u8], length| {
        let is_head = method == b"HEAD";
        let facts = RequestFacts { length, is_head };
        Http2Exchange::new(respond, body, facts, send, timer, meter)
    };
    let client = match head.judge(limits) {
        Ok(JudgedHead { head, body }) => {
            let mut client = exchange(head.method(), body);
            serve(gateway, &head, peer, &mut client).await;
            client
        }
        Err((fault, written)) => {
            let unparsed = unparsed_head(&written);
            let mut client = exchange(unparsed.method, BodyLength::Unknown);
            let rejection = fault.rejection(limits, gateway.policy.bounds.timeouts.head);
            reject_bad_head(gateway, unparsed, &rejection, peer, &mut client).await;
            client
        }
    };
    (client.end(), in_flight)
}

/// A connection that is served.
struct Serving<'d, S: Stream, F> {
    /// `None` once it has ended. Its streams end by themselves.
    connection: Option<Connection<MeteredStream<S>, Bytes>>,
    streams: FuturesUnordered<F>,
    /// Streams whose last bytes may still wait for the socket.
    served: Vec<InFlight<'d>>,
    timers: Vec<Timer>,
    requests: u64,
    /// Those after a GOAWAY.
    late_requests: u64,
    /// Whether the peer is a trusted proxy.
    is_proxy: bool,
    open_streams: OpenStreams,
    drain: &'d Drain,
    closing: ClosingWatch<'d>,
    meter: &'d Meter,
    /// When the meter's budget was last refilled.
    refilled: Instant,
    timeouts: Timeouts,
    limits: ConnectionLimits,
    deadlines: Deadlines,
    timer: Timer,
    /// Whether a GOAWAY was sent.
    is_going_away: bool,
    /// Held during a stop, from the GOAWAY to the connection's end: the client may have sent another request before it
    /// received the GOAWAY.
    going_away: Option<InFlight<'d>>,
}

/// The times at which something ends.
#[derive(Debug, Default)]
struct Deadlines {
    /// The idle connection; `None` while it has streams.
    idle: Option<Instant>,
    /// The head that is being received.
    head: Option<Instant>,
    /// The client's time to accept bytes, and the bytes written when it began; `None` if it accepts them.
    blocked: Option<(Instant, u64)>,
    /// The lingering close.
    linger: Option<Instant>,
}

impl Deadlines {
    fn idle_until(first_request: Instant) -> Self {
        Self {
            idle: Some(first_request),
            ..Self::default()
        }
    }

    fn next(&self) -> Option<Instant> {
        let blocked = self.blocked.map(|(deadline, _)| deadline);
        // A connection that receives a head is not idle.
        let idle = self.idle.filter(|_| self.head.is_none());
        [idle, self.head, blocked, self.linger]
            .into_iter()
            .flatten()
            .min()
    }
}

impl<'d, S: Stream, F: Future<Output = Served<'d>>> Serving<'d, S, F> {
    /// Ready once the connection and all its streams have ended.
    fn poll<B>(&mut self, context: &mut Context<'_>, begin: &mut B) -> Poll<()>
    where
        B: FnMut(NewStream, Timer, InFlight<'d>) -> Begun<F>,
    {
        loop {
            let has_accepted = self.accept(context, begin);
            let has_served = self.serve(context);
            if self.connection.is_none() {
                self.served.clear();
                return if self.streams.is_empty() {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                };
            }
            // Another turn sends what the streams have left, and finds that no more have arrived.
            let has_changed = has_accepted || has_served || self.check(context);
            if !has_changed {
                return Poll::Pending;
            }
        }
    }

    /// Advances the connection, and begins its new streams. Returns whether there were any, or there is room for more.
    fn accept<B>(&mut self, context: &mut Context<'_>, begin: &mut B) -> bool
    where
        B: FnMut(NewStream, Timer, InFlight<'d>) -> Begun<F>,
    {
        let mut has_accepted = false;
        while let Some(connection) = &mut self.connection {
            match connection.poll_accept(context) {
                Poll::Ready(Some(Ok((request, mut respond)))) => {
                    has_accepted = true;
                    self.requests += 1;
                    let is_reset = respond.poll_reset(context).is_ready();
                    self.begin(request.into_body(), respond, is_reset, begin);
                    self.late_requests += u64::from(self.is_going_away);
                    if self.late_requests > MAX_LATE_REQUESTS {
                        self.meter.close();
                    }
                    if self.requests >= self.limits.requests {
                        self.go_away();
                    }
                }
                Poll::Ready(Some(Err(_)) | None) => self.connection = None,
                Poll::Pending => {
                    has_accepted |= self.meter.drop_heads();
                    break;
                }
            }
        }
        has_accepted
    }

    /// Begins a stream, or refuses it: the client may then send the request on another connection. A stream that the
    /// client has reset is not begun.
    fn begin<B>(
        &mut self,
        body: RecvStream,
        mut respond: SendResponse<Bytes>,
        is_reset: bool,
        begin: &mut B,
    ) where
        B: FnMut(NewStream, Timer, InFlight<'d>) -> Begun<F>,
    {
        // Also those whose answers still wait for the client.
        let open = self.streams.len() + self.served.len();
        let head = self.meter.take_head(respond.stream_id().as_u32());
        if is_reset {
            return;
        }
        let head = head.filter(|_| self.open_streams.has_room(open, &self.limits));
        let Some(head) = head else {
            respond.send_reset(Reason::REFUSED_STREAM);
            return;
        };
        self.open_streams.begin();
        self.deadlines.idle = None;
        let timer = self.timers.pop().unwrap_or_default();
        let stream = NewStream {
            head,
            body,
            respond,
        };
        let begun = begin(stream, timer, self.drain.begin());
        (self.timeouts, self.limits) = (begun.timeouts, begun.limits);
        self.streams.push(begun.future);
        self.allow_proxy();
    }

    /// The budget of a trusted proxy grows with its streams in flight and its answered requests.
    fn allow_proxy(&self) {
        if self.is_proxy {
            self.meter.allow_proxy(self.streams.len());
        }
    }

    /// Advances the streams. Returns whether one has ended.
    fn serve(&mut self, context: &mut Context<'_>) -> bool {
        let mut has_served = false;
        while let Poll::Ready(Some((timer, in_flight))) =
            Pin::new(&mut self.streams).poll_next(context)
        {
            has_served = true;
            self.open_streams.end();
            self.served.push(in_flight);
            if self.timers.len() < MAX_IDLE_TIMERS {
                self.timers.push(timer);
            }
        }
        if has_served && self.streams.is_empty() {
            let timeout = if self.is_going_away {
                GOAWAY_TIMEOUT
            } else {
                self.timeouts.idle
            };
            self.deadlines.idle = Some(Instant::now() + timeout);
        }
        if has_served {
            self.allow_proxy();
            if self.drain.is_draining() {
                self.go_away();
            }
        }
        has_served
    }

    /// Checks the budget, the deadlines, and whether a stop closes idle connections. Returns whether the connection must
    /// be advanced again.
    fn check(&mut self, context: &mut Context<'_>) -> bool {
        if self.deadlines.linger.is_none() {
            if let Some(reason) = self.meter.failure() {
                self.end_now(reason);
                return true;
            }
            let was_paused = self.meter.take_pause();
            if self.meter.is_over() && !self.meter.is_closing() {
                self.meter.refill(&mut self.refilled);
                if self.meter.is_over() {
                    self.meter.close();
                }
                return true;
            }
            if was_paused && !self.meter.is_closing() {
                // What was sent meanwhile has returned a part of the budget.
                return true;
            }
            if self.meter.is_closing() && !self.is_going_away {
                self.go_away();
                return true;
            }
        }
        if !self.is_going_away && self.closing.poll(context).is_ready() {
            self.go_away();
            return true;
        }
        // The client may have sent a request before it received a GOAWAY of the drain delay.
        if self.is_going_away && self.going_away.is_none() && self.drain.is_closing() {
            self.going_away = Some(self.drain.begin());
        }
        self.check_progress();
        // All that was in flight is with the socket.
        let is_done = self.streams.is_empty() && self.served.is_empty();
        if self.meter.is_closing() && is_done && self.deadlines.linger.is_none() {
            self.end_now(Reason::ENHANCE_YOUR_CALM);
            return true;
        }
        let Some(deadline) = self.deadlines.next() else {
            return false;
        };
        self.timer.poll(context, deadline).is_ready() && self.expire(deadline)
    }

    /// Notes whether the client accepts bytes, and whether the lingering close has begun.
    fn check_progress(&mut self) {
        match (self.meter.blocked_at(), self.deadlines.blocked) {
            (None, _) => {
                self.deadlines.blocked = None;
                self.served.clear();
                self.open_streams.release(self.streams.len());
            }
            (Some(written), Some((_, before))) if written == before => {}
            (Some(written), _) => {
                self.deadlines.blocked = Some((Instant::now() + self.timeouts.send, written));
            }
        }
        self.deadlines.head = self.meter.unfinished_head().map(|head| {
            let UnfinishedHead { since, received } = head;
            arrival_deadline(since, self.timeouts.head, received, self.limits.min_rate)
        });
        if self.deadlines.linger.is_none() && self.meter.is_shutting_down() {
            self.deadlines.linger = Some(Instant::now() + LINGER_TIMEOUT);
        }
    }

    /// A deadline has passed. Returns true: the connection or its end must be advanced.
    fn expire(&mut self, deadline: Instant) -> bool {
        if self.deadlines.head == Some(deadline) {
            self.meter.expire_head();
        } else if self.deadlines.idle == Some(deadline) && !self.is_going_away {
            self.go_away();
        } else {
            // The client accepts no bytes, or does not close its side.
            self.connection = None;
        }
        true
    }

    /// Sends GOAWAY. The connection ends after its streams, once the client has received it.
    fn go_away(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if self.is_going_away {
            return;
        }
        self.is_going_away = true;
        connection.graceful_shutdown();
        if self.drain.is_closing() {
            self.going_away = Some(self.drain.begin());
        }
        if self.streams.is_empty() {
            self.deadlines.idle = Some(Instant::now() + GOAWAY_TIMEOUT);
        }
    }

    /// Ends the connection. Its streams are reset.
    fn end_now(&mut self, reason: Reason) {
        if self.deadlines.linger.is_some() {
            return;
        }
        if let Some(connection) = &mut self.connection {
            connection.abrupt_shutdown(reason);
        }
        self.is_going_away = true;
        self.deadlines.linger = Some(Instant::now() + LINGER_TIMEOUT);
    }
}

#[cfg(test)]
mod tests;

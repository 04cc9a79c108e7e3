//! The connection loop: accepts streams, serves them, and ends the connection.
//!
//! One task serves the connection and all its streams. So a request needs no task, and its response is written to the
//! socket in the same step in which it arrives from the backend.

mod ending;

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

use self::ending::Deadlines;
use super::{
    bounds::{GOAWAY_TIMEOUT, MAX_IDLE_TIMERS, MAX_LATE_REQUESTS, MAX_WAITING_RESPONSES, settings},
    exchange::Http2Exchange,
    head::StreamHead,
    meter::Meter,
    stream::MeteredStream,
};
use crate::{
    config::{ConnectionLimits, Timeouts},
    downstream::{
        current::{Current, Snapshot},
        http1::connection::unparsed_head,
    },
    limits::connections::OpenStreams,
    request::{
        BodyLength,
        client::ConnectionInfo,
        drain::{Beginning, ClosingWatch, Drain, InFlight},
    },
    serve::{Gateway, reject_bad_head, serve},
    wire::io::{Stream, Timer},
};

/// Serves a client's connection until it ends. The client's preface has not been read. `beginning` ends after the
/// handshake and the requests that came with it.
pub(crate) async fn serve_connection<S: Stream + 'static>(
    current: &ArcSwap<Gateway>,
    stream: S,
    client: Box<ConnectionInfo>,
    open_streams: OpenStreams,
    beginning: Beginning,
) {
    let mut current = Current::new(current, client);
    let gateway = Arc::clone(&current.get().gateway);
    let is_proxy = current.get().peer.is_trusted;
    let (state, bounds) = (Arc::clone(&gateway.state), gateway.policy.bounds);
    let meter = Arc::new(Meter::default());
    let first_request = Instant::now() + bounds.timeouts.head;
    let head_limits = &bounds.requests.head;
    let stream = MeteredStream::new(stream, Arc::clone(&meter), head_limits);
    let handshake = settings(head_limits).handshake(stream);
    // A connection that lasts must not keep the configuration that it began with.
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
        let snapshot = Arc::clone(current.get());
        let bounds = &snapshot.gateway.policy.bounds;
        let (timeouts, mut limits) = (bounds.timeouts, bounds.connections);
        limits.requests = snapshot.max_requests;
        Begun {
            future: Box::pin(serve_stream(snapshot, stream, timer, &meter, in_flight)),
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

/// A stream whose head was received.
struct NewStream {
    head: StreamHead,
    body: RecvStream,
    respond: SendResponse<Bytes>,
}

/// What a served stream leaves: its timer, its id, and the guard that counts it until its last bytes were handed to the
/// socket.
type Served<'d> = (Timer, u32, InFlight<'d>);

/// A stream that is served from now on, and the settings that its connection has by the same configuration.
struct Begun<F> {
    /// Boxed here, since it is large: each move would copy it.
    future: Pin<Box<F>>,
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
    let Snapshot { gateway, peer, .. } = &*snapshot;
    let id = stream.respond.stream_id().as_u32();
    let limits = &gateway.policy.bounds.requests.head;
    let send = gateway.policy.bounds.send();
    let exchange = |method: &[u8], length| {
        let is_head = method == b"HEAD";
        Http2Exchange::new(
            (stream.respond, stream.body),
            length,
            is_head,
            send,
            timer,
            meter,
        )
    };
    let client = match stream.head.judge(limits) {
        Ok((head, body)) => {
            let mut client = exchange(head.method(), body);
            serve(gateway, &head, peer, &mut client).await;
            client
        }
        Err((fault, written)) => {
            let unparsed = unparsed_head(&written);
            let mut client = exchange(unparsed.method, BodyLength::Unknown);
            let rejection = fault.rejection(limits, gateway.policy.bounds.timeouts.head, &written);
            reject_bad_head(gateway, unparsed, &rejection, peer, &mut client).await;
            client
        }
    };
    (client.end(), id, in_flight)
}

/// A connection that is served.
struct Serving<'d, S: Stream, F> {
    /// `None` once it has ended. Its streams end by themselves.
    connection: Option<Connection<MeteredStream<S>, Bytes>>,
    streams: FuturesUnordered<Pin<Box<F>>>,
    /// Streams whose last bytes may still wait for the socket.
    served: Vec<(u32, InFlight<'d>)>,
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

impl<'d, S: Stream, F: Future<Output = Served<'d>>> Serving<'d, S, F> {
    /// Ready once the connection and all its streams have ended.
    ///
    /// A turn advances the `h2` crate, which reads, writes and brings new streams; then the streams themselves; then what
    /// may end the connection. The crate sends what a stream has written only when it is advanced again, and a stream may
    /// have made room for the next one. So turns go on until one has changed nothing: then every waker is registered.
    fn poll<B>(&mut self, context: &mut Context<'_>, begin: &mut B) -> Poll<()>
    where
        B: FnMut(NewStream, Timer, InFlight<'d>) -> Begun<F>,
    {
        loop {
            let has_accepted = self.accept(context, begin);
            let has_served = self.serve(context);
            if self.connection.is_none() {
                // No byte will be handed to the socket any more, so a stop need not wait for these.
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
                    // A stream that is reset at once must not reach a backend, which would do the work for nothing
                    // (CVE-2023-44487).
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
        // Also of a stream that is not begun: its head would occupy a place until the next stream comes.
        let head = self.meter.take_head(respond.stream_id().as_u32());
        if is_reset {
            return;
        }
        let has_room = self.open_streams.has_room(open, &self.limits)
            && self.meter.waiting_responses() < MAX_WAITING_RESPONSES;
        let head = head.filter(|_| has_room);
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
        while let Poll::Ready(Some((timer, id, in_flight))) =
            Pin::new(&mut self.streams).poll_next(context)
        {
            has_served = true;
            self.open_streams.end();
            self.served.push((id, in_flight));
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
            // With a response, as HTTP/1.1 says `Connection: close`. Idle connections go later, in the closing phase.
            if self.drain.is_draining() {
                self.go_away();
            }
        }
        has_served
    }
}

#[cfg(test)]
mod tests;

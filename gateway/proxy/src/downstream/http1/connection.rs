//! The connection loop: read a head, serve the request, read the next head.

use std::{pin::pin, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{
    io::{join, sink},
    time::Instant,
};

use super::{
    exchange::{AfterResponse, Http1Exchange},
    head::{HeadFault, ReadHead, RequestScanner, locate, peek_request_line, read_head},
    response::Recipient,
    stream::{ClientConnection, ReceiveOutcome},
};
use crate::{
    downstream::current::{Current, Snapshot},
    request::{
        BodyLength, HeadLimits, Target,
        client::ConnectionInfo,
        drain::{Beginning, ClosingWatch, Serving},
        rejection::Rejection,
    },
    serve::{
        self, Gateway, UnparsedHead,
        examine::{Examined, StepName},
        serve,
    },
    wire::io::{Stream, arrival_deadline},
};

/// A rejected head, and the bytes that arrived of it.
struct BadHead {
    rejection: Rejection,
    received: Vec<u8>,
}

/// How long a connection that has served a request is ready for the next one, before it is idle.
const READY_TIME: Duration = Duration::from_millis(100);

/// Serves a client's connection until it ends, by the gateway of the current configuration. `beginning` ends with the
/// first head.
///
/// A stop finds the connection in one of two places: waiting for a head, which `closing` ends, or serving, after which the
/// response asks the client to close.
pub(crate) async fn serve_connection<S: Stream>(
    current: &ArcSwap<Gateway>,
    stream: S,
    client: Box<ConnectionInfo>,
    beginning: Beginning,
) {
    let mut current = Current::new(current, client);
    let gateway = &current.get().gateway;
    let (state, bounds) = (Arc::clone(&gateway.state), &gateway.policy.bounds);
    let mut connection = ClientConnection::new(stream, bounds.send());
    let mut life = Life {
        beginning: Some(beginning),
        idle_until: Instant::now() + bounds.timeouts.head,
        requests: 0,
    };
    let closing = pin!(state.drain.closing());
    let mut closing = ClosingWatch::new(&state.drain, closing);
    loop {
        let received = connection.receive_next(life.idle_until, &mut closing);
        if received.await != ReceiveOutcome::Received {
            return;
        }
        // Boxed: an idle connection has no room for requests. One that goes on at once keeps the box.
        let requests = serve_requests(&mut current, &mut connection, &mut closing, &mut life);
        // A stop waits until the guard is dropped: until the connection is closed.
        let Some((end, _serving)) = Box::pin(requests).await else {
            continue;
        };
        return match end {
            AfterResponse::Close => connection.close().await,
            AfterResponse::CloseLingering => connection.close_lingering().await,
            AfterResponse::KeepAlive | AfterResponse::Abort => {}
        };
    }
}

/// What lasts as long as a connection.
struct Life {
    /// Until the first head.
    beginning: Option<Beginning>,
    /// Before its first head, a connection has the timeout for heads; then the one for idle connections.
    idle_until: Instant,
    requests: u64,
}

/// Serves requests, the first of which has begun to arrive, until the connection ends; `None` once it is idle.
///
/// Each turn reads one head and serves its request to the end. What the client sends ahead waits in the connection's
/// buffer, so responses keep the order of their requests.
async fn serve_requests<'d, S: Stream>(
    current: &mut Current<'_>,
    connection: &mut ClientConnection<S>,
    closing: &mut ClosingWatch<'d>,
    life: &mut Life,
) -> Option<(AfterResponse, Serving<'d>)> {
    let drain = closing.drain();
    loop {
        let request = read(current, connection, life.idle_until, closing).await;
        let serving = drain.begin_serving();
        // After the line above: between both guards, a stop would find nothing in flight and end the process.
        drop(life.beginning.take());
        let next = match request {
            Ok(Some((mut request, snapshot))) => {
                life.requests += 1;
                request.is_last |= life.requests >= snapshot.max_requests;
                exchange(snapshot, connection, &request).await
            }
            Ok(None) => AfterResponse::Abort,
            Err(bad_head) => reject_bad_head(current.get(), connection, &bad_head).await,
        };
        if next != AfterResponse::KeepAlive {
            return Some((next, serving));
        }
        drop(serving);
        let now = Instant::now();
        life.idle_until = now + current.get().gateway.policy.bounds.timeouts.idle;
        if connection.ahead().is_empty() {
            let deadline = life.idle_until.min(now + READY_TIME);
            match connection.receive_next(deadline, closing).await {
                ReceiveOutcome::Received => {}
                ReceiveOutcome::TimedOut => return None,
                ReceiveOutcome::Ended => {
                    return Some((AfterResponse::Abort, drain.begin_serving()));
                }
            }
        }
    }
}

/// Reads the next head, whose first bytes must arrive until `deadline`. `None` if the client disconnected or a timeout
/// passed.
///
/// The request uses the configuration that was current when its first bytes arrived.
async fn read<'r, S: Stream>(
    current: &'r mut Current<'_>,
    connection: &mut ClientConnection<S>,
    deadline: Instant,
    closing: &mut ClosingWatch<'_>,
) -> Result<Option<(ReadHead, &'r Snapshot)>, BadHead> {
    let mut reading = HeadProgress::default();
    loop {
        if connection.ahead().is_empty() {
            match connection.receive_next(deadline, closing).await {
                ReceiveOutcome::Received => {}
                ReceiveOutcome::Ended | ReceiveOutcome::TimedOut => return Ok(None),
            }
        }
        let bounds = &current.get().gateway.policy.bounds;
        if let Some(head) = take_head(&bounds.requests.head, connection, &mut reading)? {
            connection.set_send_limits(bounds.send());
            return Ok(Some((head, current.get())));
        }
        // A skipped empty line does not begin a head.
        if !connection.ahead().is_empty() {
            break;
        }
    }
    let snapshot = current.get();
    let (state, bounds) = (&snapshot.gateway.state, &snapshot.gateway.policy.bounds);
    // Only of a head that arrives in pieces: otherwise the connection is served at once.
    let _receiving = state.open_connections.begin_head();
    connection.set_send_limits(bounds.send());
    let limit = bounds.timeouts.head;
    let started = Instant::now();
    loop {
        let received = connection.ahead().len();
        let deadline = arrival_deadline(started, limit, received, bounds.connections.min_rate);
        match connection.receive(deadline).await {
            ReceiveOutcome::Received => {}
            ReceiveOutcome::TimedOut if !connection.ahead().is_empty() => {
                let rejection = Rejection::RequestTimeout { limit };
                return Err(bad_head(rejection, connection));
            }
            // Also if only an empty line has arrived: that is no request, and gets no response.
            ReceiveOutcome::Ended | ReceiveOutcome::TimedOut => return Ok(None),
        }
        if let Some(head) = take_head(&bounds.requests.head, connection, &mut reading)? {
            return Ok(Some((head, snapshot)));
        }
    }
}

/// Takes the head if it is complete.
fn take_head<S: Stream>(
    limits: &HeadLimits,
    connection: &mut ClientConnection<S>,
    reading: &mut HeadProgress,
) -> Result<Option<ReadHead>, BadHead> {
    // One empty line before a request line is skipped (RFC 9112 section 2.2).
    if !reading.skipped_line && connection.ahead().starts_with(b"\r\n") {
        connection.skip(2);
        *reading = HeadProgress {
            skipped_line: true,
            ..HeadProgress::default()
        };
    }
    match reading.scanner.scan(connection.ahead(), limits) {
        Ok(None) => Ok(None),
        Ok(Some(length)) => {
            // What follows stays: the form, or the next request.
            let bytes = connection.take(length);
            let head = read_head(bytes, limits);
            head.map(Some).map_err(|(fault, received)| BadHead {
                rejection: rejection(limits, fault, &received),
                received,
            })
        }
        Err(fault) => {
            let rejection = rejection(limits, fault, connection.ahead());
            Err(bad_head(rejection, connection))
        }
    }
}

/// Examines the request that these bytes begin with; `assumed` as in [`serve::examine`].
pub async fn examine(gateway: &Gateway, sent: &[u8], assumed: Option<&str>) -> Examined {
    let (mut examined, mut reading) = (Examined::default(), HeadProgress::default());
    let bounds = &gateway.policy.bounds;
    let mut connection = ClientConnection::new(join(sent, sink()), bounds.send());
    let deadline = Instant::now() + bounds.timeouts.head;
    let read = loop {
        match take_head(&bounds.requests.head, &mut connection, &mut reading) {
            Ok(Some(read)) => break Ok(read),
            Err(bad_head) => break Err(bad_head.rejection),
            Ok(None) if connection.receive(deadline).await == ReceiveOutcome::Received => {}
            Ok(None) => {
                let limit = bounds.timeouts.head;
                break Err(Rejection::RequestTimeout { limit });
            }
        }
    };
    let read = match read {
        Ok(read) => read,
        Err(rejection) => {
            examined.steps.push((StepName::Request, Some(rejection)));
            return examined;
        }
    };
    let (head, drain) = (read.head, &gateway.state.drain);
    let recipient = Recipient {
        is_http_1_0: read.is_http_1_0,
        is_head: false,
    };
    let mut client = Http1Exchange::new(&mut connection, drain, recipient, head.body(), true);
    let followed = serve::examine::examine(gateway, &head, assumed, &mut client, &mut examined);
    examined.is_complete = followed.await.is_some();
    // Otherwise what follows the head may be the body.
    if examined.is_complete || examined.form.is_some() {
        while connection.receive(deadline).await == ReceiveOutcome::Received {}
        examined.left = connection.ahead().len();
    }
    examined.head = Some(head);
    examined
}

/// Serves one request.
async fn exchange<S: Stream>(
    snapshot: &Snapshot,
    connection: &mut ClientConnection<S>,
    request: &ReadHead,
) -> AfterResponse {
    let Snapshot { gateway, peer, .. } = snapshot;
    let head = &request.head;
    let recipient = Recipient {
        is_http_1_0: request.is_http_1_0,
        is_head: head.method() == b"HEAD",
    };
    let drain = &gateway.state.drain;
    let (body, is_last) = (head.body(), request.is_last);
    let mut client = Http1Exchange::new(connection, drain, recipient, body, is_last);
    serve(gateway, head, peer, &mut client).await;
    client.next()
}

/// Rejects a bad head; the connection closes.
async fn reject_bad_head<S: Stream>(
    snapshot: &Snapshot,
    connection: &mut ClientConnection<S>,
    bad_head: &BadHead,
) -> AfterResponse {
    let Snapshot { gateway, peer, .. } = snapshot;
    let (rejection, unparsed) = (&bad_head.rejection, unparsed_head(&bad_head.received));
    let recipient = Recipient {
        is_http_1_0: false,
        is_head: unparsed.method == b"HEAD",
    };
    // Where the body ends is unknown.
    let body = BodyLength::Unknown;
    let mut client = Http1Exchange::new(connection, &gateway.state.drain, recipient, body, true);
    serve::reject_bad_head(gateway, unparsed, rejection, peer, &mut client).await;
    client.next()
}

/// What is known of a bad head; `received`: the bytes that arrived of it.
pub(crate) fn unparsed_head(received: &[u8]) -> UnparsedHead<'_> {
    let line = peek_request_line(received);
    let path = line.and_then(|line| path_of(line.target)).unwrap_or("-");
    UnparsedHead {
        method: line.map_or(&b"-"[..], |line| line.method),
        target: Target {
            path,
            ..Target::default()
        },
        received,
    }
}

/// The rejection of a request whose head has a fault; `received`: the bytes that arrived of it.
pub(crate) fn rejection(limits: &HeadLimits, fault: HeadFault, received: &[u8]) -> Rejection {
    match fault {
        HeadFault::NotHttp(why) => Rejection::NotHttp(why),
        HeadFault::Target => Rejection::TargetInvalid(locate(fault, received).into()),
        HeadFault::Query => Rejection::ParamsMalformed(locate(fault, received).into()),
        HeadFault::QueryTooLong => Rejection::UriTooLong {
            limit: limits.query,
        },
        HeadFault::TooLarge => Rejection::HeadersTooLarge {
            bytes: limits.bytes,
            headers: limits.headers,
        },
    }
}

fn bad_head<S: Stream>(rejection: Rejection, connection: &mut ClientConnection<S>) -> BadHead {
    let received = connection.take(connection.ahead().len());
    BadHead {
        rejection,
        received,
    }
}

/// Progress in reading a head.
#[derive(Default)]
struct HeadProgress {
    scanner: RequestScanner,
    skipped_line: bool,
}

/// The path of a possibly malformed target, for the log; `None` if it is not ASCII.
fn path_of(target: &[u8]) -> Option<&str> {
    let path = target.split(|&byte| byte == b'?').next()?;
    std::str::from_utf8(path)
        .ok()
        .filter(|path| path.is_ascii())
}

#[cfg(test)]
mod tests;

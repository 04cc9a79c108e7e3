//! The connection loop: read a head, serve the request, read the next head.

use std::{net::IpAddr, pin::pin, sync::Arc, time::Duration};

use arc_swap::{ArcSwap, Cache};
use tokio::time::Instant;

use super::{
    exchange::{Http1Exchange, Next},
    head::{HeadFault, ReadHead, RequestScanner, peek_request_line, read_head},
    response::Recipient,
    stream::{ClientConnection, Waited},
};
use crate::{
    config::Timeouts,
    drain::{ClosingWatch, SETTLING},
    gateway::{Gateway, Unread},
    io::Stream,
    phases::origin::Peer,
    rejection::Rejection,
    request::{BodyLength, HeadLimits},
};

/// Serves HTTP/1 connections.
pub(crate) struct Http1Connections {
    /// The gateway by the configuration of the moment.
    pub current: Arc<ArcSwap<Gateway>>,
}

/// The gateway that serves the next request of one connection.
struct Current<'c> {
    gateway: Cache<&'c ArcSwap<Gateway>, Arc<Gateway>>,
    address: IpAddr,
    /// The client, as `generation` of the configuration sees it.
    peer: Peer,
    generation: u64,
}

impl<'c> Current<'c> {
    fn new(current: &'c ArcSwap<Gateway>, address: IpAddr) -> Self {
        let gateway = Cache::new(current);
        let (generation, peer) = {
            let gateway = gateway.arc_swap().load();
            let peer = Peer::new(address, &gateway.admission.trusted_proxies);
            (gateway.generation, peer)
        };
        Self {
            gateway,
            address,
            peer,
            generation,
        }
    }

    /// The gateway and the client, by the configuration of this moment. Costs one load from memory unless that changed.
    fn get(&mut self) -> (&Gateway, &Peer) {
        let gateway = self.gateway.load();
        if gateway.generation != self.generation {
            self.generation = gateway.generation;
            self.peer = Peer::new(self.address, &gateway.admission.trusted_proxies);
        }
        (gateway, &self.peer)
    }
}

/// A head that was not accepted, and what arrived of it.
struct Refused {
    rejection: Rejection,
    received: Vec<u8>,
}

impl Http1Connections {
    /// Serves a client's connection until it ends.
    pub(crate) async fn serve<S: Stream>(&self, stream: S, client: IpAddr) {
        let mut current = Current::new(&self.current, client);
        let (gateway, _) = current.get();
        let state = Arc::clone(&gateway.state);
        let mut connection = ClientConnection::new(stream, gateway.timeouts.send);
        let closing = pin!(state.drain.closing());
        let mut closing = ClosingWatch::new(&state.drain, closing);
        let mut is_first = true;
        loop {
            let read = read(&mut current, &mut connection, is_first, &mut closing).await;
            // As long as this lives, a stop waits: for the answer, and for the close behind it.
            let _in_flight = state.drain.begin();
            let next = match read {
                Ok(Some((read, gateway, peer))) => {
                    exchange(gateway, &mut connection, &read, peer).await
                }
                Ok(None) => return,
                Err(refused) => {
                    let (gateway, peer) = current.get();
                    refuse(gateway, &mut connection, &refused, peer).await
                }
            };
            match next {
                Next::GoesOn => is_first = false,
                Next::Close => return connection.close().await,
                Next::CloseLingering => return connection.close_lingering().await,
                Next::BreakOff => return,
            }
        }
    }
}

/// Reads until a head is whole, which may be at once: some of it may have come behind the last request. The configuration
/// of the request is that of the moment at which its first bytes arrived.
/// `None` if the client left, or was silent for too long.
async fn read<'r, S: Stream>(
    current: &'r mut Current<'_>,
    connection: &mut ClientConnection<S>,
    is_first: bool,
    closing: &mut ClosingWatch<'_>,
) -> Result<Option<(ReadHead, &'r Gateway, &'r Peer)>, Refused> {
    let (gateway, _) = current.get();
    let Timeouts { head, idle, .. } = gateway.timeouts;
    let deadline = Instant::now() + if is_first { head } else { idle };
    let mut reading = HeadReading::default();
    loop {
        if connection.ahead().is_empty() {
            // A connection that was accepted last may still begin its request.
            let grace = if is_first { SETTLING } else { Duration::ZERO };
            match connection.receive_next(deadline, closing, grace).await {
                Waited::Received => {}
                Waited::Ended | Waited::TimedOut => return Ok(None),
            }
        }
        let (gateway, _) = current.get();
        if let Some(head) = take_head(gateway, connection, &mut reading)? {
            connection.set_send_timeout(gateway.timeouts.send);
            let (gateway, peer) = current.get();
            return Ok(Some((head, gateway, peer)));
        }
        // A skipped empty line is no beginning of a head.
        if !connection.ahead().is_empty() {
            break;
        }
    }
    let (gateway, peer) = current.get();
    connection.set_send_timeout(gateway.timeouts.send);
    let limit = gateway.timeouts.head;
    let deadline = Instant::now() + limit;
    loop {
        match connection.receive(deadline).await {
            Waited::Received => {}
            Waited::TimedOut if !connection.ahead().is_empty() => {
                let rejection = Rejection::RequestTimeout { limit };
                return Err(refused(rejection, connection));
            }
            Waited::Ended | Waited::TimedOut => return Ok(None),
        }
        if let Some(head) = take_head(gateway, connection, &mut reading)? {
            return Ok(Some((head, gateway, peer)));
        }
    }
}

/// The head, if all of it has arrived.
fn take_head<S: Stream>(
    gateway: &Gateway,
    connection: &mut ClientConnection<S>,
    reading: &mut HeadReading,
) -> Result<Option<ReadHead>, Refused> {
    // An empty line before a request line does not count (RFC 9112 section 2.2). One.
    if !reading.skipped_line && connection.ahead().starts_with(b"\r\n") {
        connection.skip(2);
        *reading = HeadReading {
            skipped_line: true,
            ..HeadReading::default()
        };
    }
    let limits = &gateway.limits.head;
    match reading.scanner.scan(connection.ahead(), limits) {
        Ok(None) => Ok(None),
        Ok(Some(length)) => {
            let bytes = connection.take(length);
            let read = read_head(bytes, limits);
            read.map(Some).map_err(|(fault, received)| Refused {
                rejection: rejection(limits, fault),
                received,
            })
        }
        Err(fault) => Err(refused(rejection(limits, fault), connection)),
    }
}

/// Serves one request.
async fn exchange<S: Stream>(
    gateway: &Gateway,
    connection: &mut ClientConnection<S>,
    read: &ReadHead,
    peer: &Peer,
) -> Next {
    let ReadHead {
        head,
        is_http_1_0,
        is_last,
    } = read;
    let recipient = Recipient {
        is_http_1_0: *is_http_1_0,
        is_head: head.method() == b"HEAD",
    };
    let drain = &gateway.state.drain;
    let mut client = Http1Exchange::new(connection, drain, recipient, head.body(), *is_last);
    gateway.serve(head, peer, &mut client).await;
    client.next()
}

/// Answers a head that was not accepted; the connection ends.
async fn refuse<S: Stream>(
    gateway: &Gateway,
    connection: &mut ClientConnection<S>,
    refused: &Refused,
    peer: &Peer,
) -> Next {
    let Refused {
        rejection,
        received,
    } = refused;
    let line = peek_request_line(received);
    let unread = Unread {
        method: line.map_or(&b"-"[..], |line| line.method),
        path: line.and_then(|line| path_of(line.target)).unwrap_or("-"),
        received,
    };
    let recipient = Recipient {
        is_http_1_0: false,
        is_head: unread.method == b"HEAD",
    };
    // The body's end is unknown.
    let body = BodyLength::Unknown;
    let mut client = Http1Exchange::new(connection, &gateway.state.drain, recipient, body, true);
    gateway.refuse(unread, rejection, peer, &mut client).await;
    client.next()
}

fn rejection(limits: &HeadLimits, fault: HeadFault) -> Rejection {
    match fault {
        HeadFault::NotHttp(why) => Rejection::NotHttp(why),
        HeadFault::Target => Rejection::TargetInvalid,
        HeadFault::Query => Rejection::ParamsMalformed,
        HeadFault::QueryTooLong => Rejection::QueryTooLong {
            limit: limits.query,
        },
        HeadFault::TooLarge => Rejection::HeadTooLarge {
            bytes: limits.bytes,
            headers: limits.headers,
        },
    }
}

fn refused<S: Stream>(rejection: Rejection, connection: &mut ClientConnection<S>) -> Refused {
    let received = connection.take(connection.ahead().len());
    Refused {
        rejection,
        received,
    }
}

/// How far the reading of a head got.
#[derive(Default)]
struct HeadReading {
    scanner: RequestScanner,
    skipped_line: bool,
}

/// The path of a target that may be malformed: up to its query, if that much is ASCII and so fit for a log.
fn path_of(target: &[u8]) -> Option<&str> {
    let path = target.split(|&byte| byte == b'?').next()?;
    std::str::from_utf8(path)
        .ok()
        .filter(|path| path.is_ascii())
}

#[cfg(test)]
mod tests;

//! An HTTP/1.1 listener on hyper, with timeouts for heads, idle connections and stalled writes, and a connection limit.
//!
//! Timeouts for request bodies are up to the handler. hyper's own `header_read_timeout` also counts the time before the
//! head's first byte, so it would have to be as long as the idle timeout. So this module watches the stream itself.

mod connection;
mod places;
mod progress;
mod watched;

use std::{any::Any, error::Error, io, net::SocketAddr, sync::Arc, time::Duration, time::Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;

use self::{
    connection::{SETTLE_TIME, serve_connection},
    places::{Place, Places, Shares},
};
use crate::{
    limits::Network,
    log::once_a_minute::OnceAMinute,
    server::{backlog, shutdown::Phase},
};

/// Of them from one network, so that it leaves some to others' health checks.
const SPARE_OF_NETWORK: usize = SPARE_CONNECTIONS / 2;
/// Pause after a failed accept. The usual cause is a lack of descriptors, so the next one would fail immediately.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections above the limit: for health checks, and for those that wait for a place.
const SPARE_CONNECTIONS: usize = 64;
/// How long a connection above the limit waits for a place: longer than most requests take.
const PLACE_TIMEOUT: Duration = Duration::from_secs(1);

/// Settings of a listener.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The listener's name in the log.
    pub name: &'static str,
    /// Limit on open connections. A connection above it takes the place of the one that has been without a request for
    /// longest. If each has a request for too long, it is closed. Health checks are served at once.
    pub max_connections: usize,
    /// The same limit for one network: an IPv4 address or IPv6 /48.
    pub max_of_network: usize,
    /// Timeouts of a connection.
    pub timeouts: HttpTimeouts,
}

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub struct HttpTimeouts {
    /// For a whole head from its first byte; on a new connection also for that first byte.
    pub head: Duration,
    /// For an idle connection, between two requests.
    pub idle: Duration,
    /// For each wait until the client takes bytes of a response.
    pub send: Duration,
}

/// What precedes HTTP on a listener without TLS: nothing.
///
/// # Errors
///
/// Never.
pub async fn plain(stream: TcpStream, peer: SocketAddr) -> io::Result<(TcpStream, SocketAddr)> {
    Ok((stream, peer))
}

/// An extension of a response: a value that is dropped once the response was sent, or its connection has ended.
#[derive(Clone, Debug)]
pub struct UntilSent(pub Arc<dyn Any + Send + Sync>);

/// Serves until `phase` is [`Phase::Closing`], then closes the listener and idle connections, and returns when the last
/// connection has ended.
///
/// `settings` is called again for every connection and timeout, so that a reload takes effect immediately. `establish` does
/// what precedes HTTP on a connection, for example a TLS handshake, within the timeout of a head. It also returns what
/// `handler` gets with each request.
pub async fn serve<E, G, S, C, H, F, B>(
    listener: TcpListener,
    settings: impl Fn() -> HttpSettings + Clone + Send + Sync + 'static,
    phase: watch::Receiver<Phase>,
    establish: E,
    handler: H,
) where
    E: Fn(TcpStream, SocketAddr) -> G + Clone + Send + Sync + 'static,
    G: Future<Output = io::Result<(S, C)>> + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    C: Clone + Send + Sync + 'static,
    H: Fn(Request<Incoming>, C) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let connections = TaskTracker::new();
    let mut closing = phase.clone();
    let closing = closing.wait_for(|phase| *phase >= Phase::Closing);
    tokio::pin!(closing);
    let (full, failed) = (Arc::new(OnceAMinute::new()), OnceAMinute::new());
    let (places, spares) = (Arc::new(Places::default()), Arc::new(Shares::default()));
    let begin = |stream: TcpStream, peer: SocketAddr| {
        let now = settings();
        // No race: only this task adds connections.
        if connections.len() >= now.max_connections + SPARE_CONNECTIONS {
            drop(stream);
            log_closed(&now, &full);
            return;
        }
        disable_delay(&stream);
        let network = Network::from_site(peer.ip());
        let place = places.take(network, &now);
        let spare = match place {
            Some(_) => None,
            None => spares.take(network, SPARE_OF_NETWORK),
        };
        if place.is_none() && spare.is_none() {
            log_closed(&now, &full);
            return;
        }
        let (handler, settings, phase) = (handler.clone(), settings.clone(), phase.clone());
        let (places, full) = (Arc::clone(&places), Arc::clone(&full));
        let timeouts = move || settings().timeouts;
        let establishing = establish(stream, peer);
        connections.spawn(async move {
            let head = now.timeouts.head;
            let limit = place.as_ref().map_or(head.min(PLACE_TIMEOUT), |_| head);
            let makes_room = async {
                if let Some(place) = &place {
                    place.is_needed().await;
                }
            };
            let established = tokio::select! {
                biased;
                established = established(establishing, limit, &phase) => established,
                () = makes_room, if place.is_some() => None,
            };
            let Some((mut stream, client)) = established else {
                return;
            };
            let mut first = Vec::new();
            let place = match place {
                Some(place) => Some(place),
                None => wait_for_place(&mut stream, &mut first, places.wait(network, &now)).await,
            };
            let Some(place) = place else {
                log_closed(&now, &full);
                return;
            };
            let spare = spare.filter(|_| place.is_beyond_limit());
            let handle = move |request| handler(request, client.clone());
            let first = Bytes::from(first);
            serve_connection(stream, first, timeouts, place, phase, handle).await;
            drop(spare);
        });
    };
    loop {
        let accepted = tokio::select! {
            _ = &mut closing => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Earlier ones read their requests, or close if they made room, before this one may take a place.
                if connections.len() >= settings().max_of_network {
                    tokio::task::yield_now().await;
                }
                begin(stream, peer);
            }
            Err(error) => {
                log_failure(&settings(), &error, &failed);
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    for (stream, peer) in backlog::take(listener) {
        begin(stream, peer);
    }
    connections.close();
    connections.wait().await;
}

/// Sets `TCP_NODELAY`: responses are small and written in one piece, so waiting to fill a packet only delays them.
fn disable_delay(stream: &TcpStream) {
    if let Err(cause) = stream.set_nodelay(true) {
        tracing::debug!(%cause, "cannot set TCP_NODELAY");
    }
}

/// What precedes HTTP; `None` if it fails, takes too long, or a stop closes the connection.
async fn established<T>(
    establishing: impl Future<Output = io::Result<T>>,
    limit: Duration,
    phase: &watch::Receiver<Phase>,
) -> Option<T> {
    let mut phase = phase.clone();
    let closed = async {
        // An error is the end of the program, too.
        let _ = phase.wait_for(|phase| *phase >= Phase::Closing).await;
        sleep(SETTLE_TIME).await;
    };
    tokio::select! {
        biased;
        established = timeout(limit, establishing) => established
            .ok()?
            .inspect_err(|cause| tracing::debug!(%cause, "connection not established"))
            .ok(),
        () = closed => None,
    }
}

/// Waits until a connection is without a request or closed, and takes its place; `None` after a timeout. A health check does not wait.
/// `first` gets the bytes that were read.
async fn wait_for_place(
    stream: &mut (impl AsyncRead + Unpin),
    first: &mut Vec<u8>,
    waiting: impl Future<Output = Place>,
) -> Option<Place> {
    let place = async {
        if begins_with_health_check(stream, first).await {
            Place::beyond_limit()
        } else {
            waiting.await
        }
    };
    timeout(PLACE_TIMEOUT, place).await.ok()
}

/// Reads the first bytes; whether they ask if the program is up or ready.
async fn begins_with_health_check(
    stream: &mut (impl AsyncRead + Unpin),
    first: &mut Vec<u8>,
) -> bool {
    const LONGEST: u64 = b"HEAD /healthz ".len() as u64;
    // The connection's end, or its error, is noticed when it is served.
    let _ = stream.take(LONGEST).read_buf(first).await;
    let path = first.strip_prefix(b"GET ");
    let path = path.or_else(|| first.strip_prefix(b"HEAD "));
    path.is_some_and(|path| path.starts_with(b"/healthz ") || path.starts_with(b"/readyz "))
}

fn log_closed(settings: &HttpSettings, full: &OnceAMinute) {
    if let Some(refused) = full.count(Instant::now()) {
        tracing::warn!(
            listener = settings.name,
            refused,
            max_connections = settings.max_connections,
            "all connections are in use, or all that one network may have: closed new ones"
        );
    }
}

fn log_failure(settings: &HttpSettings, cause: &io::Error, failed: &OnceAMinute) {
    if let Some(times) = failed.count(Instant::now()) {
        tracing::warn!(listener = settings.name, times, %cause, "cannot accept connections");
    }
}

#[cfg(test)]
mod tests;

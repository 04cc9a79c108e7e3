//! An HTTP/1.1 listener on hyper, with timeouts for heads, idle connections and stalled writes, and a connection limit.
//!
//! Timeouts for request bodies are up to the handler. hyper's own `header_read_timeout` also counts the time before the
//! head's first byte, so it would have to be as long as the idle timeout. So this module watches the stream itself.

mod admission;
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
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;

use self::{
    admission::{Admission, Admitted},
    connection::serve_connection,
};
use crate::{
    log::once_a_minute::OnceAMinute,
    server::{backlog, shutdown::Phase},
};

/// Pause after a failed accept. The usual cause is a lack of descriptors, so the next one would fail immediately.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Settings of a listener.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The listener's name in the log.
    pub name: &'static str,
    /// Limit on open connections. Above it, a new connection replaces the connection that has been without a request
    /// for longest. If all connections have a request for too long, the new one is closed. Health checks are served at
    /// once.
    pub max_connections: usize,
    /// The same limit for one network: an IPv4 address or IPv6 /48.
    pub max_of_network: usize,
    /// Timeouts of a connection.
    pub timeouts: HttpTimeouts,
    /// Time for a connection that was accepted just before the listener closes to send its first request.
    pub settle: Duration,
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
    let (admission, failed) = (Arc::new(Admission::default()), OnceAMinute::new());
    let begin = |stream: TcpStream, peer: SocketAddr| {
        let now = settings();
        // No race: only this task adds connections.
        let Some(admitted) = admission.admit(connections.len(), peer, &now) else {
            return;
        };
        disable_delay(&stream);
        let (handler, settings, phase) = (handler.clone(), settings.clone(), phase.clone());
        let admission = Arc::clone(&admission);
        let establishing = establish(stream, peer);
        connections.spawn(async move {
            let established = established(establishing, &admitted, &now, &phase);
            let (mut stream, client) = established.await?;
            let mut first = Vec::new();
            let place = admission.place(admitted, &now, &mut stream, &mut first);
            // The spare is held until the connection ends.
            let (place, _spare) = place.await?;
            let timeouts = move || settings().timeouts;
            let handle = move |request| handler(request, client.clone());
            serve_connection(
                stream,
                first.into(),
                timeouts,
                now.settle,
                place,
                phase,
                handle,
            )
            .await;
            Some(())
        });
    };
    loop {
        let (stream, peer) = tokio::select! {
            // Also ready if the sender is gone: then the program ends.
            _ = &mut closing => break,
            accepted = next_connection(&listener, &settings, &failed) => accepted,
        };
        // Earlier ones read their requests, or close if they made room, before this one may take a place.
        if connections.len() >= settings().max_of_network {
            tokio::task::yield_now().await;
        }
        begin(stream, peer);
    }
    // Served, not reset: their clients see an established connection, and may have sent a request.
    for (stream, peer) in backlog::take(listener) {
        begin(stream, peer);
    }
    connections.close();
    connections.wait().await;
}

async fn next_connection(
    listener: &TcpListener,
    settings: impl Fn() -> HttpSettings,
    failed: &OnceAMinute,
) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(cause) => {
                if let Some(times) = failed.count(Instant::now()) {
                    let listener = settings().name;
                    tracing::warn!(listener, times, %cause, "cannot accept connections");
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Sets `TCP_NODELAY`: responses are small and written in one piece, so waiting to fill a packet only delays them.
fn disable_delay(stream: &TcpStream) {
    if let Err(cause) = stream.set_nodelay(true) {
        tracing::debug!(%cause, "cannot set TCP_NODELAY");
    }
}

/// What precedes HTTP; `None` if it fails, takes too long, or a stop or another connection that needs the place closes it.
async fn established<T>(
    establishing: impl Future<Output = io::Result<T>>,
    admitted: &Admitted,
    settings: &HttpSettings,
    phase: &watch::Receiver<Phase>,
) -> Option<T> {
    let mut phase = phase.clone();
    let closed = async {
        // An error is the end of the program, too.
        let _ = phase.wait_for(|phase| *phase >= Phase::Closing).await;
        // A handshake that began just before the stop may end, as a first request may still arrive (`Stop::Settling`).
        sleep(settings.settle).await;
    };
    tokio::select! {
        // In this order: what is established by now is kept, even if a stop or another connection asks for its place.
        biased;
        established = timeout(admitted.limit(settings.timeouts.head), establishing) => established
            .ok()?
            .inspect_err(|cause| tracing::debug!(%cause, "connection not established"))
            .ok(),
        () = closed => None,
        () = admitted.is_needed() => None,
    }
}

#[cfg(test)]
mod tests;

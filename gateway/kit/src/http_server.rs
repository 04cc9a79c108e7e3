//! An HTTP/1.1 listener by hyper that nobody can occupy for ever: with timeouts for heads, idle connections and answers that
//! nobody takes, and a limit on connections.
//!
//! Bodies are the handler's: it knows what it reads. hyper's own `header_read_timeout` counts the time before a head's first
//! byte as well, which would have to be as long as connections may be idle; so the stream is watched here instead.

mod connection;
mod progress;
mod watched;

use std::{error::Error, io, net::SocketAddr, time::Duration, time::Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_util::task::TaskTracker;

use self::connection::serve_connection;
use crate::{once_a_minute::OnceAMinute, shutdown::Phase};

/// After a failed accept, as a rule for want of descriptors, the listener pauses: it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a listener allows.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// What the listener is called in the log.
    pub name: &'static str,
    /// Connections that may be open at once. One more is closed at once.
    pub max_connections: usize,
    /// How long anything may take.
    pub timeouts: HttpTimeouts,
}

/// How long anything may take on a connection.
#[derive(Clone, Copy, Debug)]
pub struct HttpTimeouts {
    /// A whole head from its first byte; and of a new connection, until that byte.
    pub head: Duration,
    /// Silence between two requests.
    pub idle: Duration,
    /// Each wait until the other end takes bytes of an answer.
    pub send: Duration,
}

/// Serves until `phase` is [`Phase::Closing`], then closes the listener and idle connections, and returns when the last
/// connection has ended. A connection is accepted, and each of its requests served, by the `settings` of that moment.
pub async fn serve<H, F, B>(
    listener: TcpListener,
    settings: impl Fn() -> HttpSettings + Clone + Send + Sync + 'static,
    phase: watch::Receiver<Phase>,
    handler: H,
) where
    H: Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let connections = TaskTracker::new();
    let mut closing = phase.clone();
    let closing = closing.wait_for(|phase| *phase >= Phase::Closing);
    tokio::pin!(closing);
    let (full, failed) = (OnceAMinute::new(), OnceAMinute::new());
    loop {
        let accepted = tokio::select! {
            _ = &mut closing => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                log_failure(&settings(), &error, &failed);
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let now = settings();
        // Only this loop adds any.
        if connections.len() >= now.max_connections {
            drop(stream);
            log_refusal(&now, &full);
            continue;
        }
        prepare(&stream);
        let (handler, settings, phase) = (handler.clone(), settings.clone(), phase.clone());
        let timeouts = move || settings().timeouts;
        connections.spawn(async move {
            serve_connection(stream, timeouts, phase, move |request| {
                handler(request, peer)
            })
            .await;
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// Answers are small and written at once: waiting to fill a packet only delays them.
fn prepare(stream: &TcpStream) {
    if let Err(cause) = stream.set_nodelay(true) {
        tracing::debug!(%cause, "a connection cannot be told to send at once");
    }
}

fn log_refusal(settings: &HttpSettings, full: &OnceAMinute) {
    if let Some(refused) = full.count(Instant::now()) {
        let HttpSettings {
            name,
            max_connections,
            ..
        } = settings;
        tracing::warn!(
            listener = name,
            refused,
            "{name}: all {max_connections} connections are in use; {refused} new ones were closed"
        );
    }
}

fn log_failure(settings: &HttpSettings, cause: &io::Error, failed: &OnceAMinute) {
    if let Some(times) = failed.count(Instant::now()) {
        let name = settings.name;
        tracing::warn!(listener = name, times, %cause, "{name}: connections cannot be accepted");
    }
}

#[cfg(test)]
mod tests;

//! Stands in for a backend: answers all requests the same way, and keeps every byte it receives.
//!
//! It parses more strictly than any server, so an ambiguous request is not interpreted: it is recorded as
//! [`Recorded::Unreadable`].

mod request;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustls::{HandshakeKind, ServerConfig};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

pub use self::request::{Reading, RecordedRequest, read_request};
use crate::{listener::Listener, port::free_address, waiting::until};

/// The target of the gateway's health checks.
const HEALTH: &str = "/healthz";

/// A backend that records what it receives. It stops when dropped.
#[derive(Debug)]
pub struct RecordingBackend {
    listener: Listener,
    state: Arc<Mutex<State>>,
}

/// What was received on a connection: a request, or bytes that are not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// A request that can be read in one way only.
    Request(RecordedRequest),
    /// Bytes that are not a request.
    Unreadable(Vec<u8>),
}

/// How the backend answers requests.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// The response's status line and headers, without `Content-Length`.
    pub head: String,
    /// The response's body.
    pub body: Vec<u8>,
    /// How the response is delivered.
    pub delivery: Delivery,
}

/// How a response is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Immediately; the connection stays open.
    Promptly,
    /// Immediately; the connection is closed.
    ThenClose,
    /// After this delay.
    After(Duration),
    /// Immediately, with the request's target as the body.
    Echoing,
    /// Immediately, with the value of this header of the request as the body.
    EchoingHeader(&'static str),
    /// Never: the request stays unanswered.
    Never,
    /// Not at all: the connection is closed.
    HangUp,
    /// In part: the connection is closed in the middle of the body.
    BreakOff,
    /// The bytes of head and body, nothing added; then the connection is closed.
    Verbatim,
}

#[derive(Debug)]
struct State {
    behaviour: Behaviour,
    once: Option<Behaviour>,
    when_checked: Behaviour,
    checks: usize,
    connections: usize,
    resumptions: usize,
    bytes: usize,
    recorded: Vec<Recorded>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            head: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n".to_owned(),
            body: b"{\"recorded\":true}".to_vec(),
            delivery: Delivery::Promptly,
        }
    }
}

impl Behaviour {
    /// A response of exactly these bytes.
    #[must_use]
    pub fn verbatim(bytes: &str) -> Self {
        Self {
            head: bytes.to_owned(),
            body: Vec::new(),
            delivery: Delivery::Verbatim,
        }
    }

    /// The default response, with this delivery.
    #[must_use]
    pub fn responding(delivery: Delivery) -> Self {
        Self {
            delivery,
            ..Self::default()
        }
    }
}

impl RecordingBackend {
    /// Starts one on a free port.
    ///
    /// # Panics
    ///
    /// When no port is free.
    pub async fn start() -> Self {
        Self::start_at(free_address()).await
    }

    /// Starts one that speaks TLS, on a free port.
    ///
    /// # Panics
    ///
    /// When no port is free.
    pub async fn start_with_tls(tls: ServerConfig) -> Self {
        Self::start_as(free_address(), Some(TlsAcceptor::from(Arc::new(tls)))).await
    }

    /// Starts one at an address, which may have been used before.
    ///
    /// # Panics
    ///
    /// When the address is in use.
    pub async fn start_at(address: SocketAddr) -> Self {
        Self::start_as(address, None).await
    }

    async fn start_as(address: SocketAddr, tls: Option<TlsAcceptor>) -> Self {
        let socket = TcpListener::bind(address).await;
        let state = Arc::new(Mutex::new(State {
            behaviour: Behaviour::default(),
            once: None,
            when_checked: Behaviour::default(),
            checks: 0,
            connections: 0,
            resumptions: 0,
            bytes: 0,
            recorded: Vec::new(),
        }));
        let of_server = Arc::clone(&state);
        let serve = move |stream| {
            locked(&of_server).connections += 1;
            let (state, tls) = (Arc::clone(&of_server), tls.clone());
            async move {
                // A peer that closes the connection is part of some tests.
                let _ = match tls {
                    Some(tls) => converse_with_tls(stream, &tls, &state).await,
                    None => converse(&mut { stream }, &state).await,
                };
            }
        };
        Self {
            listener: Listener::start(socket.expect("the address is free"), serve),
            state,
        }
    }

    /// The address it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Sets how requests are answered from now on.
    pub fn behave(&self, behaviour: Behaviour) {
        locked(&self.state).behaviour = behaviour;
    }

    /// Sets how the next request is answered, before the others.
    pub fn behave_once(&self, behaviour: Behaviour) {
        locked(&self.state).once = Some(behaviour);
    }

    /// Sets how the gateway's own health checks are answered from now on.
    pub fn behave_when_checked(&self, behaviour: Behaviour) {
        locked(&self.state).when_checked = behaviour;
    }

    /// Number of health checks so far. They are not recorded.
    #[must_use]
    pub fn checks(&self) -> usize {
        locked(&self.state).checks
    }

    /// Stops it, as a crash would: the listener and all connections are closed.
    pub async fn end(&mut self) {
        self.listener.end().await;
    }

    /// Number of connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        locked(&self.state).connections
    }

    /// Number of TLS connections so far that resumed the session of an earlier one.
    #[must_use]
    pub fn resumptions(&self) -> usize {
        locked(&self.state).resumptions
    }

    /// Number of bytes received so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        locked(&self.state).bytes
    }

    /// Everything received so far, in order of completion.
    #[must_use]
    pub fn recorded(&self) -> Vec<Recorded> {
        locked(&self.state).recorded.clone()
    }

    /// All requests received so far.
    ///
    /// # Panics
    ///
    /// When something was received that is not a request.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        let request = |recorded| match recorded {
            Recorded::Request(request) => request,
            Recorded::Unreadable(bytes) => panic!("unreadable: {}", bytes.escape_ascii()),
        };
        self.recorded().into_iter().map(request).collect()
    }

    /// The request with this number, from 1, once it has been received.
    ///
    /// # Panics
    ///
    /// When it is not received in time.
    pub async fn request_number(&self, count: usize) -> RecordedRequest {
        until("a request at the recording backend", || async {
            let requests = self.requests();
            (requests.len() >= count).then(|| requests[count - 1].clone())
        })
        .await
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn converse_with_tls(
    stream: TcpStream,
    tls: &TlsAcceptor,
    state: &Mutex<State>,
) -> io::Result<()> {
    let mut stream = tls.accept(stream).await?;
    if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
        locked(state).resumptions += 1;
    }
    converse(&mut stream, state).await?;
    stream.shutdown().await
}

async fn converse(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    state: &Mutex<State>,
) -> io::Result<()> {
    let mut received = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        match read_request(&received) {
            Reading::Whole(request) => {
                received.drain(..request.raw.len());
                let behaviour = {
                    let mut state = locked(state);
                    if is_check(&request) {
                        state.checks += 1;
                        state.when_checked.clone()
                    } else {
                        let once = state.once.take();
                        let mut behaviour = once.unwrap_or_else(|| state.behaviour.clone());
                        let echo = match behaviour.delivery {
                            Delivery::Echoing => Some(&*request.target),
                            Delivery::EchoingHeader(name) => request.value(name),
                            _ => None,
                        };
                        if let Some(echo) = echo {
                            behaviour.body = echo.as_bytes().to_vec();
                        }
                        state.recorded.push(Recorded::Request(request));
                        behaviour
                    }
                };
                if !response(stream, &behaviour).await? {
                    return Ok(());
                }
                continue;
            }
            Reading::Unreadable => {
                locked(state).recorded.push(Recorded::Unreadable(received));
                return Ok(());
            }
            Reading::Partial => {}
        }
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            if !received.is_empty() {
                locked(state).recorded.push(Recorded::Unreadable(received));
            }
            return Ok(());
        }
        locked(state).bytes += length;
        received.extend_from_slice(&buffer[..length]);
    }
}

fn is_check(request: &RecordedRequest) -> bool {
    request.target == HEALTH && request.values("x-gateway-version").is_empty()
}

/// Returns whether the connection stays open.
async fn response(
    stream: &mut (impl AsyncWrite + Unpin),
    behaviour: &Behaviour,
) -> io::Result<bool> {
    let length = behaviour.body.len();
    let mut bytes = format!("{}Content-Length: {length}\r\n\r\n", behaviour.head).into_bytes();
    bytes.extend_from_slice(&behaviour.body);
    match behaviour.delivery {
        Delivery::Promptly | Delivery::Echoing | Delivery::EchoingHeader(_) => {}
        Delivery::After(pause) => tokio::time::sleep(pause).await,
        Delivery::Never => std::future::pending().await,
        Delivery::HangUp => return Ok(false),
        Delivery::Verbatim => {
            stream
                .write_all(&[behaviour.head.as_bytes(), &behaviour.body].concat())
                .await?;
            return Ok(false);
        }
        Delivery::BreakOff => {
            stream.write_all(&bytes[..bytes.len() - length / 2]).await?;
            return Ok(false);
        }
        Delivery::ThenClose => {
            let line = format!("{}Connection: close\r\n", behaviour.head);
            let mut bytes = format!("{line}Content-Length: {length}\r\n\r\n").into_bytes();
            bytes.extend_from_slice(&behaviour.body);
            stream.write_all(&bytes).await?;
            return Ok(false);
        }
    }
    stream.write_all(&bytes).await?;
    Ok(true)
}

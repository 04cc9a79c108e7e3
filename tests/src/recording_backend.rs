//! Stands in for a backend: answers every request alike, and keeps every byte it receives.
//!
//! It reads more strictly than any server would, so that a request which could be understood in two
//! ways is not understood at all but shows as [`Recorded::Unreadable`].

mod request;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

pub use self::request::{Reading, RecordedRequest, read_request};
use crate::waiting::until;

/// What a gateway asks for to see whether a backend is well.
const HEALTH: &str = "/healthz";

/// A backend that records. It ends when dropped.
#[derive(Debug)]
pub struct RecordingBackend {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    end: Option<oneshot::Sender<()>>,
    accepting: JoinHandle<()>,
}

/// One thing that came over a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// A request that can be read in one way only.
    Request(RecordedRequest),
    /// Bytes that are no such request.
    Unreadable(Vec<u8>),
}

/// What the backend does with each request from now on.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// The answer's status line and headers, without the length.
    pub head: String,
    /// The answer's body.
    pub body: Vec<u8>,
    /// How it is given.
    pub manner: Manner,
}

/// How an answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// At once; the connection stays open.
    Promptly,
    /// At once; the connection ends.
    ThenClose,
    /// After a while.
    After(Duration),
    /// At once, with the request's own target as the body.
    Echoing,
    /// Never.
    Silently,
    /// The connection ends without an answer.
    HangUp,
    /// The connection ends in the middle of the body.
    BreakOff,
    /// The head's and the body's bytes as they are, nothing added; then the connection ends.
    Verbatim,
}

#[derive(Debug)]
struct State {
    behaviour: Behaviour,
    when_checked: Behaviour,
    checks: usize,
    connections: usize,
    bytes: usize,
    recorded: Vec<Recorded>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            head: "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n".to_owned(),
            body: b"{\"recorded\":true}".to_vec(),
            manner: Manner::Promptly,
        }
    }
}

impl Behaviour {
    /// An answer of exactly these bytes.
    #[must_use]
    pub fn verbatim(bytes: &str) -> Self {
        Self {
            head: bytes.to_owned(),
            body: Vec::new(),
            manner: Manner::Verbatim,
        }
    }

    /// The usual answer in another manner.
    #[must_use]
    pub fn answering(manner: Manner) -> Self {
        Self {
            manner,
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
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts one at an address, where there may have been one before.
    ///
    /// # Panics
    ///
    /// When the address is taken.
    pub async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address)
            .await
            .expect("the address is free");
        let address = listener.local_addr().expect("a listener has an address");
        let state = Arc::new(Mutex::new(State {
            behaviour: Behaviour::default(),
            when_checked: Behaviour::default(),
            checks: 0,
            connections: 0,
            bytes: 0,
            recorded: Vec::new(),
        }));
        let (end, ended) = oneshot::channel();
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state), ended));
        Self {
            address,
            state,
            end: Some(end),
            accepting,
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it does this.
    pub fn behave(&self, behaviour: Behaviour) {
        locked(&self.state).behaviour = behaviour;
    }

    /// From now on it does this with a check of its health that does not come through a gateway.
    pub fn behave_when_checked(&self, behaviour: Behaviour) {
        locked(&self.state).when_checked = behaviour;
    }

    /// Checks so far. They are not recorded.
    #[must_use]
    pub fn checks(&self) -> usize {
        locked(&self.state).checks
    }

    /// Ends it, as a crash would: nobody listens, and every connection has ended.
    pub async fn end(&mut self) {
        drop(self.end.take());
        // It cannot fail but by a panic, which was shown.
        let _ = (&mut self.accepting).await;
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        locked(&self.state).connections
    }

    /// Bytes received so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        locked(&self.state).bytes
    }

    /// All that came so far, in order of completion.
    #[must_use]
    pub fn recorded(&self) -> Vec<Recorded> {
        locked(&self.state).recorded.clone()
    }

    /// All requests that came so far.
    ///
    /// # Panics
    ///
    /// When something came that is no request.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        let request = |recorded| match recorded {
            Recorded::Request(request) => request,
            Recorded::Unreadable(bytes) => panic!("unreadable: {}", bytes.escape_ascii()),
        };
        self.recorded().into_iter().map(request).collect()
    }

    /// The request that came last, once so many have come.
    ///
    /// # Panics
    ///
    /// When they do not come in time.
    pub async fn request_number(&self, count: usize) -> RecordedRequest {
        until("a request at the recording backend", || async {
            let requests = self.requests();
            (requests.len() >= count).then(|| requests[count - 1].clone())
        })
        .await
    }
}

impl Drop for RecordingBackend {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>, mut ended: oneshot::Receiver<()>) {
    let mut conversations = JoinSet::new();
    loop {
        let stream = tokio::select! {
            _ = &mut ended => break,
            Some(_) = conversations.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => break,
            },
        };
        locked(&state).connections += 1;
        let state = Arc::clone(&state);
        conversations.spawn(async move {
            // The peer's going away is part of what is tested.
            let _ = converse(stream, &state).await;
        });
    }
    drop(listener);
    conversations.shutdown().await;
}

async fn converse(mut stream: TcpStream, state: &Mutex<State>) -> io::Result<()> {
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
                        let mut behaviour = state.behaviour.clone();
                        if behaviour.manner == Manner::Echoing {
                            behaviour.body = request.target.clone().into_bytes();
                        }
                        state.recorded.push(Recorded::Request(request));
                        behaviour
                    }
                };
                if !answer(&mut stream, &behaviour).await? {
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

/// Whether the connection stays open.
async fn answer(stream: &mut TcpStream, behaviour: &Behaviour) -> io::Result<bool> {
    let length = behaviour.body.len();
    let mut bytes = format!("{}Content-Length: {length}\r\n\r\n", behaviour.head).into_bytes();
    bytes.extend_from_slice(&behaviour.body);
    match behaviour.manner {
        Manner::Promptly | Manner::Echoing => {}
        Manner::After(pause) => tokio::time::sleep(pause).await,
        Manner::Silently => std::future::pending().await,
        Manner::HangUp => return Ok(false),
        Manner::Verbatim => {
            stream
                .write_all(&[behaviour.head.as_bytes(), &behaviour.body].concat())
                .await?;
            return Ok(false);
        }
        Manner::BreakOff => {
            stream.write_all(&bytes[..bytes.len() - length / 2]).await?;
            return Ok(false);
        }
        Manner::ThenClose => {
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

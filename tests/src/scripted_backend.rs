//! A backend that responses given targets with exactly the bytes of a script, and all others with the target itself.
//!
//! It records the connection of each request, so that a test can see whether the gateway reused one.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::{
    listener::Listener,
    port::free_address,
    recording_backend::{Reading, read_request},
};

/// A scripted backend. It stops when dropped.
#[derive(Debug)]
pub struct ScriptedBackend {
    listener: Listener,
    state: Arc<Mutex<State>>,
}

/// How requests for one target are answered.
#[derive(Clone, Debug)]
pub struct Script {
    /// The whole response, sent as it is.
    pub bytes: Vec<u8>,
    /// How fast the bytes are written.
    pub pace: Pace,
    /// When they are written.
    pub start: Start,
    /// What happens to the connection afterwards.
    pub ending: Ending,
}

/// How fast a response's bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All bytes at once.
    AtOnce,
    /// One by one, each in its own TCP segment.
    SingleBytes,
}

/// When a response is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Once the whole request has been read.
    AfterRequest,
    /// Once the head has been read. Nothing more is read from the connection.
    AfterHead,
}

/// What happens to the connection after a scripted answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It stays open, and later requests on it are answered.
    Open,
    /// It is closed; reset, if bytes are unread.
    Close,
    /// Only the direction to the gateway is closed.
    HalfClose,
}

/// A request that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The number of its connection.
    pub connection: usize,
    /// Its target.
    pub target: String,
}

#[derive(Debug, Default)]
struct State {
    scripts: HashMap<String, Script>,
    arrivals: Vec<Arrival>,
    /// Open connections by number.
    open: HashMap<usize, Arc<tokio::sync::Mutex<OwnedWriteHalf>>>,
}

/// Pause between two single bytes: longer than the gateway takes to read one.
const PAUSE: Duration = Duration::from_millis(1);

/// Socket receive buffer: small, so that a form of 60 KiB does not fit.
const RECEIVE_BUFFER: u32 = 4 * 1024;

impl ScriptedBackend {
    /// Starts one on a free port.
    ///
    /// # Panics
    ///
    /// When no port is free.
    pub async fn start() -> Self {
        Self::start_at(free_address()).await
    }

    /// Starts one at an address, which may have been used before.
    ///
    /// # Panics
    ///
    /// When the address is in use.
    pub async fn start_at(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("the system has a socket left");
        socket
            .set_reuseaddr(true)
            .expect("a socket has this option");
        socket
            .set_recv_buffer_size(RECEIVE_BUFFER)
            .expect("a socket has this option");
        socket.bind(address).expect("the address is free");
        let listener = socket.listen(1024).expect("a bound socket can listen");
        let state = Arc::new(Mutex::new(State::default()));
        let of_server = Arc::clone(&state);
        let mut next = 0;
        let serve = move |stream| {
            let state = Arc::clone(&of_server);
            let number = next;
            next += 1;
            async move {
                // The tests see the result at the gateway.
                let _ = converse(stream, number, &state).await;
                locked(&state).open.remove(&number);
            }
        };
        Self {
            listener: Listener::start(listener, serve),
            state,
        }
    }

    /// The address it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Stops it, as a crash would: the listener and all connections are closed.
    pub async fn end(&mut self) {
        self.listener.end().await;
        locked(&self.state).open.clear();
    }

    /// Answers requests for the target by the script from now on.
    pub fn script(&self, target: &str, script: Script) {
        let mut state = locked(&self.state);
        state.scripts.insert(target.to_owned(), script);
    }

    /// All requests so far, in order of arrival.
    #[must_use]
    pub fn arrivals(&self) -> Vec<Arrival> {
        locked(&self.state).arrivals.clone()
    }

    /// Whether a connection is open, as seen from this end.
    #[must_use]
    pub fn is_open(&self, connection: usize) -> bool {
        locked(&self.state).open.contains_key(&connection)
    }

    /// Writes bytes on an open connection, independent of requests and scripts.
    ///
    /// # Panics
    ///
    /// When the connection is closed.
    pub async fn write(&self, connection: usize, bytes: &[u8]) {
        let stream = locked(&self.state).open.get(&connection).cloned();
        let stream = stream.expect("the connection is open");
        let written = stream.lock().await.write_all(bytes).await;
        written.expect("the gateway keeps the connection open");
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn converse(stream: TcpStream, connection: usize, state: &Mutex<State>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, writer) = stream.into_split();
    let writer = Arc::new(tokio::sync::Mutex::new(writer));
    locked(state).open.insert(connection, Arc::clone(&writer));
    let mut received = Vec::new();
    loop {
        let (target, script) = next_request(&mut reader, &mut received, state).await?;
        let arrival = Arrival {
            connection,
            target: target.clone(),
        };
        locked(state).arrivals.push(arrival);
        let script = script.unwrap_or_else(|| Script::echo(&target));
        write(&mut *writer.lock().await, &script).await?;
        match script.ending {
            Ending::Open if script.start == Start::AfterRequest => {}
            Ending::Close => return Ok(()),
            Ending::HalfClose => {
                writer.lock().await.shutdown().await?;
                std::future::pending().await
            }
            Ending::Open => std::future::pending().await,
        }
    }
}

/// Reads the next request, and returns its target and script, if it has one.
async fn next_request(
    reader: &mut OwnedReadHalf,
    received: &mut Vec<u8>,
    state: &Mutex<State>,
) -> io::Result<(String, Option<Script>)> {
    loop {
        if let Some(target) = target_of_head(received) {
            let script = locked(state).scripts.get(&target).cloned();
            let is_early = |script: &Script| script.start == Start::AfterHead;
            if script.as_ref().is_some_and(is_early) {
                return Ok((target, script));
            }
            if let Reading::Whole(request) = read_request(received) {
                received.drain(..request.raw.len());
                return Ok((target, script));
            }
        }
        // In small reads, so that unread bytes stay in the kernel.
        let mut buffer = [0; 512];
        match reader.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => received.extend_from_slice(&buffer[..length]),
        }
    }
}

fn target_of_head(received: &[u8]) -> Option<String> {
    received.windows(4).position(|end| end == b"\r\n\r\n")?;
    let line = received.split(|byte| *byte == b'\r').next()?;
    let target = line.split(|byte| *byte == b' ').nth(1)?;
    Some(String::from_utf8_lossy(target).into_owned())
}

async fn write(stream: &mut OwnedWriteHalf, script: &Script) -> io::Result<()> {
    match script.pace {
        Pace::AtOnce => stream.write_all(&script.bytes).await?,
        Pace::SingleBytes => {
            for byte in &script.bytes {
                stream.write_all(&[*byte]).await?;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    Ok(())
}

impl Script {
    /// The default answer: the target as body.
    fn echo(target: &str) -> Self {
        let length = target.len();
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{target}"
        );
        Self {
            bytes: response.into_bytes(),
            pace: Pace::AtOnce,
            start: Start::AfterRequest,
            ending: Ending::Open,
        }
    }
}

//! The byte stream of a connection: a socket, or TLS on it. It is non-blocking if the socket is.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
    sync::Arc,
};

use anyhow::Context;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use crate::{case::Transport, requests::Requests, tls};

/// Opens the streams of one connection.
#[derive(Debug)]
pub(super) enum Opener {
    /// Without TLS.
    Plain,
    /// With TLS, each time by a full handshake.
    Tls(Arc<ClientConfig>),
    /// With TLS. Each handshake but the first resumes the session of the previous one.
    ResumedTls {
        /// With the session of this connection only.
        config: Arc<ClientConfig>,
        /// Whether there was a handshake.
        has_session: bool,
    },
}

/// A stream.
#[derive(Debug)]
pub(super) enum Stream {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS.
    Tls(Box<TlsStream>),
}

/// TLS on a socket.
#[derive(Debug)]
pub(super) struct TlsStream {
    socket: TcpStream,
    session: ClientConnection,
    /// The expected kind of the handshake, until it is complete.
    expected: Option<HandshakeKind>,
}

impl Opener {
    /// Opens streams for these requests.
    pub(super) fn new(requests: &Requests) -> Self {
        let Some(config) = requests.tls() else {
            return Self::Plain;
        };
        let config = Arc::new(config.clone());
        match requests.transport() {
            Transport::HttpsResumed => Self::ResumedTls {
                config,
                has_session: false,
            },
            _ => Self::Tls(config),
        }
    }

    /// The same for another connection, which shares no session with this one.
    pub(super) fn for_connection(&self) -> Self {
        match self {
            Self::Plain => Self::Plain,
            Self::Tls(config) => Self::Tls(Arc::clone(config)),
            Self::ResumedTls { config, .. } => {
                let mut own = ClientConfig::clone(config);
                own.resumption = tls::own_sessions();
                Self::ResumedTls {
                    config: Arc::new(own),
                    has_session: false,
                }
            }
        }
    }

    /// Opens a stream on a connected socket. A handshake is sent with the first request.
    ///
    /// # Errors
    ///
    /// When TLS is not possible.
    pub(super) fn open(&mut self, socket: TcpStream) -> anyhow::Result<Stream> {
        let (config, expected) = match self {
            Self::Plain => return Ok(Stream::Plain(socket)),
            Self::Tls(config) => (config, HandshakeKind::Full),
            Self::ResumedTls {
                config,
                has_session: true,
            } => (config, HandshakeKind::Resumed),
            Self::ResumedTls {
                config,
                has_session,
            } => {
                *has_session = true;
                (config, HandshakeKind::Full)
            }
        };
        socket.set_nodelay(true)?;
        let session = ClientConnection::new(Arc::clone(config), tls::server_name())
            .context("no TLS session")?;
        Ok(Stream::Tls(Box::new(TlsStream {
            socket,
            session,
            expected: Some(expected),
        })))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    /// Reads once from the socket. The stream ends where the socket does, and only after the server's `close_notify`.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let is_end = self.session.read_tls(&mut self.socket)? == 0;
        self.session
            .process_new_packets()
            .map_err(io::Error::other)?;
        if is_end {
            return self.session.reader().read(buffer);
        }
        self.send_pending()?;
        self.check_handshake()?;
        match self.session.reader().read(buffer) {
            // After `close_notify`, the socket's end follows.
            Ok(0) => Err(ErrorKind::WouldBlock.into()),
            read => read,
        }
    }

    /// Encrypts and sends. Until the handshake is complete, the session holds the bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.session.writer().write(bytes)?;
        self.send_pending()?;
        Ok(written)
    }

    fn send_pending(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    /// Fails if a complete handshake is not of the expected kind.
    fn check_handshake(&mut self) -> io::Result<()> {
        if let Some(expected) = self.expected
            && !self.session.is_handshaking()
        {
            let found = self.session.handshake_kind();
            if found != Some(expected) {
                return Err(io::Error::other(format!(
                    "handshake: found {found:?}; expected {expected:?}"
                )));
            }
            self.expected = None;
        }
        Ok(())
    }
}

//! A connection that sends bytes as they are, for what no client library would send.

use std::{
    fmt::Debug,
    io,
    net::{IpAddr, SocketAddr},
    str,
    sync::Arc,
    time::Duration,
};

use rustls::{HandshakeKind, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;

/// An open connection to the gateway, or to a proxy in front of it.
#[derive(Debug)]
pub struct RawConnection {
    stream: Box<dyn Stream>,
    handshake: Option<HandshakeKind>,
    read: Vec<u8>,
}

/// Bytes in both directions, with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Debug + Send + Unpin> Stream for S {}

/// A response, as received.
#[derive(Clone, Debug)]
pub struct RawResponse {
    /// Its status.
    pub status: u16,
    /// Its head, with the closing empty line.
    pub head: String,
    /// Its body.
    pub body: Vec<u8>,
}

/// Timeout of a response: longer than the gateway's own timeouts of 10 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(25);

impl RawConnection {
    /// Connects.
    ///
    /// # Panics
    ///
    /// When the connection is refused.
    pub async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the gateway accepts connections");
        Self::from_stream(stream)
    }

    /// Connects from another address of this machine, which has all of 127.0.0.0/8.
    ///
    /// # Panics
    ///
    /// When the connection is refused.
    pub async fn open_from(source: IpAddr, address: SocketAddr) -> Self {
        let opened = Self::try_open_from(source, address).await;
        opened.expect("the server accepts connections")
    }

    /// As [`Self::open_from`].
    ///
    /// # Errors
    ///
    /// The connection is refused or reset.
    pub async fn try_open_from(source: IpAddr, address: SocketAddr) -> io::Result<Self> {
        connect_from(source, address).await.map(Self::from_stream)
    }

    /// Connects by TLS from an address of this machine, and verifies the server as `name`.
    ///
    /// # Panics
    ///
    /// When the connection or the TLS handshake fails.
    pub async fn open_tls(
        source: IpAddr,
        address: SocketAddr,
        name: &'static str,
        tls: Arc<rustls::ClientConfig>,
    ) -> Self {
        let stream = connect_from(source, address).await;
        let stream = stream.expect("the server accepts connections");
        let opened = Self::begin_tls(stream, name, tls).await;
        opened.expect("the handshake succeeds")
    }

    /// Begins TLS on an open connection, and verifies the server as `name`.
    ///
    /// # Errors
    ///
    /// The handshake fails.
    ///
    /// # Panics
    ///
    /// When `name` is not a host name, or the handshake takes too long.
    pub async fn begin_tls(
        stream: TcpStream,
        name: &str,
        tls: Arc<rustls::ClientConfig>,
    ) -> io::Result<Self> {
        let name = ServerName::try_from(name.to_owned()).expect("a host name");
        let handshake = TlsConnector::from(tls).connect(name, stream);
        let stream = timeout(ANSWER_TIMEOUT, handshake)
            .await
            .expect("the handshake ends")?;
        let handshake = stream.get_ref().1.handshake_kind();
        Ok(Self {
            stream: Box::new(stream),
            handshake,
            read: Vec::new(),
        })
    }

    /// Whether its TLS session was resumed; `None` without TLS.
    #[must_use]
    pub const fn handshake_kind(&self) -> Option<HandshakeKind> {
        self.handshake
    }

    fn from_stream(stream: TcpStream) -> Self {
        stream
            .set_nodelay(true)
            .expect("a connection has this option");
        Self {
            stream: Box::new(stream),
            handshake: None,
            read: Vec::new(),
        }
    }

    /// Sends bytes. A connection that the peer has closed is not an error.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Sends bytes piece by piece, with a pause between any two.
    ///
    /// Stops when the peer has closed the connection.
    pub async fn send_slowly(&mut self, pieces: impl Iterator<Item = &[u8]>, pause: Duration) {
        for (index, piece) in pieces.enumerate() {
            if index > 0 {
                tokio::time::sleep(pause).await;
            }
            if self.stream.write_all(piece).await.is_err() {
                return;
            }
        }
    }

    /// Closes the sending direction.
    pub async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// The next answer, or `None` when the connection is closed before one.
    ///
    /// # Panics
    ///
    /// When neither happens in time, or the bytes are not HTTP.
    pub async fn response(&mut self) -> Option<RawResponse> {
        self.response_to("GET").await
    }

    /// The next answer to a request of this method: to a HEAD it has no body.
    ///
    /// # Panics
    ///
    /// As [`Self::response`].
    pub async fn response_to(&mut self, method: &str) -> Option<RawResponse> {
        let has_body = method != "HEAD";
        loop {
            if let Some((response, length)) = parse(&self.read, has_body, false) {
                self.read.drain(..length);
                return Some(response);
            }
            if !self.read_more().await {
                let (response, length) = parse(&self.read, has_body, true)?;
                self.read.drain(..length);
                return Some(response);
            }
        }
    }

    /// The next answer's head, behind which no body follows: the answer to a HEAD.
    ///
    /// # Panics
    ///
    /// As [`Self::response`].
    pub async fn response_to_head(&mut self) -> Option<RawResponse> {
        loop {
            if let Some((response, length)) = parse_head(&self.read) {
                self.read.drain(..length);
                return Some(response);
            }
            if !self.read_more().await {
                return None;
            }
        }
    }

    /// All further answers, until the peer closes the connection.
    ///
    /// # Panics
    ///
    /// When the peer does not close it in time.
    pub async fn responses_until_close(&mut self) -> Vec<RawResponse> {
        let mut responses = Vec::new();
        while let Some(response) = self.response().await {
            responses.push(response);
        }
        responses
    }

    /// All further bytes, until the peer closes the connection.
    ///
    /// # Panics
    ///
    /// When the peer does not close it in time.
    pub async fn bytes_until_close(&mut self) -> Vec<u8> {
        while self.read_more().await {}
        std::mem::take(&mut self.read)
    }

    /// The received bytes that are not a complete response yet; after the last response, an incomplete one.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        &self.read
    }

    /// Whether the peer closed the connection without sending anything more.
    ///
    /// # Panics
    ///
    /// When the peer neither closes nor sends in time.
    pub async fn is_closed(&mut self) -> bool {
        self.read.is_empty() && !self.read_more().await
    }

    /// Whether bytes are received, or the connection is closed, within `limit`.
    pub async fn has_activity_within(&mut self, limit: Duration) -> bool {
        if !self.read.is_empty() {
            return true;
        }
        let mut buffer = [0; 4096];
        match timeout(limit, self.stream.read(&mut buffer)).await {
            Err(_) => false,
            Ok(result) => {
                self.read.extend_from_slice(&buffer[..result.unwrap_or(0)]);
                true
            }
        }
    }

    async fn read_more(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        let read = timeout(ANSWER_TIMEOUT, self.stream.read(&mut buffer)).await;
        // A reset counts as closed.
        let length = read
            .expect("the gateway answers or closes in time")
            .unwrap_or(0);
        self.read.extend_from_slice(&buffer[..length]);
        length > 0
    }
}

async fn connect_from(source: IpAddr, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4().expect("the system has a socket left");
    socket
        .bind(SocketAddr::new(source, 0))
        .expect("the address is this machine's");
    socket.connect(address).await
}

impl RawResponse {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The problem code in the body, if any.
    #[must_use]
    pub fn code(&self) -> Option<String> {
        let body: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        body["code"].as_str().map(str::to_owned)
    }
}

/// The bytes of a request: `Host`, these header lines, and a body. No `Content-Length` is added.
#[must_use]
pub fn request(method: &str, target: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {target} HTTP/1.1\r\nHost: gateway.example\r\n").into_bytes();
    for line in headers {
        bytes.extend_from_slice(line.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// Parses the response at the start of the bytes, and returns it with its length; `None` when more bytes are needed.
fn parse(bytes: &[u8], has_body: bool, is_end: bool) -> Option<(RawResponse, usize)> {
    let (mut response, head_length) = parse_head(bytes)?;
    let (status, rest) = (response.status, &bytes[head_length..]);
    if !has_body || status < 200 || status == 204 || status == 304 {
        return Some((response, head_length));
    }
    let encoding = response.header("transfer-encoding");
    let chunked = encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case("chunked"));
    let length = response
        .header("content-length")
        .and_then(|length| length.parse().ok());
    let used = match (chunked, length) {
        (true, _) => {
            let (body, used) = dechunk(rest)?;
            response.body = body;
            used
        }
        (false, Some(length)) => {
            response.body = rest.get(..length)?.to_vec();
            length
        }
        (false, None) => {
            if !is_end {
                return None;
            }
            response.body = rest.to_vec();
            rest.len()
        }
    };
    Some((response, head_length + used))
}

/// Parses the head of the response at the start of the bytes.
fn parse_head(bytes: &[u8]) -> Option<(RawResponse, usize)> {
    let head_length = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = text(&bytes[..head_length]);
    let status: u16 = head
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..5))
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("not a response: {head}"));
    let response = RawResponse {
        status,
        head,
        body: Vec::new(),
    };
    Some((response, head_length))
}

/// Decodes UTF-8, or else ISO-8859-1, where each byte is a character (RFC 9110 section 5.5).
fn text(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// Decodes a chunked body without extensions or trailers, as our own programs send it.
fn dechunk(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let line = bytes[at..]
            .windows(2)
            .position(|window| window == b"\r\n")?;
        let size = str::from_utf8(&bytes[at..at + line]).expect("a chunk size is text");
        let size = usize::from_str_radix(size, 16).expect("a chunk size is hexadecimal");
        at += line + 2;
        body.extend_from_slice(bytes.get(at..at + size)?);
        bytes.get(at + size..at + size + 2)?;
        at += size + 2;
        if size == 0 {
            return Some((body, at));
        }
    }
}

//! A connection of HTTP/2 frames as they are, for what no client library sends.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

/// The client's first bytes. RFC 9113 section 3.4.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Kinds of frames. RFC 9113 section 6.
pub mod kind {
    /// A piece of a body.
    pub const DATA: u8 = 0;
    /// Begins a request, or ends one with trailers.
    pub const HEADERS: u8 = 1;
    /// Deprecated.
    pub const PRIORITY: u8 = 2;
    /// Ends a stream with an error.
    pub const RST_STREAM: u8 = 3;
    /// Settings, or their acknowledgement.
    pub const SETTINGS: u8 = 4;
    /// Only servers send it.
    pub const PUSH_PROMISE: u8 = 5;
    /// A ping, or its acknowledgement.
    pub const PING: u8 = 6;
    /// Ends the connection.
    pub const GOAWAY: u8 = 7;
    /// Allows more bytes.
    pub const WINDOW_UPDATE: u8 = 8;
    /// The next part of a HEADERS frame.
    pub const CONTINUATION: u8 = 9;
    /// No frame that is known.
    pub const UNKNOWN: u8 = 0xfa;
}

/// Flag of DATA and HEADERS: the last frame of this side. Also ACK of SETTINGS and PING.
pub const END_STREAM: u8 = 1;
/// Flag of HEADERS and CONTINUATION: no CONTINUATION follows.
pub const END_HEADERS: u8 = 4;
/// Flag of DATA and HEADERS: padding follows.
pub const PADDED: u8 = 8;

/// Timeout of a frame: longer than the gateway's own timeouts of 10 s.
const FRAME_TIMEOUT: Duration = Duration::from_secs(25);

/// A frame, as received.
#[derive(Clone, Debug)]
pub struct Frame {
    /// See [`kind`].
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 is the connection.
    pub stream: u32,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// How the gateway reacts to the frames of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// A response: its status, and its problem code.
    Response(u16, Option<String>),
    /// `RST_STREAM` with this code, before a response was complete.
    Reset(u32),
    /// GOAWAY with this code.
    Goaway(u32),
    /// The connection was closed without a word.
    Closed,
}

/// An open HTTP/2 connection.
#[derive(Debug)]
pub struct RawHttp2 {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    read: Vec<u8>,
}

impl RawHttp2 {
    /// Connects, and sends the preface and SETTINGS that forbid compression with a table.
    pub async fn open(address: SocketAddr) -> Self {
        let mut connection = Self::open_silently(address).await;
        // HEADER_TABLE_SIZE 0: each status is in its own frame.
        let settings = frame(kind::SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0]);
        connection.send(&[PREFACE, &settings].concat()).await;
        connection
    }

    /// Connects, and sends nothing.
    ///
    /// # Panics
    ///
    /// When the connection is refused.
    pub async fn open_silently(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await;
        let stream = stream.expect("the gateway accepts connections");
        stream
            .set_nodelay(true)
            .expect("a connection has this option");
        let (reader, writer) = stream.into_split();
        Self {
            reader,
            writer,
            read: Vec::new(),
        }
    }

    /// Sends bytes. Returns false if the gateway has closed the connection.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        self.writer.write_all(bytes).await.is_ok()
    }

    /// Its two halves, for tasks of their own.
    #[must_use]
    pub fn into_halves(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        (self.reader, self.writer)
    }

    /// The next frame, or `None` when the connection is closed.
    ///
    /// # Panics
    ///
    /// When neither happens in time.
    pub async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let [a, b, c, kind, flags, d, e, f, g, rest @ ..] = &self.read[..] {
                let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                if let Some(payload) = rest.get(..length) {
                    let frame = Frame {
                        kind: *kind,
                        flags: *flags,
                        stream: u32::from_be_bytes([*d, *e, *f, *g]),
                        payload: payload.to_vec(),
                    };
                    self.read.drain(..9 + length);
                    return Some(frame);
                }
            }
            let mut buffer = [0; 16 * 1024];
            let read = timeout(FRAME_TIMEOUT, self.reader.read(&mut buffer)).await;
            // A reset counts as closed.
            let length = read.expect("the gateway answers in time").unwrap_or(0);
            if length == 0 {
                return None;
            }
            self.read.extend_from_slice(&buffer[..length]);
        }
    }

    /// The reaction to a stream: its response, or how it or the connection ended.
    ///
    /// # Panics
    ///
    /// When there is none in time.
    pub async fn reaction(&mut self, stream: u32) -> Reaction {
        let [reaction] = self.reactions([stream]).await;
        reaction
    }

    /// The reactions to several streams.
    ///
    /// # Panics
    ///
    /// When one is missing in time.
    pub async fn reactions<const STREAMS: usize>(
        &mut self,
        streams: [u32; STREAMS],
    ) -> [Reaction; STREAMS] {
        let mut found = streams.map(|_| None);
        let mut received = streams.map(|_| (None, Vec::new()));
        while found.iter().any(Option::is_none) {
            let Some(frame) = self.frame().await else {
                return found.map(|reaction| reaction.unwrap_or(Reaction::Closed));
            };
            let code = |at: usize| {
                let code = frame.payload.get(at..at + 4)?;
                Some(u32::from_be_bytes(code.try_into().ok()?))
            };
            if frame.kind == kind::GOAWAY {
                let code = code(4).expect("a GOAWAY has a code");
                if code != 0 {
                    return found.map(|reaction| reaction.unwrap_or(Reaction::Goaway(code)));
                }
            }
            let Some(index) = streams.iter().position(|stream| *stream == frame.stream) else {
                continue;
            };
            let (status, body) = &mut received[index];
            match frame.kind {
                kind::RST_STREAM if found[index].is_none() => {
                    let code = code(0).expect("an RST_STREAM has a code");
                    found[index] = Some(Reaction::Reset(code));
                }
                kind::HEADERS => {
                    let found = read_status(&frame.payload);
                    // An interim response is followed by another.
                    *status = Some(found).filter(|status| *status >= 200);
                }
                kind::DATA => body.extend_from_slice(&frame.payload),
                _ => continue,
            }
            let is_last =
                matches!(frame.kind, kind::HEADERS | kind::DATA) && frame.flags & END_STREAM != 0;
            if let Some(status) = status.filter(|_| is_last) {
                let body: Option<serde_json::Value> = serde_json::from_slice(body).ok();
                let code = body.and_then(|body| body["code"].as_str().map(str::to_owned));
                found[index] = Some(Reaction::Response(status, code));
            }
        }
        found.map(|reaction| reaction.unwrap_or(Reaction::Closed))
    }
}

/// The bytes of a frame.
///
/// # Panics
///
/// When the payload is longer than a frame can be.
#[must_use]
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame's length has three bytes");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A header block without compression: each field is a literal that is not indexed (RFC 7541 section 6.2.2).
#[must_use]
pub fn block(fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        for text in [name, value] {
            write_length(&mut bytes, text.len());
            bytes.extend_from_slice(text);
        }
    }
    bytes
}

/// An integer with a prefix of seven bits. RFC 7541 section 5.1.
fn write_length(bytes: &mut Vec<u8>, mut length: usize) {
    let byte = |length: usize| u8::try_from(length).expect("it is one byte");
    if length < 127 {
        bytes.push(byte(length));
        return;
    }
    bytes.push(127);
    length -= 127;
    while length >= 128 {
        bytes.push(byte(length % 128) | 128);
        length /= 128;
    }
    bytes.push(byte(length));
}

/// A HEADERS frame with these fields, which is the head of a request.
#[must_use]
pub fn headers(stream: u32, flags: u8, fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    frame(kind::HEADERS, flags | END_HEADERS, stream, &block(fields))
}

/// The usual pseudo-header fields, then these.
#[must_use]
pub fn fields<'f>(
    method: &'f str,
    path: &'f str,
    further: &[(&'f [u8], &'f [u8])],
) -> Vec<(&'f [u8], &'f [u8])> {
    let mut fields: Vec<(&[u8], &[u8])> = vec![
        (b":method", method.as_bytes()),
        (b":scheme", b"http"),
        (b":authority", b"gateway.example"),
        (b":path", path.as_bytes()),
    ];
    fields.extend_from_slice(further);
    fields
}

/// An unsigned GET.
#[must_use]
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    headers(stream, END_STREAM, &fields("GET", path, &[]))
}

/// The status at the begin of a header block. Servers send it first.
fn read_status(block: &[u8]) -> u16 {
    // Updates of the table's size.
    let mut block = block;
    while let [first, rest @ ..] = block
        && first & 0xe0 == 0x20
    {
        block = rest;
        if first & 0x1f == 0x1f {
            let end = block.iter().position(|byte| byte & 0x80 == 0);
            block = &block[end.map_or(block.len(), |end| end + 1)..];
        }
    }
    match block {
        [index @ 0x88..=0x8e, ..] => [200, 204, 206, 304, 400, 404, 500][usize::from(index - 0x88)],
        // A literal whose name is that of entry 8, 9 …, with its value in the Huffman code or without.
        [_, 3, digits @ ..] => decimal(digits[..3].iter().map(|digit| digit - b'0')),
        [_, length, digits @ ..] if length & 0x80 != 0 => {
            decimal(huffman_digits(&digits[..usize::from(length & 0x7f)]))
        }
        _ => panic!("no status: {block:02x?}"),
    }
}

fn decimal(digits: impl IntoIterator<Item = u8>) -> u16 {
    let digits = digits.into_iter().take(3);
    digits.fold(0, |number, digit| number * 10 + u16::from(digit))
}

/// Digits in the Huffman code of RFC 7541 appendix B: `0` to `2` have five bits, the others six.
fn huffman_digits(bytes: &[u8]) -> Vec<u8> {
    let mut bits = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let mut digits = Vec::new();
    while digits.len() < 3 {
        let five = (0..5).fold(0, |code, _| code << 1 | bits.next().unwrap_or(1));
        digits.push(match five {
            0..=2 => five,
            _ => (five << 1 | bits.next().unwrap_or(1)) - 0x19 + 3,
        });
    }
    digits
}

//! A connection of HTTP/2, as far as the gateway reads it itself. Sources: RFC 9113 sections 4, 6 and 8, RFC 7541,
//! CONTRACT 2.
//!
//! The `loona-hpack` crate decodes each representation of a field. It neither finds where one ends, nor knows that sizes of
//! the table only begin a block.

use loona_hpack::{Decoder, decoder::DecoderError};

use super::head::{self, Framing, Limits};
use super::text::{is_token, values};

/// Errors of connections. RFC 9113 section 7.
pub const PROTOCOL_ERROR: u32 = 1;
/// See [`PROTOCOL_ERROR`].
pub const COMPRESSION_ERROR: u32 = 9;
const FRAME_SIZE_ERROR: u32 = 6;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

/// `SETTINGS_MAX_FRAME_SIZE` and `SETTINGS_HEADER_TABLE_SIZE`: their defaults.
const MAX_FRAME: usize = 16_384;
const MAX_TABLE: usize = 4096;

type Field = (Vec<u8>, Vec<u8>);
/// A head in the form of HTTP/1.1; `None` if it is malformed.
pub type Head = Option<(Vec<u8>, Framing)>;

/// What a connection brings.
#[derive(Default)]
pub struct Reading {
    /// The streams, and their heads.
    pub heads: Vec<(u32, Head)>,
    /// The frames behind this layer: a fixed head in place of each stream's, an end of the data in place of trailers.
    pub passed: Vec<u8>,
    /// The error that ends the connection.
    pub failure: Option<u32>,
    /// Whether it ended within a header block.
    pub is_in_block: bool,
    /// Whether a header list is so large that no more streams are taken. Nothing is read behind it.
    pub is_closed: bool,
}

/// A header block that has begun.
struct Block {
    stream: u32,
    is_new: bool,
    ends_stream: bool,
    rest: Vec<u8>,
    fields: Vec<Field>,
}

/// Reads what follows the preface. Lists of more than `max_list` bytes close the connection.
pub fn read(mut input: &[u8], limits: &Limits, max_list: usize) -> Reading {
    let mut decoder = Decoder::new();
    decoder.set_max_allowed_table_size(MAX_TABLE);
    let (mut reading, mut block) = (Reading::default(), None);
    while let Some((head, rest)) = input.split_first_chunk::<9>()
        && !reading.is_closed
        && reading.failure.is_none()
    {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = &rest[..length.min(rest.len())];
        input = &rest[payload.len()..];
        match reading.frame(*head, length, payload, &mut block, &mut decoder) {
            Ok(is_complete) => {
                let is_large = |block: &Block| block.is_larger(max_list);
                reading.is_closed = block.as_ref().is_some_and(is_large);
                if let Some(ended) = block.take_if(|_| is_complete || reading.is_closed) {
                    reading.end(&ended, limits);
                }
            }
            Err(failure) => reading.failure = Some(failure),
        }
    }
    reading.is_in_block = block.is_some();
    reading
}

impl Reading {
    /// Returns whether the frame ends a header block.
    fn frame(
        &mut self,
        head: [u8; 9],
        length: usize,
        payload: &[u8],
        block: &mut Option<Block>,
        decoder: &mut Decoder<'_>,
    ) -> Result<bool, u32> {
        let [_, _, _, kind, flags, a, b, c, d] = head;
        let stream = u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff;
        let newest = self.heads.last().map_or(0, |(stream, _)| *stream);
        let has = |flag| flags & flag != 0;
        let follows = |block: &Block| (kind, stream) == (CONTINUATION, block.stream);
        if block.as_ref().is_some_and(|block| !follows(block)) {
            return Err(PROTOCOL_ERROR);
        }
        if kind != HEADERS && block.is_none() || length > MAX_FRAME {
            let is_empty = (kind, length) == (DATA, 0) && !has(END_STREAM);
            if !is_empty || stream == 0 || stream > newest {
                self.passed.extend([&head[..], payload].concat());
            }
            return Ok(false);
        }
        let block = block.get_or_insert_with(|| Block {
            stream,
            is_new: stream > newest && stream % 2 == 1,
            ends_stream: has(END_STREAM),
            rest: Vec::new(),
            fields: Vec::new(),
        });
        if payload.len() < length {
            return Ok(false);
        }
        let (mut fragment, mut padding) = (payload, 0);
        if kind == HEADERS && has(PADDED) {
            let (length, rest) = payload.split_first().ok_or(FRAME_SIZE_ERROR)?;
            (padding, fragment) = (usize::from(*length), rest);
        }
        if kind == HEADERS && has(PRIORITY) {
            fragment = fragment.get(5..).ok_or(FRAME_SIZE_ERROR)?;
        }
        let length = fragment.len().checked_sub(padding).ok_or(PROTOCOL_ERROR)?;
        block.rest.extend(&fragment[..length]);
        block.decode(decoder).ok_or(COMPRESSION_ERROR)?;
        let is_cut = has(END_HEADERS) && !block.rest.is_empty();
        (!is_cut)
            .then_some(has(END_HEADERS))
            .ok_or(COMPRESSION_ERROR)
    }

    fn end(&mut self, block: &Block, limits: &Limits) {
        let end = if block.ends_stream { END_STREAM } else { 0 };
        if block.is_new {
            let head = written(&block.fields, block.ends_stream).filter(|_| !self.is_closed);
            let judged = head.and_then(|head| judged(head, block.ends_stream, limits));
            self.heads.push((block.stream, judged));
            // `:method: GET`, `:scheme: http` and `:path: /` of the static table.
            self.put(HEADERS, END_HEADERS | end, block.stream, b"\x82\x86\x84");
        } else if !self.is_closed && block.ends_stream {
            self.put(DATA, END_STREAM, block.stream, b"");
        } else if !self.is_closed {
            // Malformed: the `h2` crate resets the stream.
            self.put(HEADERS, END_HEADERS, block.stream, b"");
        }
    }

    fn put(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let head = [0, 0, payload.len() as u8, kind, flags];
        let frame = [&head[..], &stream.to_be_bytes(), payload].concat();
        self.passed.extend(frame);
    }
}

impl Block {
    /// Whether its fields, as RFC 9113 section 6.5.2 counts them, have more bytes.
    fn is_larger(&self, max_list: usize) -> bool {
        let length = |(name, value): &Field| name.len() + value.len() + 32;
        self.fields.iter().map(length).sum::<usize>() > max_list
    }

    fn decode(&mut self, decoder: &mut Decoder<'_>) -> Option<()> {
        while let Some(length) = representation(&self.rest) {
            let bytes: Vec<u8> = self.rest.drain(..length).collect();
            match decoder.decode(&bytes) {
                Ok(fields) => self.fields.extend(fields),
                // RFC 7541 section 4.2: a size of the table stands in front of all fields.
                Err(DecoderError::SizeUpdateAtEnd) if self.fields.is_empty() => {}
                Err(_) => return None,
            }
        }
        Some(())
    }
}

/// The length of the first representation; `None` while its end is missing. RFC 7541 section 6.
fn representation(block: &[u8]) -> Option<usize> {
    let (prefix, is_literal) = match block.first()?.leading_zeros() {
        0 => (7, false),
        1 => (6, true),
        2 => (5, false),
        _ => (4, true),
    };
    let (index, mut end) = integer(block, prefix)?;
    let strings = usize::from(is_literal) + usize::from(is_literal && index == 0);
    for _ in 0..strings {
        let (length, size) = integer(block.get(end..)?, 7)?;
        end += size + length;
    }
    (end <= block.len()).then_some(end)
}

/// An integer and its length. RFC 7541 section 5.1. The decoder rejects one of more than five bytes.
fn integer(bytes: &[u8], prefix: u32) -> Option<(usize, usize)> {
    let max = (1 << prefix) - 1;
    let mut value = usize::from(*bytes.first()?) & max;
    if value < max {
        return Some((value, 1));
    }
    for (index, byte) in bytes[1..].iter().take(4).enumerate() {
        value += usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, index + 2));
        }
    }
    (bytes.len() >= 5).then_some((0, 5))
}

/// A head in the form of HTTP/1.1. RFC 9113 sections 8.2 and 8.3.
fn written(fields: &[Field], ends_stream: bool) -> Option<Vec<u8>> {
    let is_pseudo = |(name, _): &Field| name.starts_with(b":");
    let count = fields.iter().take_while(|field| is_pseudo(field)).count();
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (&name[..], &value[..]))
        .collect();
    let (pseudo, regular) = fields.split_at(count);
    let [methods, paths, schemes, hosts] =
        [":method", ":path", ":scheme", ":authority"].map(|name| values(pseudo, name));
    let ([method], [path], [b"http" | b"https"]) = (&methods[..], &paths[..], &schemes[..]) else {
        return None;
    };
    let is_graphic = |text: &[u8]| text.iter().all(|&byte| byte > b' ' && byte != 0x7f);
    let has_names = pseudo
        .iter()
        .all(|(name, _)| name.to_ascii_lowercase() == *name);
    let is_known = has_names && 3 + hosts.len() == count && hosts.len() <= 1;
    if !is_known
        || !is_token(method)
        || !is_graphic(path)
        || !hosts.iter().all(|host| is_graphic(host))
    {
        return None;
    }
    let mut head = [method, &b" "[..], path, b" HTTP/1.1\r\n"].concat();
    let line = |name: &[u8], value: &[u8]| [name, b": ", value, b"\r\n"].concat();
    head.extend(hosts.iter().flat_map(|host| line(b"Host", host)));
    let mut cookies = Vec::new();
    for (name, value) in regular {
        let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        let is_valid = is_token(name) && name.to_ascii_lowercase() == *name;
        let is_trimmed = !is_blank(value.first()) && !is_blank(value.last());
        if !is_valid || !is_trimmed || value.iter().any(|byte| b"\r\n".contains(byte)) {
            return None;
        }
        match *name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => return None,
            b"te" if *value != b"trailers" => return None,
            b"host" if hosts.iter().any(|host| host.eq_ignore_ascii_case(value)) => {}
            // Section 8.2.3. Empty ones in front are left out.
            b"cookie" if !(cookies.is_empty() && value.is_empty()) => cookies.push(*value),
            b"cookie" => {}
            _ => head.extend(line(name, value)),
        }
    }
    if !cookies.is_empty() {
        head.extend(line(b"cookie", &cookies.join(&b"; "[..])));
    }
    if !ends_stream && values(regular, "content-length").is_empty() {
        head.extend(b"Transfer-Encoding: chunked\r\n");
    }
    head.extend(b"\r\n");
    Some(head)
}

fn judged(head: Vec<u8>, ends_stream: bool, limits: &Limits) -> Head {
    let read = head::read(&head, limits).ok()??;
    let framing = match (read.framing, ends_stream) {
        (Framing::Length(_), true) => return None,
        // `content-length: 0`.
        (Framing::None, false) => Framing::Length(0),
        (framing, _) => framing,
    };
    (read.length == head.len()).then_some((head, framing))
}

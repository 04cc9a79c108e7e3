//! Strict parser of one HTTP/1.1 request (RFC 9112), without any leniency.

use std::str;

/// A request that can be read in one way only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// All its bytes.
    pub raw: Vec<u8>,
    /// Its method.
    pub method: String,
    /// Its target, as sent.
    pub target: String,
    /// Its headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body, without the chunk framing.
    pub body: Vec<u8>,
}

/// Result of parsing bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The bytes begin with a complete request.
    Whole(RecordedRequest),
    /// More bytes are needed.
    Partial,
    /// The bytes are not the beginning of a request.
    Unreadable,
}

impl RecordedRequest {
    /// All values of a header.
    #[must_use]
    pub fn values(&self, name: &str) -> Vec<&str> {
        let of_name = self.headers.iter().filter(|(key, _)| key == name);
        of_name.map(|(_, value)| value.as_str()).collect()
    }

    /// The value of a header that occurs at most once.
    ///
    /// # Panics
    ///
    /// When it occurs twice.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let values = self.values(name);
        assert!(values.len() < 2, "{name} occurs twice: {:?}", self.headers);
        values.first().copied()
    }
}

/// Parses the request that the bytes begin with.
#[must_use]
pub fn read_request(bytes: &[u8]) -> Reading {
    let Some(head_length) = position(bytes, b"\r\n\r\n") else {
        return Reading::Partial;
    };
    let Some(mut request) = read_head(&bytes[..head_length + 2]) else {
        return Reading::Unreadable;
    };
    let rest = &bytes[head_length + 4..];
    let used = match framing(&request) {
        None => return Reading::Unreadable,
        Some(Framing::Length(length)) => match rest.get(..length) {
            None => return Reading::Partial,
            Some(body) => {
                request.body = body.to_vec();
                length
            }
        },
        Some(Framing::Chunks) => match read_chunks(rest) {
            Chunks::Whole(body, used) => {
                request.body = body;
                used
            }
            Chunks::Partial => return Reading::Partial,
            Chunks::Unreadable => return Reading::Unreadable,
        },
    };
    request.raw = bytes[..head_length + 4 + used].to_vec();
    Reading::Whole(request)
}

/// Parses a head, which ends with the line end of the last header.
fn read_head(head: &[u8]) -> Option<RecordedRequest> {
    let head = str::from_utf8(head).ok()?;
    let mut lines = head.strip_suffix("\r\n")?.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_target = target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic());
    if words.next().is_some() || !is_token(method) || !is_target || version != "HTTP/1.1" {
        return None;
    }
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        // No control character in a value, so no bare CR, LF or NUL; no space in a name.
        if !is_token(name)
            || value
                .bytes()
                .any(|byte| byte < b' ' && byte != b'\t' || byte == 127)
        {
            return None;
        }
        headers.push((
            name.to_ascii_lowercase(),
            value.trim_matches([' ', '\t']).to_owned(),
        ));
    }
    Some(RecordedRequest {
        raw: Vec::new(),
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        body: Vec::new(),
    })
}

enum Framing {
    Length(usize),
    Chunks,
}

fn framing(request: &RecordedRequest) -> Option<Framing> {
    if request.values("host").len() != 1 {
        return None;
    }
    match (
        &*request.values("transfer-encoding"),
        &*request.values("content-length"),
    ) {
        ([], []) => Some(Framing::Length(0)),
        ([], [length]) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().ok().map(Framing::Length)
        }
        (["chunked"], []) => Some(Framing::Chunks),
        _ => None,
    }
}

enum Chunks {
    Whole(Vec<u8>, usize),
    Partial,
    Unreadable,
}

/// Parses chunks without extensions and trailers: neither may reach a backend.
fn read_chunks(bytes: &[u8]) -> Chunks {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let Some(line) = position(&bytes[at..], b"\r\n") else {
            return Chunks::Partial;
        };
        let size = str::from_utf8(&bytes[at..at + line])
            .ok()
            .filter(|size| size.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|size| usize::from_str_radix(size, 16).ok());
        let Some(size) = size else {
            return Chunks::Unreadable;
        };
        at += line + 2;
        let Some(chunk) = bytes.get(at..at + size) else {
            return Chunks::Partial;
        };
        body.extend_from_slice(chunk);
        at += size;
        match bytes.get(at..at + 2) {
            None => return Chunks::Partial,
            Some(b"\r\n") => at += 2,
            Some(_) => return Chunks::Unreadable,
        }
        if size == 0 {
            return Chunks::Whole(body, at);
        }
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_to_its_end() {
        let one = b"POST /a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
        let mut two = one.to_vec();
        two.extend_from_slice(b"GET ");
        let Reading::Whole(request) = read_request(&two) else {
            panic!("not whole")
        };
        assert_eq!(request.raw, one);
        assert_eq!((&*request.target, &*request.body), ("/a?b", &b"abc"[..]));
        assert_eq!(read_request(&one[..one.len() - 1]), Reading::Partial);
    }

    #[test]
    fn an_ambiguous_request_is_unreadable() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"GET / HTTP/1.1\nHost: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
            b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\n y: z\r\n\r\n",
            b"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0;x\r\n\r\n",
        ] {
            assert_eq!(
                read_request(bytes),
                Reading::Unreadable,
                "{}",
                bytes.escape_ascii()
            );
        }
    }
}

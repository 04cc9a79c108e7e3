//! Writes a stream's head out in the strict form of HTTP/1.1, and has it judged by the parser for HTTP/1.1.
//!
//! | HTTP/2 | written out |
//! | --- | --- |
//! | `:method`, `:path` | request line. For CONNECT, the target is `:authority` |
//! | `:authority`, `host` | one `Host` if one is missing or both are equal; otherwise two, which the parser rejects |
//! | `:scheme` | not written; must be `http` or `https` |
//! | several `cookie` | one at the end, joined by `; ` (RFC 9113 section 8.2.3) |
//! | a body without `content-length` | `Transfer-Encoding: chunked` |
//!
//! What cannot be written out is a fault: a line end in a value, a pseudo-header field behind the others.

use std::time::Duration;

use memchr::memchr2;

use crate::{
    downstream::http1::{
        connection::rejection,
        head::{HeadFault, ReadHead, RequestScanner, read_head},
    },
    request::{BodyLength, Head, HeadLimits, rejection::Rejection},
    wire::syntax::{
        bytes::{TOKEN, has_control, is_in_class},
        field::write_line,
    },
};

/// A stream's head as it was received.
#[derive(Debug)]
pub struct StreamHead {
    /// In the strict form, as far as it can be written so.
    written: Vec<u8>,
    fault: Option<StreamFault>,
    /// Whether the head did not end the stream.
    has_body: bool,
    has_content_length: bool,
}

/// What is wrong with a stream's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFault {
    /// The fault that it has in the strict form.
    Head(HeadFault),
    /// It did not arrive in time.
    Late,
}

impl StreamHead {
    /// Parses the head.
    ///
    /// # Errors
    ///
    /// The fault; with the head as written out.
    pub fn judge(self, limits: &HeadLimits) -> Result<(Head, BodyLength), (StreamFault, Vec<u8>)> {
        let Self {
            written,
            fault,
            has_body,
            has_content_length,
        } = self;
        if let Some(fault) = fault {
            return Err((fault, written));
        }
        let arrived = &written[..written.len().min(limits.bytes)];
        let fault = match RequestScanner::default().scan(arrived, limits) {
            Ok(Some(length)) if length == written.len() => None,
            // Impossible, as no part contains a line end. Otherwise the rest would be read as another request.
            Ok(_) => Some(HeadFault::NotHttp("a line end in the head")),
            Err(fault) => Some(fault),
        };
        if let Some(fault) = fault {
            return Err((StreamFault::Head(fault), written));
        }
        let ReadHead { head, .. } = read_head(written, limits)
            .map_err(|(fault, written)| (StreamFault::Head(fault), written))?;
        let body = match head.body() {
            BodyLength::Known(_) if !has_body => {
                let fault = HeadFault::NotHttp("a content-length without a body");
                return Err((StreamFault::Head(fault), head.into_bytes()));
            }
            BodyLength::None if has_body && has_content_length => BodyLength::Known(0),
            length => length,
        };
        Ok((head, body))
    }
}

impl StreamFault {
    /// The rejection of the request, whose head is written out as far as it can be.
    pub(crate) fn rejection(
        self,
        limits: &HeadLimits,
        timeout: Duration,
        written: &[u8],
    ) -> Rejection {
        match self {
            Self::Head(fault) => rejection(limits, fault, written),
            Self::Late => Rejection::RequestTimeout { limit: timeout },
        }
    }
}

/// What is kept of a head that is too large, in bytes.
const MAX_KEPT: usize = 4096;

/// Writes a stream's head from its decoded fields. It is reused from head to head.
#[derive(Debug, Default)]
pub(crate) struct HeadWriter {
    /// Limit of the bytes. Of a longer head, the beginning is kept for the log.
    max: usize,
    written: Vec<u8>,
    pseudo: PseudoFields,
    /// The value of the joined cookie.
    cookie: Vec<u8>,
    has_request_line: bool,
    has_content_length: bool,
    fault: Option<HeadFault>,
}

/// The values of the pseudo-header fields; `None` for those that were not sent.
#[derive(Debug, Default)]
struct PseudoFields {
    method: Option<Vec<u8>>,
    path: Option<Vec<u8>>,
    authority: Option<Vec<u8>>,
    has_scheme: bool,
}

impl HeadWriter {
    /// A writer of heads of at most `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            ..Self::default()
        }
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        let result = match name.split_first() {
            Some((b':', name)) => self.pseudo_field(name, value),
            _ => self.regular_field(name, value),
        };
        if let Err(fault) = result {
            self.fault = Some(fault);
        }
    }

    /// Ends the head. `has_body`: it did not end the stream.
    pub(crate) fn finish(&mut self, has_body: bool) -> StreamHead {
        if !self.has_request_line {
            self.write_request_line();
        }
        if self.fault.is_none() {
            let cookie = std::mem::take(&mut self.cookie);
            if !cookie.is_empty() {
                self.write_field(b"cookie", &cookie);
            }
            if has_body && !self.has_content_length {
                write_line(&mut self.written, b"Transfer-Encoding", b"chunked");
            }
        }
        self.written.extend_from_slice(b"\r\n");
        let fresh = Self::new(self.max);
        let done = std::mem::replace(self, fresh);
        StreamHead {
            written: done.written,
            fault: done.fault.map(StreamFault::Head),
            has_body,
            has_content_length: done.has_content_length,
        }
    }

    /// Ends a head whose rest is not read any more.
    pub(crate) fn abandon(&mut self, fault: StreamFault) -> StreamHead {
        StreamHead {
            fault: Some(fault),
            ..self.finish(false)
        }
    }

    /// RFC 9113 section 8.3: known, once, in front of all others.
    fn pseudo_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
        if self.has_request_line {
            return Err(HeadFault::NotHttp("a pseudo-header field behind a header"));
        }
        let pseudo = &mut self.pseudo;
        let place = match name {
            b"method" => &mut pseudo.method,
            b"path" => &mut pseudo.path,
            b"authority" => &mut pseudo.authority,
            b"scheme" => {
                if std::mem::replace(&mut pseudo.has_scheme, true) {
                    return Err(HeadFault::NotHttp("a pseudo-header field twice"));
                }
                let is_known = matches!(value, b"http" | b"https");
                return if is_known {
                    Ok(())
                } else {
                    Err(HeadFault::Target)
                };
            }
            _ => return Err(HeadFault::NotHttp("an unknown pseudo-header field")),
        };
        if place.is_some() {
            return Err(HeadFault::NotHttp("a pseudo-header field twice"));
        }
        // A longer value is too large for any head; its beginning is for the log.
        *place = Some(value[..value.len().min(self.max)].to_vec());
        Ok(())
    }

    /// RFC 9113 sections 8.2.1 and 8.2.2. The parser for HTTP/1.1 judges the rest.
    fn regular_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
        if !self.has_request_line {
            self.write_request_line();
        }
        let is_lower = |&byte: &u8| is_in_class(byte, TOKEN) && !byte.is_ascii_uppercase();
        if name.is_empty() || !name.iter().all(is_lower) {
            return Err(HeadFault::NotHttp(
                "a header's name is not a token in lower case",
            ));
        }
        if value.first().is_some_and(is_blank) || value.last().is_some_and(is_blank) {
            return Err(HeadFault::NotHttp("a value begins or ends with a space"));
        }
        // Written out, a line end would begin a field of its own, or another request. Other characters are left to the
        // parser.
        if memchr2(b'\r', b'\n', value).is_some() {
            return Err(HeadFault::NotHttp("a control character in a header"));
        }
        match name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => {
                return Err(HeadFault::NotHttp("a header of HTTP/1.1's connection"));
            }
            b"te" if value != b"trailers" => {
                return Err(HeadFault::NotHttp("a header of HTTP/1.1's connection"));
            }
            b"host" if self.is_authority(value) => {}
            b"cookie" => {
                if !self.cookie.is_empty() {
                    self.cookie.extend_from_slice(b"; ");
                }
                // Cut at the limit: a cookie of that length fits into no head, so the request is rejected anyway.
                let room = self.max.saturating_sub(self.cookie.len());
                self.cookie
                    .extend_from_slice(&value[..value.len().min(room)]);
            }
            _ => {
                self.has_content_length |= name == b"content-length";
                self.write_field(name, value);
            }
        }
        Ok(())
    }

    fn is_authority(&self, host: &[u8]) -> bool {
        let authority = self.pseudo.authority.as_deref();
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    }

    /// Writes a field, if it fits.
    fn write_field(&mut self, name: &[u8], value: &[u8]) {
        let room = self.max.saturating_sub(self.written.len());
        if name.len() + value.len() < room {
            write_line(&mut self.written, name, value);
        } else {
            self.exceed(HeadFault::TooLarge);
        }
    }

    /// Drops the end of a head that is too large.
    fn exceed(&mut self, fault: HeadFault) {
        self.fault = self.fault.or(Some(fault));
        self.written.truncate(MAX_KEPT);
        self.written.shrink_to_fit();
        self.cookie = Vec::new();
    }

    /// Writes the request line, without anything that breaks the line, and `Host`.
    fn write_request_line(&mut self) {
        self.has_request_line = true;
        let method = self.pseudo.method.take().unwrap_or_default();
        let authority = self.pseudo.authority.take();
        let is_connect = method == b"CONNECT";
        let path = self.pseudo.path.take();
        let target = if is_connect { &authority } else { &path };
        let target = target.as_deref().unwrap_or_default();
        self.written.reserve(512);
        if !is_connect && !self.pseudo.has_scheme {
            self.fault = Some(HeadFault::NotHttp("no scheme"));
        }
        if method.iter().all(|&byte| is_in_class(byte, TOKEN)) {
            self.written.extend_from_slice(&method);
        } else {
            let fault = HeadFault::NotHttp("the method is not a token");
            self.fault = self.fault.or(Some(fault));
            self.written.push(b'-');
        }
        self.written.push(b' ');
        self.write_target(target);
        self.written.extend_from_slice(b" HTTP/1.1\r\n");
        if self.written.len() >= self.max {
            let has_query = target.contains(&b'?');
            self.exceed(if has_query {
                HeadFault::QueryTooLong
            } else {
                HeadFault::TooLarge
            });
        }
        if let Some(authority) = &authority {
            if has_control(authority) || authority.iter().any(is_blank) {
                self.fault = self.fault.or(Some(HeadFault::Target));
            } else {
                self.write_field(b"Host", authority);
            }
        }
        self.pseudo.authority = authority;
    }

    /// Writes the target up to a control character, which could end the line.
    fn write_target(&mut self, target: &[u8]) {
        let ends = |&byte: &u8| byte < b' ' || byte == 0x7f;
        let end = target.iter().position(ends).unwrap_or(target.len());
        self.written.extend_from_slice(&target[..end]);
        if end < target.len() && self.fault.is_none() {
            let is_in_query = target[..end].contains(&b'?');
            self.fault = Some(if is_in_query {
                HeadFault::Query
            } else {
                HeadFault::Target
            });
        }
    }
}

const fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests;

//! Writes a stream's head out in the strict form of HTTP/1.1, and has it judged by the parser for HTTP/1.1.
//!
//! | HTTP/2 | written out |
//! | --- | --- |
//! | `:method`, `:path` | request line. For CONNECT, the target is `:authority` |
//! | `:authority`, `host` | one `Host` if one is missing or both are equal; otherwise two, which the parser rejects |
//! | `:scheme` | not written; must be `http` or `https` |
//! | several `cookie` | one, joined by `; ` (RFC 9113 section 8.2.3) |
//! | a body without `content-length` | `Transfer-Encoding: chunked` |
//!
//! The `h2` crate has already reset streams with what cannot be written out, for example a line end in a value, an
//! upper-case name or `connection`. It drops a fragment, and does not pass the scheme on if `:authority` is missing.

use http::{HeaderName, Method, header, request::Parts};

use crate::{
    http1::head::{HeadFault, ReadHead, RequestScanner, read_head},
    request::{Head, HeadLimits},
    syntax::field::write_line,
};

/// Parses a stream's head. `has_body`: the head did not end the stream.
///
/// # Errors
///
/// The fault that the same head has in HTTP/1.1; with the head as written out.
pub(crate) fn read_stream_head(
    parts: &Parts,
    has_body: bool,
    limits: &HeadLimits,
) -> Result<Head, (HeadFault, Vec<u8>)> {
    let mut bytes = Vec::new();
    if let Err(fault) = write_strict_form(parts, has_body, &mut bytes) {
        return Err((fault, bytes));
    }
    let arrived = &bytes[..bytes.len().min(limits.bytes)];
    match RequestScanner::default().scan(arrived, limits) {
        Ok(Some(length)) if length == bytes.len() => {}
        // Impossible, as no part contains a line end. Otherwise the rest would be read as another request.
        Ok(_) => return Err((HeadFault::NotHttp("a line end in the head"), bytes)),
        Err(fault) => return Err((fault, bytes)),
    }
    read_head(bytes, limits).map(|ReadHead { head, .. }| head)
}

fn write_strict_form(parts: &Parts, has_body: bool, out: &mut Vec<u8>) -> Result<(), HeadFault> {
    let uri = &parts.uri;
    let authority = uri
        .authority()
        .map(|authority| authority.as_str().as_bytes());
    let target = if parts.method == Method::CONNECT {
        authority
    } else {
        // A missing path would read as `/`.
        let target = uri.path_and_query().filter(|_| !uri.path().is_empty());
        target.map(|target| target.as_str().as_bytes())
    };
    out.reserve(512);
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.unwrap_or_default());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    write_host(parts, authority, out);
    write_fields(parts, out)?;
    if has_body && !parts.headers.contains_key(header::CONTENT_LENGTH) {
        write_line(out, b"Transfer-Encoding", b"chunked");
    }
    out.extend_from_slice(b"\r\n");
    match uri.scheme_str() {
        None | Some("http" | "https") => Ok(()),
        Some(_) => Err(HeadFault::Target),
    }
}

fn write_host(parts: &Parts, authority: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(authority) = authority {
        write_line(out, b"Host", authority);
    }
    for host in parts.headers.get_all(header::HOST) {
        let host = host.as_bytes();
        if !authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host)) {
            write_line(out, b"Host", host);
        }
    }
}

/// Writes all fields but `host`. Values of the same name follow each other.
fn write_fields(parts: &Parts, out: &mut Vec<u8>) -> Result<(), HeadFault> {
    let mut last: Option<&HeaderName> = None;
    for (name, value) in &parts.headers {
        let value = value.as_bytes();
        // RFC 9113 section 8.2.1. The parser would trim it.
        if value.first().is_some_and(is_blank) || value.last().is_some_and(is_blank) {
            return Err(HeadFault::NotHttp("a value begins or ends with a space"));
        }
        if name == header::COOKIE && last == Some(name) {
            // Over the line end of the crumb before.
            out.truncate(out.len() - 2);
            out.extend_from_slice(b"; ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        } else if name != header::HOST {
            write_line(out, name.as_str().as_bytes(), value);
        }
        last = Some(name);
    }
    Ok(())
}

const fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests;

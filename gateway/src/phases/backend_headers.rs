//! Writes the headers for the backend; the only writer of `X-Gateway-*`. CONTRACT 1 and 9.
//!
//! They are written as lines of a head, so that the client's headers are passed on byte for byte.

use std::io::Write;

use http::{
    HeaderName,
    header::{COOKIE, FORWARDED},
};
use signpost_protocol::{
    header::{
        TRACEPARENT, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO, X_GATEWAY_ACCOUNT_ID,
        X_GATEWAY_ACCOUNT_TYPE, X_GATEWAY_ACCOUNT_USERNAME, X_GATEWAY_APP, X_GATEWAY_APP_ID,
        X_GATEWAY_CLIENT_CERT_SUBJECT, X_GATEWAY_SECRET, X_GATEWAY_VERSION,
        X_GATEWAY_VERSION_SOURCE, X_REQUEST_ID,
    },
    login_cookie::without_login_cookies,
    request_id::RequestId,
};

use super::{admit::Admitted, identify_account::RequestAccount, route::RoutedRequest};
use crate::{
    request::{Head, ids::RequestIds, is_named},
    wire::syntax::field::write_line,
};

/// What the gateway has found out about a request: its application, its route and its account.
#[derive(Clone, Copy)]
pub(crate) struct Identified<'r> {
    /// The application and the route.
    pub routed: &'r RoutedRequest,
    /// The account.
    pub account: &'r RequestAccount,
}

/// Writes the beginning of the head for the backend: request line, `Host`, and the form's length. The other header
/// lines and the empty line follow. It is always HTTP/1.1, also for an HTTP/1.0 client.
pub(crate) fn write_request_line(head: &Head, form: &[u8], out: &mut Vec<u8>) {
    let (line, host) = (head.method_and_target(), head.host());
    out.reserve(line.len() + host.len() + 512);
    out.extend_from_slice(line);
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    out.extend_from_slice(host);
    out.extend_from_slice(b"\r\n");
    // RFC 9110 section 8.6: a POST without a body has `Content-Length: 0`.
    if head.method() == b"POST" {
        out.extend_from_slice(b"Content-Length: ");
        out.extend_from_slice(form.len().to_string().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes the client's fields that pass.
fn write_passed(routed: &RoutedRequest, head: &Head, admitted: &Admitted<'_>, lines: &mut Vec<u8>) {
    // The parser has checked that names and values contain no line ends.
    let hides_logins = admitted.has_cookies && routed.route().backend().name.is_of_route();
    for (name, value) in head.at(&admitted.passed_fields) {
        if hides_logins && is_named(name, &COOKIE) {
            let others = without_login_cookies(value);
            if !others.is_empty() || value.is_empty() {
                write_line(lines, name, &others);
            }
        } else {
            write_line(lines, name, value);
        }
    }
}

/// Writes the header lines for the backend: first those of the client that pass, then the gateway's own.
/// [`write_request_line`] writes `Host` and the form's length.
pub(crate) fn write_backend_headers(
    Identified { routed, account }: Identified<'_>,
    head: &Head,
    admitted: &Admitted<'_>,
    request_id: &RequestId,
    ids: &RequestIds,
    lines: &mut Vec<u8>,
) {
    write_passed(routed, head, admitted, lines);
    let mut own = |name: HeaderName, value: &[u8]| {
        write_line(lines, name.as_str().as_bytes(), value);
    };
    let route = routed.route();
    if let Some(secret) = &route.backend().secret {
        own(X_GATEWAY_SECRET, secret.expose().as_bytes());
    }
    if let Some(ident) = routed.app().and_then(|app| app.ident.as_ref()) {
        own(X_GATEWAY_APP, ident.as_str().as_bytes());
    }
    if let Some(account) = account.account() {
        own(X_GATEWAY_ACCOUNT_ID, account.id.as_bytes());
        own(X_GATEWAY_ACCOUNT_USERNAME, account.username.as_bytes());
        own(X_GATEWAY_ACCOUNT_TYPE, account.kind.as_bytes());
    }
    own(X_GATEWAY_VERSION, route.version.name().as_str().as_bytes());
    own(X_GATEWAY_VERSION_SOURCE, route.source.as_str().as_bytes());
    own(X_REQUEST_ID, request_id.as_bytes());
    match &admitted.traceparent {
        Some(theirs) => own(TRACEPARENT, theirs.as_bytes()),
        None => own(TRACEPARENT, &ids.traceparent(request_id)),
    }
    let origin = &admitted.origin;
    if let Some(subject) = &origin.certificate_subject {
        own(X_GATEWAY_CLIENT_CERT_SUBJECT, subject.as_bytes());
    }
    if let Some(chain) = &origin.forwarded {
        own(FORWARDED, chain.as_bytes());
    }
    own(X_FORWARDED_FOR, origin.forwarded_for.as_bytes());
    own(X_FORWARDED_PROTO, origin.proto.as_bytes());
    for (_, host) in head.at(&[origin.host]) {
        own(X_FORWARDED_HOST, host);
    }
    if let Some(app) = routed.app() {
        // Writing to a Vec cannot fail.
        let _ = write!(lines, "{X_GATEWAY_APP_ID}: {}\r\n", app.id.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{request::BodyLength, wire::syntax::field::Span};

    #[test]
    fn a_head_begins_with_request_line_host_and_length() {
        let head = |text: &str, target: &str| {
            let start = text.find(target).unwrap();
            let host = text.find("Host: ").unwrap() + "Host: ".len();
            let host_end = host + text[host..].find("\r\n").unwrap();
            let target = Span::new(start, start + target.len()).unwrap();
            let host = Span::new(host, host_end).unwrap();
            let bytes = text.as_bytes().to_vec();
            Head::new(bytes, target, host, BodyLength::None, Default::default())
        };
        let mut out = Vec::new();
        let get = head(
            "GET /a?b=%20 HTTP/1.0\r\nHost: h:1\r\nContent-Length: 0\r\n\r\n",
            "/a?b=%20",
        );
        write_request_line(&get, b"", &mut out);
        assert_eq!(out, b"GET /a?b=%20 HTTP/1.1\r\nHost: h:1\r\n");
        out.clear();
        let post = head("POST /p HTTP/1.1\r\nHost: h\r\n\r\n", "/p");
        write_request_line(&post, b"a=1", &mut out);
        assert_eq!(out, b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n");
    }
}

//! Writes the headers for the backend; the only writer of `X-Gateway-*`. CONTRACT 1 and 9.
//!
//! They are written as lines of a head, so that the client's headers are passed on byte for byte.

use std::{io::Write, slice};

use http::{
    HeaderName,
    header::{
        ACCEPT_ENCODING, COOKIE, FORWARDED, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE,
    },
};
use signpost_protocol::{
    header::{
        TRACEPARENT, TRACESTATE, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PREFIX,
        X_FORWARDED_PROTO, X_GATEWAY_ACCOUNT_EMAIL, X_GATEWAY_ACCOUNT_ID, X_GATEWAY_ACCOUNT_NAME,
        X_GATEWAY_ACCOUNT_TYPE, X_GATEWAY_ACCOUNT_USERNAME, X_GATEWAY_APP, X_GATEWAY_APP_ID,
        X_GATEWAY_BRIDGE, X_GATEWAY_CLIENT_CERT_SUBJECT, X_GATEWAY_SECRET, X_GATEWAY_SHADOW,
        X_GATEWAY_SIGNED, X_GATEWAY_VERSION, X_GATEWAY_VERSION_SOURCE, X_REQUEST_ID,
    },
    request_id::RequestId,
    version::Version,
};

use super::{
    admit::Admitted,
    bridge::Bridged,
    origin::Origin,
    route::{Route, RoutedRequest},
};
use crate::{
    config::{AccountRules, Backend, HeaderChange},
    directory::accounts::Account,
    request::{Head, Method, ids::RequestIds, is_named},
    wire::syntax::field::write_line,
};

/// What the gateway has found out about a request: its application, its route and its account.
#[derive(Clone, Copy)]
pub(crate) struct Identified<'r> {
    /// The application and the route.
    pub routed: &'r RoutedRequest,
    /// Where it is sent.
    pub to: To<'r>,
    /// The account, if it has one for this backend.
    pub account: Option<&'r Account>,
    /// What was changed, if the backend is another version's.
    pub bridged: Option<&'r Bridged>,
    /// What was taken off the beginning of the path; empty without a prefix.
    pub prefix: &'r str,
}

/// Where a request is sent.
#[derive(Clone, Copy)]
pub(crate) struct To<'r> {
    /// The backend.
    pub backend: &'r Backend,
    /// The version whose backend it is.
    pub version: &'r Version,
    /// The version whose request it is a copy of, if it is a copy.
    pub copy_of: Option<&'r Version>,
}

impl<'r> To<'r> {
    /// Where a route leads.
    pub(crate) fn route(route: &'r Route) -> Self {
        Self {
            backend: route.backend(),
            version: route.serving(),
            copy_of: None,
        }
    }
}

/// Writes the beginning of the head for the backend: request line, `Host`, and the body's length. The other header
/// lines and the empty line follow. It is always HTTP/1.1, also for an HTTP/1.0 client. `target`: the changed one.
pub(crate) fn write_request_line(
    head: &Head,
    target: Option<&str>,
    (method, length): (Method, u64),
    out: &mut Vec<u8>,
) {
    let (line, host) = (head.method_and_target(), head.host());
    // One allocation: the lines that follow usually fit, too.
    out.reserve(line.len() + host.len() + 512);
    match target {
        None => out.extend_from_slice(line),
        Some(target) => {
            out.extend_from_slice(head.method());
            out.push(b' ');
            out.extend_from_slice(target.as_bytes());
        }
    }
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    out.extend_from_slice(host);
    out.extend_from_slice(b"\r\n");
    // RFC 9110 section 8.6: a POST without a body has `Content-Length: 0`.
    if length > 0 || method.anticipates_body() {
        out.extend_from_slice(b"Content-Length: ");
        out.extend_from_slice(length.to_string().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

static STATE_OF_TRACE: HeaderName = TRACESTATE;

/// Fields that ask for another form of the response than the whole body as it is: a bridge could not change that. Tags and
/// dates belong to bodies before or after a change, so a response by them could leave a client with another one.
static OF_FORM: [HeaderName; 5] = [
    ACCEPT_ENCODING,
    RANGE,
    IF_RANGE,
    IF_NONE_MATCH,
    IF_MODIFIED_SINCE,
];

/// Writes the client's fields that pass. Without the fields of [`OF_FORM`], if the response may have to be changed.
fn write_passed(
    to: To<'_>,
    bridged: Option<&Bridged>,
    head: &Head,
    admitted: &Admitted<'_>,
    lines: &mut Vec<u8>,
) {
    // The parser has checked that names and values contain no line ends.
    let has_own_cookies = admitted.has_own_cookies;
    let withheld = admitted.withheld_from(to.backend.account);
    let changes_response = bridged.is_some_and(|bridged| bridged.changes_response);
    let changed = bridged.map_or(&[][..], |bridged| &bridged.headers);
    if changed.is_empty()
        && to.copy_of.is_none()
        && !changes_response
        && !has_own_cookies
        && withheld.is_none()
    {
        // Most requests: nothing is looked at.
        let fields = head.at(&admitted.passed_fields);
        return fields.for_each(|(name, value)| write_line(lines, name, value));
    }
    let indices = admitted.passed_fields.iter();
    let indices = indices.filter(|index| Some(**index) != withheld);
    for (name, value) in indices.flat_map(|index| head.at(slice::from_ref(index))) {
        if to.copy_of.is_some() && is_named(name, &STATE_OF_TRACE) {
            continue;
        }
        if changed.iter().any(|change| is_named(name, &change.name)) {
            continue;
        }
        if changes_response && OF_FORM.iter().any(|known| is_named(name, known)) {
            continue;
        }
        if has_own_cookies && is_named(name, &COOKIE) {
            let others = to.backend.name.kind().received(value);
            // A `Cookie` that had only Signpost's own is left out. One that was empty passes, as every field that is
            // not changed.
            if !others.is_empty() || value.is_empty() {
                write_line(lines, name, &others);
            }
        } else {
            write_line(lines, name, value);
        }
    }
}

/// Writes the headers that steps set. Of several steps for a header, the last one counts.
fn write_set(changed: &[HeaderChange], lines: &mut Vec<u8>) {
    for (at, change) in changed.iter().enumerate() {
        let mut later = changed[at + 1..].iter();
        let is_last = later.all(|later| later.name != change.name);
        if let Some(value) = change.value.as_ref().filter(|_| is_last) {
            write_line(lines, change.name.as_str().as_bytes(), value.as_bytes());
        }
    }
}

/// Writes the header lines for the backend: first the client's that pass, then the gateway's own.
/// [`write_request_line`] writes `Host` and the form's length.
pub(crate) fn write_backend_headers(
    Identified {
        routed,
        to,
        account,
        bridged,
        prefix,
    }: Identified<'_>,
    head: &Head,
    admitted: &Admitted<'_>,
    request_id: &RequestId,
    ids: &RequestIds,
    lines: &mut Vec<u8>,
) {
    let changes_response = bridged.is_some_and(|bridged| bridged.changes_response);
    write_passed(to, bridged, head, admitted, lines);
    write_set(bridged.map_or(&[], |bridged| &bridged.headers), lines);
    if changes_response {
        write_line(lines, ACCEPT_ENCODING.as_str().as_bytes(), b"identity");
    }
    let mut own = |name: HeaderName, value: &[u8]| {
        write_line(lines, name.as_str().as_bytes(), value);
    };
    // A client cannot send these names: `admit` has removed every `X-Gateway-*`, and what looks like one.
    if let Some(secret) = &to.backend.secret {
        own(X_GATEWAY_SECRET, secret.expose().as_bytes());
    }
    if let Some(ident) = routed.app().and_then(|app| app.ident.as_ref()) {
        own(X_GATEWAY_APP, ident.as_str().as_bytes());
    }
    own(X_GATEWAY_VERSION, to.version.as_str().as_bytes());
    if let Some(bridged) = bridged {
        own(X_GATEWAY_BRIDGE, bridged.from.as_str().as_bytes());
    }
    // The backend could not tell otherwise: a bridged request has lost `time` and `sign`, too.
    let hides_sign = bridged.is_some() || routed.hides_sign();
    if hides_sign && routed.verified().signed_app().is_some() {
        own(X_GATEWAY_SIGNED, b"true");
    }
    if let Some(version) = to.copy_of {
        own(X_GATEWAY_SHADOW, version.as_str().as_bytes());
    }
    let source = routed.route().source;
    own(X_GATEWAY_VERSION_SOURCE, source.as_str().as_bytes());
    own(X_REQUEST_ID, request_id.as_bytes());
    match (&admitted.traceparent, to.copy_of) {
        (Some(theirs), None) => own(TRACEPARENT, theirs.as_bytes()),
        (None, None) => own(TRACEPARENT, &ids.traceparent(request_id)),
        // The copy is no part of the trace of the request.
        (_, Some(_)) => own(TRACEPARENT, &ids.traceparent(&ids.next())),
    }
    if !prefix.is_empty() {
        own(X_FORWARDED_PREFIX, prefix.as_bytes());
    }
    write_origin(&admitted.origin, head, lines);
    if let Some(account) = account {
        write_account(account, to.backend.account, lines);
    }
    if let Some(app) = routed.app() {
        // Writing to a Vec cannot fail.
        let _ = write!(lines, "{X_GATEWAY_APP_ID}: {}\r\n", app.id.get());
    }
}

/// Writes where the request comes from: the client's certificate, the addresses that it passed, its scheme and host.
fn write_origin(origin: &Origin, head: &Head, lines: &mut Vec<u8>) {
    let mut own = |name: HeaderName, value: &[u8]| {
        write_line(lines, name.as_str().as_bytes(), value);
    };
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
}

/// Writes the lines of a verified account, for a backend with these rules.
pub(crate) fn write_account(account: &Account, rules: AccountRules, lines: &mut Vec<u8>) {
    let asked = |_: &&str| rules.passes_profile;
    for (name, value) in [
        (X_GATEWAY_ACCOUNT_ID, Some(&*account.id)),
        (X_GATEWAY_ACCOUNT_USERNAME, Some(&*account.username)),
        (X_GATEWAY_ACCOUNT_TYPE, Some(&*account.provider)),
        (
            X_GATEWAY_ACCOUNT_NAME,
            account.name.as_deref().filter(asked),
        ),
        (
            X_GATEWAY_ACCOUNT_EMAIL,
            account.email.as_deref().filter(asked),
        ),
    ] {
        if let Some(value) = value {
            write_line(lines, name.as_str().as_bytes(), value.as_bytes());
        }
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
            let target = (target, Default::default());
            let host = Span::new(host, host_end).unwrap();
            let bytes = text.as_bytes().to_vec();
            Head::new(bytes, target, host, BodyLength::None, Default::default())
        };
        let mut out = Vec::new();
        let get = head(
            "GET /a?b=%20 HTTP/1.0\r\nHost: h:1\r\nContent-Length: 0\r\n\r\n",
            "/a?b=%20",
        );
        write_request_line(&get, None, (Method::Get, 0), &mut out);
        assert_eq!(out, b"GET /a?b=%20 HTTP/1.1\r\nHost: h:1\r\n");
        out.clear();
        let post = head("POST /p HTTP/1.1\r\nHost: h\r\n\r\n", "/p");
        write_request_line(&post, None, (Method::Post, 3), &mut out);
        assert_eq!(out, b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n");
        out.clear();
        write_request_line(&post, Some("/q?c=2"), (Method::Post, 3), &mut out);
        assert!(out.starts_with(b"POST /q?c=2 HTTP/1.1\r\nHost: h\r\n"));
    }
}

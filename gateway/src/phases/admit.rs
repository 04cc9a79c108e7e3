//! Method and headers: what is not admitted goes no further. CONTRACT 1 and 2.
//!
//! One pass over the headers takes out all that later phases need. What the gateway strips counts as absent.

use std::net::IpAddr;

use gateway_protocol::{
    app::AppIdent,
    header::{
        self as names, HeaderNames, TRACEPARENT, X_FORWARDED_FOR, X_FORWARDED_HOST,
        X_FORWARDED_PROTO, X_REQUEST_ID,
    },
    request_id::RequestId,
};
use http::{HeaderName, header};
use ipnet::IpNet;
use smallvec::SmallVec;

use super::origin::{Origin, ProxyHeaders};
use crate::{
    downstream::head::Framing,
    rejection::Rejection,
    request::{Headers, Method, is_named},
};

/// What admission goes by; the same for every request.
#[derive(Debug)]
pub struct Admission {
    /// The convention headers' names.
    pub names: HeaderNames,
    /// Whose proxy headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// `http` or `https`, where no proxy says.
    pub scheme: &'static str,
    /// Most bytes of a body.
    pub largest_body: usize,
}

/// A request whose method, headers and declared body are in order.
#[derive(Debug)]
pub struct Admitted {
    /// GET or POST.
    pub method: Method,
    /// How the body is framed.
    pub framing: Framing,
    /// Whether the client waits for `100 Continue`.
    pub expects_continue: bool,
    /// The application header.
    pub app: AppHeader,
    /// The version header's value; empty where there is none.
    pub version: SmallVec<[u8; 32]>,
    /// The id that a trusted proxy gave.
    pub request_id: Option<RequestId>,
    /// The trace that a trusted proxy is part of.
    pub traceparent: Option<String>,
    /// Who the client is, as far as trusted proxies tell. Taken out when it goes into the context.
    pub origin: Option<Origin>,
}

/// The application header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppHeader {
    /// There is none.
    Absent,
    /// It has the form of an ident.
    Ident(AppIdent),
    /// It has not, so no application has it.
    Malformed,
}

/// Admits a request, or says why not.
///
/// # Errors
///
/// In this order: the method, a convention header twice, a GET with a body, the content type, the declared
/// length.
pub fn admit(
    method: &[u8],
    headers: &impl Headers,
    framing: Framing,
    peer: IpAddr,
    rules: &Admission,
) -> Result<Admitted, Rejection> {
    let method = match method {
        b"GET" => Method::Get,
        b"POST" => Method::Post,
        _ => return Err(Rejection::MethodNotAllowed),
    };
    let found = Found::gather(headers, rules)?;
    check_body(method, framing, &found, rules)?;
    let is_trusted = rules
        .trusted_proxies
        .iter()
        .any(|proxies| proxies.contains(&peer.to_canonical()));
    let trusted = |value| text(value).filter(|_| is_trusted);
    let app = match found.app.map(AppIdent::try_from) {
        None => AppHeader::Absent,
        Some(Ok(ident)) => AppHeader::Ident(ident),
        Some(Err(_)) => AppHeader::Malformed,
    };
    Ok(Admitted {
        method,
        framing,
        expects_continue: found.expects_continue,
        app,
        version: SmallVec::from_slice(found.version.unwrap_or_default()),
        request_id: trusted(found.request_id).and_then(|id| id.parse().ok()),
        traceparent: trusted(found.traceparent)
            .filter(|given| is_traceparent(given))
            .map(str::to_owned),
        origin: Some(Origin::new(
            peer,
            is_trusted.then_some(&found.proxy),
            found.host,
            rules,
        )),
    })
}

fn text(value: Option<&[u8]>) -> Option<&str> {
    value.and_then(|value| std::str::from_utf8(value).ok())
}

/// `version-trace_id-parent_id-flags` of W3C Trace Context, as level 1 has it.
fn is_traceparent(given: &str) -> bool {
    let is_hex = |part: &str, length| {
        part.len() == length
            && part
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let parts: SmallVec<[&str; 5]> = given.split('-').take(5).collect();
    matches!(parts[..], [version, trace, parent, flags]
        if is_hex(version, 2) && is_hex(trace, 32) && is_hex(parent, 16) && is_hex(flags, 2))
}

fn check_body(
    method: Method,
    framing: Framing,
    found: &Found<'_>,
    rules: &Admission,
) -> Result<(), Rejection> {
    match (method, framing) {
        (_, Framing::None) => Ok(()),
        (Method::Get, _) => Err(Rejection::BodyNotAllowed),
        (Method::Post, _) if !found.is_plain_form() => Err(Rejection::ContentTypeUnsupported),
        (Method::Post, Framing::Length(length)) if length > rules.largest_body as u64 => {
            Err(Rejection::BodyTooLarge {
                limit: rules.largest_body,
            })
        }
        (Method::Post, _) => Ok(()),
    }
}

/// What one pass over the headers finds.
#[derive(Default)]
struct Found<'a> {
    app: Option<&'a [u8]>,
    version: Option<&'a [u8]>,
    language: Option<&'a [u8]>,
    authorization: Option<&'a [u8]>,
    host: &'a [u8],
    content_type: Option<&'a [u8]>,
    content_types: u32,
    has_content_encoding: bool,
    expects_continue: bool,
    request_id: Option<&'a [u8]>,
    traceparent: Option<&'a [u8]>,
    proxy: ProxyHeaders<'a>,
}

impl<'a> Found<'a> {
    fn gather(headers: &'a impl Headers, rules: &Admission) -> Result<Self, Rejection> {
        let mut found = Self::default();
        let names = &rules.names;
        let nominated = Nominated::from_headers(headers);
        for (name, value) in headers.each() {
            let is = |known: &HeaderName| is_named(name, known);
            let take = |known: &HeaderName, place: &mut Option<&'a [u8]>| {
                if !is(known) {
                    return Ok(false);
                }
                if nominated.includes(name) {
                    return Ok(true);
                }
                match place.replace(value.trim_ascii()) {
                    None => Ok(true),
                    Some(_) => Err(Rejection::HeaderDuplicated {
                        name: known.to_string(),
                    }),
                }
            };
            if take(names.app(), &mut found.app)?
                || take(names.version(), &mut found.version)?
                || take(names.language(), &mut found.language)?
                || take(names.authorization(), &mut found.authorization)?
            {
                continue;
            }
            if is(&header::HOST) {
                found.host = value.trim_ascii();
            } else if is(&header::EXPECT) {
                found.expects_continue = value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
            } else if is(&header::CONTENT_TYPE) {
                found.content_type = Some(value.trim_ascii());
                found.content_types += 1;
            } else if is(&header::CONTENT_ENCODING) {
                found.has_content_encoding = true;
            } else if is(&TRACEPARENT) {
                found.traceparent = Some(value.trim_ascii());
            } else if is(&X_REQUEST_ID) {
                found.request_id = Some(value.trim_ascii());
            } else if is(&X_FORWARDED_FOR) {
                found.proxy.forwarded_for.push(value);
            } else if is(&X_FORWARDED_HOST) {
                found.proxy.host = Some(value.trim_ascii());
            } else if is(&X_FORWARDED_PROTO) {
                found.proxy.proto = Some(value.trim_ascii());
            }
        }
        Ok(found)
    }

    /// `application/x-www-form-urlencoded`, at most with `charset=utf-8`, and nothing around it.
    fn is_plain_form(&self) -> bool {
        let Some(content_type) = self.content_type else {
            return false;
        };
        let mut parts = content_type
            .split(|&byte| byte == b';')
            .map(<[u8]>::trim_ascii);
        let is_form = parts.next().is_some_and(|media_type| {
            media_type.eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
        });
        let is_utf8 = |part: &[u8]| {
            part.eq_ignore_ascii_case(b"charset=utf-8")
                || part.eq_ignore_ascii_case(b"charset=\"utf-8\"")
        };
        is_form && self.content_types == 1 && parts.all(is_utf8) && !self.has_content_encoding
    }
}

/// The headers that `Connection` names: they are of this connection only, and count as absent.
struct Nominated<'a>(SmallVec<[&'a [u8]; 4]>);

impl<'a> Nominated<'a> {
    fn from_headers(headers: &'a impl Headers) -> Self {
        let lines = headers
            .each()
            .filter(|(name, _)| is_named(name, &header::CONNECTION));
        Self(
            lines
                .flat_map(|(_, value)| connection_options(value))
                .collect(),
        )
    }

    fn includes(&self, name: &[u8]) -> bool {
        self.0.iter().any(|named| named.eq_ignore_ascii_case(name))
    }
}

/// Whether `Connection` names a header, which then counts as absent.
#[must_use]
pub fn nominates(headers: &impl Headers, name: &HeaderName) -> bool {
    Nominated::from_headers(headers).includes(name.as_str().as_bytes())
}

/// The names in a `Connection` header's value.
pub(super) fn connection_options(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty())
}

/// Whether a client's header of this name (in lower case) never reaches a backend. CONTRACT 1.
///
/// What `Connection` names goes too; that is for the caller to see to.
#[must_use]
pub fn is_stripped(name: &str, conventions: &HeaderNames, from_trusted_proxy: bool) -> bool {
    let is_convention = |name: &str| {
        conventions
            .of_requests()
            .iter()
            .any(|known| known.as_str() == name)
    };
    let is_internal = |name: &str| name.starts_with(names::INTERNAL_PREFIX);
    let is_of_proxies = |name: &str| {
        name.starts_with(names::FORWARDED_PREFIX) || names::PROXY_HEADERS.contains(&name)
    };
    if name.contains('_') {
        // Some servers read `_` as `-`: the look-alike of a name that means something must not pass.
        let read = name.replace('_', "-");
        return is_convention(&read)
            || is_internal(&read)
            || is_of_proxies(&read)
            || names::OVERRIDE_HEADERS.contains(&read.as_str())
            || names::FRAMING_HEADERS.contains(&read.as_str());
    }
    is_internal(name)
        || names::HOP_BY_HOP_HEADERS.contains(&name)
        || names::OVERRIDE_HEADERS.contains(&name)
        || (!from_trusted_proxy && is_of_proxies(name))
}

#[cfg(test)]
mod tests;

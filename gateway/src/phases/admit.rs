//! Method and headers: what is not admitted goes no further. CONTRACT 1 and 2.
//!
//! One pass over the headers takes out all that later phases need. What the gateway strips counts as absent.

use std::sync::Arc;

use gateway_protocol::{
    app::AppIdent,
    form::BodyType,
    header::{HeaderNames, HeaderRole},
    request_id::RequestId,
};
use http::{HeaderName, HeaderValue};
use ipnet::IpNet;
use smallvec::SmallVec;

use super::origin::{Origin, Peer, ProxyHeaders};
use crate::{
    rejection::Rejection,
    request::{BodyLength, HeadLimits, Headers, Method},
    syntax::field::Nominated,
};

/// Rules for [`admit`]; the same for every request.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The convention headers' names.
    pub names: Arc<HeaderNames>,
    /// Whose proxy headers are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// `http` or `https`, where no proxy says.
    pub scheme: &'static str,
    /// Most bytes of a body.
    pub largest_body: usize,
    /// How large a head may be.
    pub limits: HeadLimits,
}

/// A request whose method, headers and declared body are in order.
#[derive(Debug)]
pub(crate) struct Admitted<'a> {
    /// GET or POST.
    pub method: Method,
    /// Whether the client waits for `100 Continue`.
    pub expects_continue: bool,
    /// The application header.
    pub app: AppHeader<'a>,
    /// The version header's value; empty where there is none.
    pub version: &'a [u8],
    /// The id that a trusted proxy gave.
    pub request_id: Option<RequestId>,
    /// The trace that a trusted proxy is part of.
    pub traceparent: Option<HeaderValue>,
    /// Who the client is, as far as trusted proxies tell.
    pub origin: Origin,
    /// The headers that go on to the backend as they are, by their place in the head.
    pub passing: Passing,
}

/// Places of headers in a head.
pub(crate) type Passing = SmallVec<[u16; 16]>;

/// The application header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppHeader<'a> {
    /// There is none.
    Absent,
    /// It has the form of an ident.
    Ident(AppIdent),
    /// It has not, so no application has it; as sent.
    Malformed(&'a [u8]),
}

/// Admits a request, or says why not.
///
/// # Errors
///
/// In this order: the method, too many names in `Connection`, a convention header twice, a GET with a body, the content type, the declared
/// length.
pub(crate) fn admit<'a>(
    method: &[u8],
    headers: &'a (impl Headers + ?Sized),
    body: BodyLength,
    peer: &Peer,
    rules: &Admission,
) -> Result<Admitted<'a>, Rejection> {
    let method = match method {
        b"GET" => Method::Get,
        b"POST" => Method::Post,
        _ => return Err(Rejection::MethodNotAllowed),
    };
    let found = Found::gather(headers, peer.is_trusted, rules)?;
    check_body(method, body, &found, rules)?;
    let trusted = |value| text(value).filter(|_| peer.is_trusted);
    let app = found.app.map_or(AppHeader::Absent, |sent| {
        AppIdent::try_from(sent).map_or(AppHeader::Malformed(sent), AppHeader::Ident)
    });
    let traceparent = trusted(found.traceparent)
        .filter(|given| found.traceparents == 1 && is_traceparent(given))
        .and_then(|given| HeaderValue::from_str(given).ok());
    let mut passing = found.passing;
    // W3C Trace Context section 3.3: it means nothing without the `traceparent` that it came with.
    if traceparent.is_some() {
        passing.extend(found.tracestates);
    }
    Ok(Admitted {
        method,
        expects_continue: found.expects_continue,
        app,
        version: found.version.unwrap_or_default(),
        request_id: trusted(found.request_id).and_then(|id| id.parse().ok()),
        traceparent,
        origin: Origin::new(
            peer,
            &found.proxy,
            found.host,
            rules.scheme,
            &rules.trusted_proxies,
        ),
        passing,
    })
}

fn text(value: Option<&[u8]>) -> Option<&str> {
    value.and_then(|value| std::str::from_utf8(value).ok())
}

/// `version-trace_id-parent_id-flags` of W3C Trace Context section 3.2, as level 1 has it: version `ff` and ids of all
/// zeros are invalid.
fn is_traceparent(given: &str) -> bool {
    let is_hex = |part: &str, length| {
        part.len() == length
            && part
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let parts: SmallVec<[&str; 5]> = given.split('-').take(5).collect();
    let is_id = |part: &str, length| is_hex(part, length) && part.bytes().any(|byte| byte != b'0');
    matches!(parts[..], [version, trace, parent, flags]
        if is_hex(version, 2) && version != "ff" && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2))
}

fn check_body(
    method: Method,
    body: BodyLength,
    found: &Found<'_>,
    rules: &Admission,
) -> Result<(), Rejection> {
    match (method, body) {
        (_, BodyLength::None) => Ok(()),
        (Method::Get, _) => Err(Rejection::BodyNotAllowed),
        (Method::Post, _) if !found.body_type.is_form() => Err(Rejection::ContentTypeUnsupported),
        (Method::Post, BodyLength::Known(length)) if length > rules.largest_body as u64 => {
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
    host: u16,
    body_type: BodyType<'a>,
    expects_continue: bool,
    request_id: Option<&'a [u8]>,
    traceparent: Option<&'a [u8]>,
    traceparents: u32,
    /// The places of `tracestate`, if it could pass.
    tracestates: SmallVec<[u16; 1]>,
    proxy: ProxyHeaders<'a>,
    passing: Passing,
}

impl<'a> Found<'a> {
    fn gather(
        headers: &'a (impl Headers + ?Sized),
        is_from_trusted_proxy: bool,
        rules: &Admission,
    ) -> Result<Self, Rejection> {
        let mut found = Self::default();
        let nominated = Nominated::from_fields(headers.each());
        if nominated.is_too_many() {
            let HeadLimits { bytes, headers, .. } = rules.limits;
            return Err(Rejection::HeadTooLarge { bytes, headers });
        }
        for (place, (name, value)) in headers.each().enumerate() {
            let role = rules.names.role_of(name);
            let is_nominated = nominated.includes(name) && !is_essential(role);
            if !(is_nominated && is_absent_if_nominated(role)) {
                found.take(role, place, value, &rules.names)?;
            }
            if is_nominated {
                continue;
            }
            // A head has no more bytes than that.
            let place = u16::try_from(place).ok();
            if role.passes(is_from_trusted_proxy) {
                found.passing.extend(place);
            } else if role == HeaderRole::Tracestate {
                found.tracestates.extend(place);
            }
        }
        Ok(found)
    }

    fn take(
        &mut self,
        role: HeaderRole,
        place: usize,
        value: &'a [u8],
        names: &HeaderNames,
    ) -> Result<(), Rejection> {
        let once = |known: &HeaderName, found: &mut Option<&'a [u8]>| match found.replace(value) {
            None => Ok(()),
            Some(_) => Err(Rejection::HeaderDuplicated {
                name: known.to_string(),
            }),
        };
        match role {
            HeaderRole::App => once(names.app(), &mut self.app)?,
            HeaderRole::Version => once(names.version(), &mut self.version)?,
            HeaderRole::Language => once(names.language(), &mut self.language)?,
            HeaderRole::Authorization => once(names.authorization(), &mut self.authorization)?,
            // A head has no more bytes than that.
            HeaderRole::Host => self.host = u16::try_from(place).unwrap_or_default(),
            HeaderRole::Expect => {
                self.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
            HeaderRole::ContentType => self.body_type.note_content_type(value),
            HeaderRole::ContentEncoding => self.body_type.note_content_encoding(),
            HeaderRole::Traceparent => {
                self.traceparent = Some(value);
                self.traceparents += 1;
            }
            HeaderRole::RequestId => self.request_id = Some(value),
            HeaderRole::ForwardedFor => self.proxy.forwarded_for.push(value),
            HeaderRole::Forwarded => self.proxy.forwarded.push(value),
            HeaderRole::ForwardedHost => self.proxy.host = u16::try_from(place).ok(),
            HeaderRole::ForwardedProto => self.proxy.proto = Some(value),
            HeaderRole::ContentLength
            | HeaderRole::Connection
            | HeaderRole::Tracestate
            | HeaderRole::OfProxies
            | HeaderRole::Barred
            | HeaderRole::Ordinary => {}
        }
        Ok(())
    }
}

/// Whether `Connection` names a header, which then counts as absent.
#[must_use]
pub(crate) fn nominates(headers: &(impl Headers + ?Sized), name: &HeaderName) -> bool {
    Nominated::from_fields(headers.each()).includes(name.as_str().as_bytes())
}

/// A header that `Connection` names counts as absent if nothing but what it says hangs on it.
fn is_absent_if_nominated(role: HeaderRole) -> bool {
    matches!(
        role,
        HeaderRole::App
            | HeaderRole::Version
            | HeaderRole::Language
            | HeaderRole::Authorization
            | HeaderRole::Forwarded
    )
}

/// These say where a request goes and what its body is, whatever `Connection` says: the body is verified as that.
fn is_essential(role: HeaderRole) -> bool {
    matches!(
        role,
        HeaderRole::Host | HeaderRole::ContentType | HeaderRole::ContentLength
    )
}

#[cfg(test)]
mod tests;

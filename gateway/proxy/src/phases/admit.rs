//! Checks method, headers and declared body. CONTRACT 1 and 2.
//!
//! One pass over the headers collects what later phases need. Headers that the gateway strips count as absent.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use ipnet::IpNet;
use signpost_kit::trace::context::TraceContext;
use signpost_protocol::{
    app::AppIdent,
    cookies::has_own_cookie,
    form::BodyType,
    header::{HeaderNames, HeaderRole},
    request_id::RequestId,
};
use smallvec::SmallVec;

use super::origin::{Origin, Peer, ProxyHeaders};
use crate::{
    config::{AccountRules, Bodies, Config, RequestRules},
    request::{BodyLength, HeadLimits, Headers, Method, Methods, rejection::Rejection},
    wire::syntax::field::{ConnectionOptions, connection_options},
};

/// Rules for [`admit`]; built once for each configuration.
#[derive(Debug)]
pub struct AdmissionRules {
    /// The convention headers' names.
    pub names: Arc<HeaderNames>,
    /// Networks of proxies whose headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// `http` or `https`, unless a trusted proxy sets it.
    pub scheme: &'static str,
    /// Limit of a form, in bytes.
    pub max_form: usize,
    /// The methods that any version accepts.
    pub methods: Methods,
    /// Whether versions and routes differ in the bodies that they take.
    pub varies: bool,
    /// Limits of a head.
    pub limits: HeadLimits,
}

impl AdmissionRules {
    /// The rules of a configuration, whose names are `names`.
    pub fn new(config: &Config, names: &Arc<HeaderNames>) -> Self {
        let is_https = config.public_url.is_https();
        Self {
            names: Arc::clone(names),
            trusted_proxies: config.trusted_proxies.clone(),
            scheme: if is_https { "https" } else { "http" },
            max_form: config.limits.body,
            methods: config.versions.methods,
            varies: config.versions.has_own_rules,
            limits: config.limits.head,
        }
    }
}

/// A request whose method, headers and declared body are valid.
#[derive(Debug)]
pub(crate) struct Admitted<'a> {
    /// Its method.
    pub method: Method,
    /// Whether the client expects `100 Continue`.
    pub expects_continue: bool,
    /// Its body, by its head.
    pub body: BodyKind<'a>,
    /// What a signature in headers consists of, if there is any of it: most requests have no room for it.
    signed: Option<Box<SignFields<'a>>>,
    /// Whether the client asks for a protocol that is not served.
    pub asks_upgrade: bool,
    /// The application header.
    pub app: AppHeader<'a>,
    /// The version header's value; empty if missing.
    pub version: &'a [u8],
    /// The index in the head of the user's credential, which is not checked yet.
    pub authorization: Option<u16>,
    /// The request id of a trusted proxy.
    pub request_id: Option<RequestId>,
    /// The `traceparent` for the backend: a trusted proxy's, or the one of the backend's span; `None` if the gateway
    /// begins a trace that is not recorded.
    pub traceparent: Option<HeaderValue>,
    /// Whether it has one of Signpost's own cookies.
    pub has_own_cookies: bool,
    /// The client's address, scheme and host, as reported by trusted proxies.
    pub origin: Origin,
    /// The headers that are passed to backends unchanged, by their index in the head; also the credential, which some backends
    /// do not get.
    pub passed_fields: PassedFields,
}

impl<'a> Admitted<'a> {
    /// What a signature in headers consists of.
    pub(crate) fn signed(&self) -> SignFields<'a> {
        self.signed.as_deref().copied().unwrap_or_default()
    }

    /// The index in the head of the user's credential, if a backend with these rules does not get it.
    pub(crate) fn withheld_from(&self, rules: AccountRules) -> Option<u16> {
        self.authorization.filter(|_| !rules.passes_authorization)
    }
}

/// A request's body, as its head announces it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyKind<'a> {
    /// None.
    None,
    /// Of unknown length, and rejected if it has a byte.
    Empty,
    /// A form.
    Form,
    /// Another one, of this many bytes at most.
    Other(u64),
    /// What its version and route take is not known yet.
    Unjudged(BodyType<'a>),
}

impl BodyKind<'_> {
    /// Whether it must turn out to be empty.
    pub(crate) const fn must_be_empty(self) -> bool {
        matches!(self, Self::Empty)
    }
}

/// The headers of a signature, as sent.
#[derive(Clone, Copy, Default)]
pub(crate) struct SignFields<'a> {
    /// The time.
    pub time: Option<&'a [u8]>,
    /// The signature.
    pub sign: Option<&'a [u8]>,
    /// The nonce.
    pub nonce: Option<&'a [u8]>,
}

// A signature is valid for a while.
impl std::fmt::Debug for SignFields<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SignFields(…)")
    }
}

impl SignFields<'_> {
    /// Whether there is neither a time nor a signature.
    pub(crate) const fn are_absent(&self) -> bool {
        self.time.is_none() && self.sign.is_none()
    }
}

/// Indices of the headers that are passed to the backend.
pub(crate) type PassedFields = SmallVec<[u16; 16]>;

/// The application header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppHeader<'a> {
    /// It is missing.
    Absent,
    /// It has the form of an ident.
    Ident(AppIdent),
    /// It does not have the form of an ident, so no application has it; as sent.
    Malformed(&'a [u8]),
}

/// Admits or rejects a request.
///
/// # Errors
///
/// In this order: the method, too many names in `Connection`, a duplicate convention header, a GET with a body, the
/// content type, the declared length.
pub(crate) fn admit<'a>(
    method: &[u8],
    headers: &'a (impl Headers + ?Sized),
    body: BodyLength,
    peer: &Peer,
    rules: &AdmissionRules,
) -> Result<Admitted<'a>, Rejection> {
    let method = Method::from_bytes(method).filter(|method| rules.methods.has(*method));
    let method = method.ok_or(Rejection::MethodNotAllowed {
        allowed: rules.methods,
        is_of_path: false,
    })?;
    let collected = CollectedHeaders::gather(headers, peer.is_trusted, rules)?;
    let declared = (body, collected.expects_continue);
    let body = match body {
        // Its version and route decide.
        BodyLength::Known(_) | BodyLength::Unknown if rules.varies && !method.is_safe() => {
            BodyKind::Unjudged(collected.body_type)
        }
        _ => check_body(
            method,
            declared,
            collected.body_type,
            (&RequestRules::USUAL, rules.max_form),
        )?,
    };
    // From anyone else these are claims: a chosen id could imitate another request's in the logs.
    let trusted = |value| text(value).filter(|_| peer.is_trusted);
    let app = collected.app.map_or(AppHeader::Absent, |sent| {
        AppIdent::try_from(sent).map_or(AppHeader::Malformed(sent), AppHeader::Ident)
    });
    let traceparent = collected.traceparent;
    // Of two, each reader could follow another one: the gateway then begins a trace of its own.
    let traceparent = traceparent.filter(|_| peer.is_trusted && collected.traceparents == 1);
    let traceparent = traceparent.and_then(known_traceparent);
    let mut passed_fields = collected.passed_fields;
    // W3C Trace Context section 3.3: `tracestate` is meaningless without its `traceparent`.
    if traceparent.is_some() {
        passed_fields.extend(collected.tracestates);
    }
    Ok(Admitted {
        method,
        expects_continue: collected.expects_continue,
        body,
        signed: collected.signed,
        asks_upgrade: collected.asks_upgrade,
        app,
        version: collected.version.unwrap_or_default(),
        authorization: (collected.authorization).map(|_| collected.authorization_index),
        request_id: trusted(collected.request_id).and_then(|id| id.parse().ok()),
        traceparent,
        has_own_cookies: collected.has_own_cookies,
        origin: Origin::new(
            peer,
            &collected.proxy,
            collected.host,
            rules.scheme,
            &rules.trusted_proxies,
        ),
        passed_fields,
    })
}

/// A proxy's `traceparent`, as this version of the standard knows it: W3C Trace Context section 4.3.
fn known_traceparent(given: &[u8]) -> Option<HeaderValue> {
    let context = TraceContext::parse(given)?;
    // Of a later version, only what this one has is known.
    let is_known = given.starts_with(b"00");
    let known = context.to_header();
    HeaderValue::from_bytes(if is_known { given } else { &known }).ok()
}

fn text(value: Option<&[u8]>) -> Option<&str> {
    value.and_then(|value| std::str::from_utf8(value).ok())
}

/// Why the bytes of a body are rejected.
pub(crate) const fn refused_body(method: Method, bodies: Bodies) -> Rejection {
    if method.is_safe() {
        return Rejection::BodyNotAllowed;
    }
    let beside = match bodies {
        Bodies::Form => None,
        Bodies::Json | Bodies::Any => Some("application/json"),
    };
    Rejection::ContentTypeUnsupported { beside }
}

/// Checks the declared body: its length, and whether the client waits for a `100 Continue`. Who does has bytes (RFC 9110
/// section 10.1.1). No bytes need no type.
pub(crate) fn check_body<'a>(
    method: Method,
    (body, expects_continue): (BodyLength, bool),
    body_type: BodyType<'a>,
    (rules, max_form): (&RequestRules, usize),
) -> Result<BodyKind<'a>, Rejection> {
    let takes_other = match rules.bodies {
        Bodies::Form => false,
        Bodies::Json => body_type.is_json(),
        Bodies::Any => !body_type.is_ambiguous(),
    };
    let (kind, limit) = if method.is_safe() || !(body_type.is_form() || takes_other) {
        return match body {
            BodyLength::None => Ok(BodyKind::None),
            // Only its bytes tell whether there is a body: some clients announce chunks and send none.
            BodyLength::Unknown if !expects_continue => Ok(BodyKind::Empty),
            _ => Err(refused_body(method, rules.bodies)),
        };
    } else if body_type.is_form() {
        (BodyKind::Form, max_form as u64)
    } else {
        (BodyKind::Other(rules.max_body), rules.max_body)
    };
    match body {
        BodyLength::None => Ok(BodyKind::None),
        BodyLength::Known(length) if length > limit => Err(Rejection::BodyTooLarge {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        }),
        _ => Ok(kind),
    }
}

/// The headers that phases need, collected in one pass.
#[derive(Default)]
struct CollectedHeaders<'a> {
    app: Option<&'a [u8]>,
    version: Option<&'a [u8]>,
    language: Option<&'a [u8]>,
    signed: Option<Box<SignFields<'a>>>,
    authorization: Option<&'a [u8]>,
    authorization_index: u16,
    host: u16,
    body_type: BodyType<'a>,
    expects_continue: bool,
    request_id: Option<&'a [u8]>,
    traceparent: Option<&'a [u8]>,
    traceparents: u32,
    has_own_cookies: bool,
    asks_upgrade: bool,
    /// The indices of `tracestate` headers that could pass.
    tracestates: SmallVec<[u16; 1]>,
    proxy: ProxyHeaders<'a>,
    passed_fields: PassedFields,
}

impl<'a> CollectedHeaders<'a> {
    fn gather(
        headers: &'a (impl Headers + ?Sized),
        is_from_trusted_proxy: bool,
        rules: &AdmissionRules,
    ) -> Result<Self, Rejection> {
        let mut collected = Self::default();
        // Before the other fields: `Connection` may stand behind those that it names.
        let nominated = ConnectionOptions::from_fields(headers.each());
        if nominated.is_too_many() {
            let HeadLimits { bytes, headers, .. } = rules.limits;
            return Err(Rejection::HeadersTooLarge { bytes, headers });
        }
        for (index, (name, value)) in headers.each().enumerate() {
            let role = rules.names.role_of(name);
            let is_nominated = nominated.includes(name) && !is_essential(role);
            if !(is_nominated && is_absent_if_connection_option(role)) {
                collected.take(role, index, value, &rules.names)?;
            }
            if is_nominated {
                collected.asks_upgrade |= role == HeaderRole::Upgrade && is_other_protocol(value);
                // Hop-by-hop, since `Connection` names it: it ends here. RFC 9110 section 7.6.1.
                continue;
            }
            // Always fits: a head has fewer fields than bytes, at most 65,535.
            let index = u16::try_from(index).ok();
            if role.passes(is_from_trusted_proxy) {
                collected.passed_fields.extend(index);
            } else if role == HeaderRole::Tracestate {
                collected.tracestates.extend(index);
            }
        }
        Ok(collected)
    }

    fn take(
        &mut self,
        role: HeaderRole,
        index: usize,
        value: &'a [u8],
        names: &HeaderNames,
    ) -> Result<(), Rejection> {
        let once = |known: &HeaderName, sent: &mut Option<&'a [u8]>| match sent.replace(value) {
            None => Ok(()),
            Some(_) => Err(Rejection::HeaderDuplicated {
                name: names.spelled(known),
            }),
        };
        match role {
            HeaderRole::App => once(&names.app, &mut self.app)?,
            HeaderRole::Version => once(&names.version, &mut self.version)?,
            HeaderRole::Language => once(&names.language, &mut self.language)?,
            HeaderRole::Time | HeaderRole::Sign | HeaderRole::Nonce => {
                let signed = self.signed.get_or_insert_default();
                let (known, sent) = match role {
                    HeaderRole::Time => (&names.time, &mut signed.time),
                    HeaderRole::Sign => (&names.sign, &mut signed.sign),
                    _ => (&names.nonce, &mut signed.nonce),
                };
                once(known, sent)?;
            }
            HeaderRole::Authorization => {
                once(&names.authorization, &mut self.authorization)?;
                // Always fits, as above.
                self.authorization_index = u16::try_from(index).unwrap_or_default();
            }
            // Always fits, as above.
            HeaderRole::Host => self.host = u16::try_from(index).unwrap_or_default(),
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
            HeaderRole::Cookie => self.has_own_cookies |= has_own_cookie(value),
            HeaderRole::ForwardedFor => self.proxy.forwarded_for.push(value),
            HeaderRole::Forwarded => self.proxy.forwarded.push(value),
            HeaderRole::ForwardedHost => self.proxy.host = u16::try_from(index).ok(),
            HeaderRole::ForwardedProto => self.proxy.proto.push(value),
            HeaderRole::ContentLength
            | HeaderRole::Connection
            | HeaderRole::Tracestate
            | HeaderRole::Upgrade
            | HeaderRole::Proxy
            | HeaderRole::Removed
            | HeaderRole::Ordinary => {}
        }
        Ok(())
    }
}

/// Whether an `Upgrade` asks for another protocol than HTTP and TLS: for these, a client takes a plain response, too.
/// RFC 9110 section 7.8.
fn is_other_protocol(upgrade: &[u8]) -> bool {
    const OFFERS: [&[u8]; 4] = [b"h2c", b"h2", b"http", b"tls"];
    connection_options(upgrade).any(|protocol| {
        let end = protocol.iter().position(|&byte| byte == b'/');
        let name = &protocol[..end.unwrap_or(protocol.len())];
        !OFFERS.iter().any(|offer| name.eq_ignore_ascii_case(offer))
    })
}

/// Whether `Connection` names a header, which then counts as absent.
#[must_use]
pub(crate) fn is_connection_option(headers: &(impl Headers + ?Sized), name: &HeaderName) -> bool {
    ConnectionOptions::from_fields(headers.each()).includes(name.as_str().as_bytes())
}

/// Whether a header counts as absent if `Connection` names it. Nothing but its own meaning depends on it.
fn is_absent_if_connection_option(role: HeaderRole) -> bool {
    matches!(
        role,
        HeaderRole::App
            | HeaderRole::Version
            | HeaderRole::Language
            | HeaderRole::Authorization
            | HeaderRole::Time
            | HeaderRole::Sign
            | HeaderRole::Nonce
            | HeaderRole::Forwarded
    )
}

/// Whether a header is kept even if `Connection` names it: routing and body framing depend on it.
fn is_essential(role: HeaderRole) -> bool {
    matches!(
        role,
        HeaderRole::Host | HeaderRole::ContentType | HeaderRole::ContentLength
    )
}

#[cfg(test)]
mod tests;

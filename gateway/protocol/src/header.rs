//! Header names: the convention headers made from the prefix, and the internal ones. CONTRACT 1.
//!
//! A header name is written here and nowhere else.

use std::{fmt, str::FromStr};

use http::HeaderName;
use smallvec::SmallVec;

/// The gateway's shared secret, so that a backend knows who is calling. CONTRACT 9.
pub const X_GATEWAY_SECRET: HeaderName = HeaderName::from_static("x-gateway-secret");
/// The application's ident; absent in single-application mode.
pub const X_GATEWAY_APP: HeaderName = HeaderName::from_static("x-gateway-app");
/// The application's internal id; 0 in single-application mode; absent on the unsigned way in.
pub const X_GATEWAY_APP_ID: HeaderName = HeaderName::from_static("x-gateway-app-id");
/// The version that the request was routed to.
pub const X_GATEWAY_VERSION: HeaderName = HeaderName::from_static("x-gateway-version");
/// Why that version: a [`VersionSource`](crate::version::VersionSource).
pub const X_GATEWAY_VERSION_SOURCE: HeaderName =
    HeaderName::from_static("x-gateway-version-source");
/// In an answer to the gateway: the [code](crate::problem::ProblemCode) of the problem that the answer carries, for the
/// gateway's access log. Never sent to clients, as all of its family.
pub const X_GATEWAY_PROBLEM: HeaderName = HeaderName::from_static("x-gateway-problem");
/// In an answer to the gateway: the backend refused the gateway itself; the value is [`REFUSED_SECRET`]. CONTRACT 9.
pub const X_GATEWAY_REFUSED: HeaderName = HeaderName::from_static("x-gateway-refused");
/// The value of [`X_GATEWAY_REFUSED`]: the request had no `X-Gateway-Secret`, or a wrong one.
pub const REFUSED_SECRET: &str = "secret";
/// A [`RequestId`](crate::request_id::RequestId).
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Addresses the request came through; the leftmost is the client's, as far as the gateway trusts it.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// `http` or `https`, as the client spoke to the outermost trusted hop.
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// The `Host` that the client asked for.
pub const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// W3C Trace Context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// W3C Trace Context, the vendors' part.
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Every header whose lower-case name starts with this is the gateway's own, in both directions.
pub const INTERNAL_PREFIX: &str = "x-gateway-";

/// Headers that tell where a request came from: kept from a trusted proxy, removed from anybody else. CONTRACT 1.
const PROXY_HEADERS: [&str; 9] = [
    "forwarded",
    "x-forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-real-ip",
    "x-request-id",
    "traceparent",
    "tracestate",
];

/// Starts the rest of the family that [`PROXY_HEADERS`] names members of.
const FORWARDED_PREFIX: &str = "x-forwarded-";

/// Further headers that some proxies and content networks write the client's address into; removed whoever sends them.
///
/// From a trusted proxy, too: one that does not write such a header passes on what its own client sent. The address
/// that counts is in `X-Forwarded-For`, of which the gateway keeps only what trusted proxies wrote.
const CLIENT_ADDRESS_HEADERS: [&str; 22] = [
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "client-ip",
    "cluster-client-ip",
    "fastly-client-ip",
    "forwarded-for",
    "http-client-ip",
    "http-x-forwarded-for",
    "proxy-client-ip",
    "remote-addr",
    "true-client-ip",
    "wl-proxy-client-ip",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-originating-ip",
    "x-proxyuser-ip",
    "x-remote-addr",
    "x-remote-ip",
];

/// Headers by which a client could make a backend see another request than the one that was verified;
/// removed whoever sends them. CONTRACT 1.
const OVERRIDE_HEADERS: [&str; 10] = [
    "x-host",
    "x-http-host-override",
    "x-http-method",
    "x-http-method-override",
    "x-http-path-override",
    "x-method",
    "x-method-override",
    "x-override-method",
    "x-override-uri",
    "x-override-url",
];

/// What families of such headers begin with, and those in which a proxy keeps what it replaced: `X-Original-URL`,
/// `X-Original-Forwarded-For`, `X-Rewrite-URL`, `X-Envoy-Original-Path`. Removed whoever sends them, too.
const OVERRIDE_PREFIXES: [&str; 3] = ["x-original-", "x-rewrite-", "x-envoy-original-"];

/// Headers of one connection only (RFC 9110 section 7.6.1), and those that end at the gateway. CONTRACT 2.
const HOP_BY_HOP_HEADERS: [&str; 11] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "expect",
];

/// What the convention headers begin with: `Acme` in `Acme-X-App`. `[A-Za-z][A-Za-z0-9-]{0,31}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// The prefix as configured, in its own letter case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Prefix {
    type Err = ParsePrefixError;

    fn from_str(prefix: &str) -> Result<Self, Self::Err> {
        let mut bytes = prefix.bytes();
        let starts_well = bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic());
        let goes_on_well = bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if starts_well && goes_on_well && prefix.len() <= 32 {
            Ok(Self(prefix.to_owned()))
        } else {
            Err(ParsePrefixError)
        }
    }
}

/// The prefix is not of the form that header names can be made from.
#[derive(Debug, thiserror::Error)]
#[error("a letter, then up to 31 letters, digits or hyphens")]
pub struct ParsePrefixError;

/// Convention headers whose name was configured rather than derived; `None` derives it.
#[derive(Clone, Debug, Default)]
pub struct HeaderOverrides {
    /// In place of `<prefix>-X-Authorization`.
    pub authorization: Option<HeaderName>,
    /// In place of `<prefix>-X-App`.
    pub app: Option<HeaderName>,
    /// In place of `<prefix>-X-Language`.
    pub language: Option<HeaderName>,
    /// In place of `<prefix>-X-Version`.
    pub version: Option<HeaderName>,
}

/// The convention headers of one installation, built once from prefix and overrides. CONTRACT 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderNames {
    authorization: HeaderName,
    app: HeaderName,
    language: HeaderName,
    version: HeaderName,
    version_source: HeaderName,
    roles: Roles,
}

impl HeaderNames {
    /// Derives every name from `prefix`, but for those that `overrides` gives.
    ///
    /// # Errors
    ///
    /// A name that means something else already, or two of one name.
    pub fn new(prefix: &Prefix, overrides: &HeaderOverrides) -> Result<Self, HeaderNamesError> {
        let name = |given: &Option<HeaderName>, suffix: &str| {
            given.clone().unwrap_or_else(|| derive(prefix, suffix))
        };
        let mut names = Self {
            authorization: name(&overrides.authorization, "Authorization"),
            app: name(&overrides.app, "App"),
            language: name(&overrides.language, "Language"),
            version: name(&overrides.version, "Version"),
            version_source: derive(prefix, "Version-Source"),
            roles: Roles::default(),
        };
        names.check()?;
        names.roles = Roles::new(&names);
        Ok(names)
    }

    fn check(&self) -> Result<(), HeaderNamesError> {
        let by_key = [
            ("authorization", &self.authorization),
            ("app", &self.app),
            ("language", &self.language),
            ("version", &self.version),
        ];
        for (place, (key, name)) in by_key.into_iter().enumerate() {
            let is_twice = by_key[..place].iter().any(|(_, other)| *other == name)
                || *name == self.version_source;
            if is_twice {
                return Err(HeaderNamesError {
                    key,
                    name: name.clone(),
                    why: "another header's name",
                });
            }
            if is_spoken_for(name.as_str()) {
                let why = "a name that HTTP, proxies or the gateway itself use";
                return Err(HeaderNamesError {
                    key,
                    name: name.clone(),
                    why,
                });
            }
        }
        Ok(())
    }

    /// The user's credential.
    #[must_use]
    pub fn authorization(&self) -> &HeaderName {
        &self.authorization
    }

    /// The application's ident.
    #[must_use]
    pub fn app(&self) -> &HeaderName {
        &self.app
    }

    /// The language of texts.
    #[must_use]
    pub fn language(&self) -> &HeaderName {
        &self.language
    }

    /// The version asked for; in an answer, the one that served it.
    #[must_use]
    pub fn version(&self) -> &HeaderName {
        &self.version
    }

    /// In an answer: why that version served it.
    #[must_use]
    pub fn version_source(&self) -> &HeaderName {
        &self.version_source
    }

    /// What a request's header of this name, in any letter case, is to the gateway.
    #[must_use]
    pub fn role_of(&self, name: &[u8]) -> HeaderRole {
        self.roles.of(name)
    }
}

/// What a request's header is to the gateway. CONTRACT 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderRole {
    /// The user's credential.
    Authorization,
    /// The application's ident.
    App,
    /// The language of texts.
    Language,
    /// The version asked for.
    Version,
    /// `Host`; whoever writes the head to the backend says it.
    Host,
    /// `Content-Type`.
    ContentType,
    /// `Content-Length`; whoever writes the head to the backend says it.
    ContentLength,
    /// `Content-Encoding`.
    ContentEncoding,
    /// `Connection`.
    Connection,
    /// `Expect`.
    Expect,
    /// `X-Request-Id`; the gateway writes its own.
    RequestId,
    /// `traceparent`; the gateway writes its own.
    Traceparent,
    /// `tracestate`; passes with a trusted proxy's `traceparent` only.
    Tracestate,
    /// `X-Forwarded-For`; the gateway writes its own.
    ForwardedFor,
    /// `X-Forwarded-Proto`; the gateway writes its own.
    ForwardedProto,
    /// `X-Forwarded-Host`; the gateway writes its own.
    ForwardedHost,
    /// `Forwarded` (RFC 7239); the gateway extends a trusted proxy's.
    Forwarded,
    /// Another one that tells where a request came from: passes from a trusted proxy only.
    OfProxies,
    /// The gateway's own, of one connection, one that overrides what was verified, or a look-alike: never passes.
    Barred,
    /// Any other: passes as it is.
    Ordinary,
}

impl HeaderRole {
    /// Whether a client's header is passed on as it is.
    #[must_use]
    pub fn passes(self, from_trusted_proxy: bool) -> bool {
        match self {
            Self::Authorization
            | Self::App
            | Self::Language
            | Self::Version
            | Self::ContentType
            | Self::ContentEncoding
            | Self::Ordinary => true,
            Self::OfProxies => from_trusted_proxy,
            Self::Host
            | Self::ContentLength
            | Self::Connection
            | Self::Expect
            | Self::RequestId
            | Self::Traceparent
            | Self::Tracestate
            | Self::ForwardedFor
            | Self::ForwardedProto
            | Self::ForwardedHost
            | Self::Forwarded
            | Self::Barred => false,
        }
    }
}

/// The names that have a role, by their length: few share one, so a look-up compares two or three.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Roles {
    by_length: Vec<Vec<(Box<str>, HeaderRole)>>,
}

/// As long as most names are; longer ones cost an allocation.
const USUAL_NAME: usize = 64;

impl Roles {
    fn new(names: &HeaderNames) -> Self {
        let mut roles = Self::default();
        for (name, role) in [
            (names.authorization.as_str(), HeaderRole::Authorization),
            (names.app.as_str(), HeaderRole::App),
            (names.language.as_str(), HeaderRole::Language),
            (names.version.as_str(), HeaderRole::Version),
            ("host", HeaderRole::Host),
            ("content-type", HeaderRole::ContentType),
            ("content-length", HeaderRole::ContentLength),
            ("content-encoding", HeaderRole::ContentEncoding),
            ("connection", HeaderRole::Connection),
            ("expect", HeaderRole::Expect),
            (X_REQUEST_ID.as_str(), HeaderRole::RequestId),
            (TRACEPARENT.as_str(), HeaderRole::Traceparent),
            (TRACESTATE.as_str(), HeaderRole::Tracestate),
            (X_FORWARDED_FOR.as_str(), HeaderRole::ForwardedFor),
            (X_FORWARDED_PROTO.as_str(), HeaderRole::ForwardedProto),
            (X_FORWARDED_HOST.as_str(), HeaderRole::ForwardedHost),
            ("forwarded", HeaderRole::Forwarded),
        ] {
            roles.add(name, role);
        }
        // What stands above goes before these lists.
        for name in PROXY_HEADERS {
            roles.add(name, HeaderRole::OfProxies);
        }
        for name in HOP_BY_HOP_HEADERS
            .iter()
            .chain(&OVERRIDE_HEADERS)
            .chain(&CLIENT_ADDRESS_HEADERS)
        {
            roles.add(name, HeaderRole::Barred);
        }
        roles
    }

    fn add(&mut self, name: &str, role: HeaderRole) {
        if self.by_length.len() <= name.len() {
            self.by_length.resize(name.len() + 1, Vec::new());
        }
        let alike = &mut self.by_length[name.len()];
        if !alike.iter().any(|(known, _)| **known == *name) {
            alike.push((name.into(), role));
        }
    }

    fn of(&self, name: &[u8]) -> HeaderRole {
        let mut normal: SmallVec<[u8; USUAL_NAME]> = SmallVec::from_slice(name);
        normal.make_ascii_lowercase();
        if !normal.contains(&b'_') {
            return self.named(&normal);
        }
        // Some servers read `_` as `-`: the look-alike of a name that means something must not pass.
        for byte in &mut normal {
            if *byte == b'_' {
                *byte = b'-';
            }
        }
        let is_framing = FRAMING_HEADERS
            .iter()
            .any(|name| name.as_bytes() == &normal[..]);
        if is_framing || self.named(&normal) != HeaderRole::Ordinary {
            HeaderRole::Barred
        } else {
            HeaderRole::Ordinary
        }
    }

    /// The role of a name in lower case.
    fn named(&self, name: &[u8]) -> HeaderRole {
        let alike = self
            .by_length
            .get(name.len())
            .map_or(&[][..], Vec::as_slice);
        if let Some((_, role)) = alike.iter().find(|(known, _)| known.as_bytes() == name) {
            *role
        } else if name.starts_with(INTERNAL_PREFIX.as_bytes()) || is_override(name) {
            HeaderRole::Barred
        } else if name.starts_with(FORWARDED_PREFIX.as_bytes()) {
            HeaderRole::OfProxies
        } else {
            HeaderRole::Ordinary
        }
    }
}

/// Headers whose look-alikes with `_` some servers would take for them: they frame or label a request.
const FRAMING_HEADERS: [&str; 7] = [
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "authorization",
    "cookie",
];

/// A convention header cannot have that name.
#[derive(Debug, thiserror::Error)]
#[error("a header name of its own, not {name}: that is {why}")]
pub struct HeaderNamesError {
    key: &'static str,
    name: HeaderName,
    why: &'static str,
}

impl HeaderNamesError {
    /// Which one: `authorization`, `app`, `language` or `version`.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.key
    }
}

/// Whether a name (in lower case) is of one of the [`OVERRIDE_PREFIXES`].
fn is_override(name: &[u8]) -> bool {
    OVERRIDE_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix.as_bytes()))
}

/// Whether a name (in lower case) means something already, or could be mistaken for one that does.
fn is_spoken_for(name: &str) -> bool {
    name.contains('_')
        || name.starts_with(INTERNAL_PREFIX)
        || name.starts_with(FORWARDED_PREFIX)
        || name.starts_with("content-")
        || name.starts_with("accept")
        || [
            "host",
            "cookie",
            "set-cookie",
            "origin",
            "referer",
            "user-agent",
            "date",
        ]
        .contains(&name)
        || PROXY_HEADERS.contains(&name)
        || HOP_BY_HOP_HEADERS.contains(&name)
        || OVERRIDE_HEADERS.contains(&name)
        || CLIENT_ADDRESS_HEADERS.contains(&name)
        || is_override(name.as_bytes())
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn derive(prefix: &Prefix, suffix: &str) -> HeaderName {
    HeaderName::from_bytes(format!("{prefix}-X-{suffix}").as_bytes())
        .expect("a prefix has only letters, digits and hyphens, which are all token characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_derive_from_the_prefix() {
        let names =
            HeaderNames::new(&"Acme".parse().unwrap(), &HeaderOverrides::default()).unwrap();
        assert_eq!(names.app().as_str(), "acme-x-app");
        assert_eq!(names.version_source().as_str(), "acme-x-version-source");
    }

    #[test]
    fn an_override_takes_the_place_of_the_derived_name() {
        let overrides = HeaderOverrides {
            app: Some(HeaderName::from_static("client-id")),
            ..HeaderOverrides::default()
        };
        let names = HeaderNames::new(&"Acme".parse().unwrap(), &overrides).unwrap();
        assert_eq!(names.app().as_str(), "client-id");
        assert_eq!(names.version().as_str(), "acme-x-version");
    }

    #[test]
    fn a_name_that_means_something_already_is_refused() {
        for bad in [
            "x-gateway-app-id",
            "host",
            "content-type",
            "cookie",
            "connection",
            "x-forwarded-for",
            "x-request-id",
            "x_app",
            "x-original-url",
            "cf-connecting-ip",
            "x-method",
            "acme-x-version",
            "acme-x-version-source",
            "accept-language",
        ] {
            let app = Some(HeaderName::from_bytes(bad.as_bytes()).unwrap());
            let overrides = HeaderOverrides {
                app,
                ..HeaderOverrides::default()
            };
            let refused = HeaderNames::new(&"Acme".parse().unwrap(), &overrides).unwrap_err();
            assert!(refused.to_string().contains(bad), "{refused}");
        }
    }

    #[test]
    fn a_prefix_is_a_letter_then_letters_digits_and_hyphens() {
        for good in ["A", "Acme", "a-1-", &"A".repeat(32)] {
            assert!(good.parse::<Prefix>().is_ok(), "{good}");
        }
        for bad in ["", "1a", "-a", "a_b", "a b", "é", &"A".repeat(33)] {
            assert!(bad.parse::<Prefix>().is_err(), "{bad}");
        }
    }
}

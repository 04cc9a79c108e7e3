//! Header names: the convention headers derived from the prefix, and the internal ones. CONTRACT 1.
//!
//! This is the only file with header names of Signpost.

use std::{fmt, str::FromStr};

use http::HeaderName;
use smallvec::SmallVec;

/// The secret by which a backend authenticates the gateway. CONTRACT 9.
pub const X_GATEWAY_SECRET: HeaderName = HeaderName::from_static("x-gateway-secret");
/// The application's ident; absent in single-application mode.
pub const X_GATEWAY_APP: HeaderName = HeaderName::from_static("x-gateway-app");
/// The application's internal id; 0 in single-application mode; absent on the callback.
pub const X_GATEWAY_APP_ID: HeaderName = HeaderName::from_static("x-gateway-app-id");
/// The id of the account whose credential the gateway has checked: a decimal number. CONTRACT 9.
pub const X_GATEWAY_ACCOUNT_ID: HeaderName = HeaderName::from_static("x-gateway-account-id");
/// That account's username, percent-encoded.
pub const X_GATEWAY_ACCOUNT_USERNAME: HeaderName =
    HeaderName::from_static("x-gateway-account-username");
/// That account's type: its provider's kind, percent-encoded.
pub const X_GATEWAY_ACCOUNT_TYPE: HeaderName = HeaderName::from_static("x-gateway-account-type");
/// The version that the request was routed to.
pub const X_GATEWAY_VERSION: HeaderName = HeaderName::from_static("x-gateway-version");
/// Why that version was selected: a [`VersionSource`](crate::version::VersionSource).
pub const X_GATEWAY_VERSION_SOURCE: HeaderName =
    HeaderName::from_static("x-gateway-version-source");
/// The subject of the certificate of the gateway's TLS client, as RFC 4514 writes it; absent without one. CONTRACT 9.
pub const X_GATEWAY_CLIENT_CERT_SUBJECT: HeaderName =
    HeaderName::from_static("x-gateway-client-cert-subject");
/// In a response to the gateway: the [code](crate::problem::ProblemCode) of its problem, for the access log. Never sent
/// to clients, as all headers with this prefix.
pub const X_GATEWAY_PROBLEM: HeaderName = HeaderName::from_static("x-gateway-problem");
/// In a response to the gateway: the backend rejected the gateway itself; the value is [`REFUSED_SECRET`]. CONTRACT 9.
pub const X_GATEWAY_REFUSED: HeaderName = HeaderName::from_static("x-gateway-refused");
/// The value of [`X_GATEWAY_REFUSED`]: the request had no `X-Gateway-Secret`, or a wrong one.
pub const REFUSED_SECRET: &str = "secret";
/// A [`RequestId`](crate::request_id::RequestId).
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Addresses that the request passed; the leftmost is the client's, as far as trusted proxies report it.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// `http` or `https`: the client's scheme at the outermost trusted proxy.
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// The `Host` of the client's request.
pub const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// W3C Trace Context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// W3C Trace Context, the vendors' part.
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// What a rate limit leaves (draft-ietf-httpapi-ratelimit-headers-10).
pub const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// The rate limits themselves, in the same draft.
pub const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Since when a version is deprecated, or will be (RFC 9745).
pub const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
/// When a version may end (RFC 8594).
pub const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// Prefix (in lower case) of the gateway's internal headers, in both directions.
pub const INTERNAL_PREFIX: &str = "x-gateway-";

/// Headers about the origin of a request: passed from a trusted proxy, removed from any other client. CONTRACT 1.
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

/// Prefix of further headers like [`PROXY_HEADERS`].
const FORWARDED_PREFIX: &str = "x-forwarded-";

/// Further headers in which some proxies and CDNs send the client's address; always removed.
///
/// Also from a trusted proxy: one that does not set such a header passes on its client's. The address to use is in
/// `X-Forwarded-For`, of which the gateway keeps only the entries of trusted proxies.
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

/// Headers that could make a backend see another request than the one that was verified; always removed. CONTRACT 1.
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

/// Prefixes of such headers, and of those in which a proxy keeps replaced values: `X-Original-URL`,
/// `X-Original-Forwarded-For`, `X-Rewrite-URL`, `X-Envoy-Original-Path`. Always removed, too.
const OVERRIDE_PREFIXES: [&str; 3] = ["x-original-", "x-rewrite-", "x-envoy-original-"];

/// Headers of one connection only (RFC 9110 section 7.6.1), and those that end at the gateway. CONTRACT 1 and 2.
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

/// The prefix of the convention headers: `Acme` in `Acme-X-App`. `[A-Za-z][A-Za-z0-9-]{0,31}`.
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
        let is_start_valid = bytes
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic());
        let is_rest_valid = bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if is_start_valid && is_rest_valid && prefix.len() <= 32 {
            Ok(Self(prefix.to_owned()))
        } else {
            Err(ParsePrefixError)
        }
    }
}

/// The prefix is not valid for header names.
#[derive(Debug, thiserror::Error)]
#[error("a letter, then up to 31 letters, digits or hyphens")]
pub struct ParsePrefixError;

/// Configured names of convention headers; `None` derives the name from the prefix.
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
    prefix: Prefix,
    authorization: HeaderName,
    app: HeaderName,
    language: HeaderName,
    version: HeaderName,
    version_source: HeaderName,
    roles: Roles,
}

impl HeaderNames {
    /// Derives every name from `prefix`, except those in `overrides`.
    ///
    /// # Errors
    ///
    /// A name is reserved, or two headers have the same name.
    pub fn new(prefix: &Prefix, overrides: &HeaderOverrides) -> Result<Self, HeaderNamesError> {
        let name = |given: &Option<HeaderName>, suffix: &str| {
            given.clone().unwrap_or_else(|| derive(prefix, suffix))
        };
        let mut names = Self {
            prefix: prefix.clone(),
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
        for (index, (key, name)) in by_key.into_iter().enumerate() {
            let is_duplicate = by_key[..index].iter().any(|(_, other)| *other == name)
                || *name == self.version_source;
            if is_duplicate {
                return Err(HeaderNamesError {
                    key,
                    name: name.clone(),
                    why: "used for another of these headers",
                });
            }
            if is_reserved(name.as_str()) {
                let why = "used by HTTP, proxies or the gateway itself";
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

    /// The requested version; in a response, the one that served it.
    #[must_use]
    pub fn version(&self) -> &HeaderName {
        &self.version
    }

    /// In a response: why that version was selected.
    #[must_use]
    pub fn version_source(&self) -> &HeaderName {
        &self.version_source
    }

    /// A name as documents write it: the prefix in its own letter case, every other word capitalized.
    #[must_use]
    pub fn spelled(&self, name: &HeaderName) -> String {
        let prefix = self.prefix.as_str();
        let (mut spelled, rest) = match name.as_str().split_at_checked(prefix.len()) {
            Some((first, rest)) if first.eq_ignore_ascii_case(prefix) => (prefix.to_owned(), rest),
            _ => (String::new(), name.as_str()),
        };
        let mut starts_word = spelled.is_empty();
        for letter in rest.chars() {
            spelled.push(if starts_word {
                letter.to_ascii_uppercase()
            } else {
                letter
            });
            starts_word = letter == '-';
        }
        spelled
    }

    /// The role of a request header by its name, in any letter case.
    #[must_use]
    pub fn role_of(&self, name: &[u8]) -> HeaderRole {
        self.roles.role_of(name)
    }
}

/// The role of a request header: how the gateway handles it. CONTRACT 1 and 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderRole {
    /// The user's credential.
    Authorization,
    /// The application's ident.
    App,
    /// The language of texts.
    Language,
    /// The requested version.
    Version,
    /// `Host`; the gateway sets it in the request to the backend.
    Host,
    /// `Content-Type`.
    ContentType,
    /// `Content-Length`; the gateway sets it in the request to the backend.
    ContentLength,
    /// `Content-Encoding`.
    ContentEncoding,
    /// `Connection`.
    Connection,
    /// `Expect`.
    Expect,
    /// `X-Request-Id`; the gateway sets its own.
    RequestId,
    /// `traceparent`; the gateway sets its own.
    Traceparent,
    /// `tracestate`; passed only with a trusted proxy's `traceparent`.
    Tracestate,
    /// `X-Forwarded-For`; the gateway sets its own.
    ForwardedFor,
    /// `X-Forwarded-Proto`; the gateway sets its own.
    ForwardedProto,
    /// `X-Forwarded-Host`; the gateway sets its own.
    ForwardedHost,
    /// `Forwarded` (RFC 7239); the gateway extends a trusted proxy's.
    Forwarded,
    /// Another header about the origin of a request: passed only from a trusted proxy.
    Proxy,
    /// Always removed: internal, hop-by-hop, an override of what was verified, or a look-alike with `_`.
    Removed,
    /// Any other: passed unchanged.
    Ordinary,
}

impl HeaderRole {
    /// Whether the header is passed to the backend unchanged.
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
            Self::Proxy => from_trusted_proxy,
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
            | Self::Removed => false,
        }
    }
}

/// The names with a role, by length: few have the same one, so a lookup compares two or three.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Roles {
    by_length: Vec<Vec<(Box<str>, HeaderRole)>>,
}

/// Names up to this length cost no allocation.
const INLINE_NAME: usize = 64;

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
        // The first role of a name counts, so the roles above precede those of the lists.
        for name in PROXY_HEADERS {
            roles.add(name, HeaderRole::Proxy);
        }
        for name in HOP_BY_HOP_HEADERS
            .iter()
            .chain(&OVERRIDE_HEADERS)
            .chain(&CLIENT_ADDRESS_HEADERS)
        {
            roles.add(name, HeaderRole::Removed);
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

    fn role_of(&self, name: &[u8]) -> HeaderRole {
        let mut normal: SmallVec<[u8; INLINE_NAME]> = SmallVec::from_slice(name);
        normal.make_ascii_lowercase();
        if !normal.contains(&b'_') {
            return self.role_of_lower_case(&normal);
        }
        // Some servers read `_` as `-`: the look-alike of a name with a role must not pass.
        for byte in &mut normal {
            if *byte == b'_' {
                *byte = b'-';
            }
        }
        let is_framing = FRAMING_HEADERS
            .iter()
            .any(|name| name.as_bytes() == &normal[..]);
        if is_framing || self.role_of_lower_case(&normal) != HeaderRole::Ordinary {
            HeaderRole::Removed
        } else {
            HeaderRole::Ordinary
        }
    }

    /// The role of a name in lower case.
    fn role_of_lower_case(&self, name: &[u8]) -> HeaderRole {
        let alike = self
            .by_length
            .get(name.len())
            .map_or(&[][..], Vec::as_slice);
        if let Some((_, role)) = alike.iter().find(|(known, _)| known.as_bytes() == name) {
            *role
        } else if name.starts_with(INTERNAL_PREFIX.as_bytes()) || is_override(name) {
            HeaderRole::Removed
        } else if name.starts_with(FORWARDED_PREFIX.as_bytes()) {
            HeaderRole::Proxy
        } else {
            HeaderRole::Ordinary
        }
    }
}

/// Further headers whose look-alikes with `_` are removed: they frame a request or define its meaning.
const FRAMING_HEADERS: [&str; 7] = [
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "authorization",
    "cookie",
];

/// The name is not possible for a convention header.
#[derive(Debug, thiserror::Error)]
#[error("a name that no other header has; {name} is {why}")]
pub struct HeaderNamesError {
    key: &'static str,
    name: HeaderName,
    why: &'static str,
}

impl HeaderNamesError {
    /// The configuration key: `authorization`, `app`, `language` or `version`.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.key
    }
}

/// Whether a name (in lower case) has one of the [`OVERRIDE_PREFIXES`].
fn is_override(name: &[u8]) -> bool {
    OVERRIDE_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix.as_bytes()))
}

/// Whether a name (in lower case) has a meaning already, or looks like one that has.
fn is_reserved(name: &str) -> bool {
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
    fn an_override_replaces_the_derived_name() {
        let overrides = HeaderOverrides {
            app: Some(HeaderName::from_static("client-id")),
            ..HeaderOverrides::default()
        };
        let names = HeaderNames::new(&"Acme".parse().unwrap(), &overrides).unwrap();
        assert_eq!(names.app().as_str(), "client-id");
        assert_eq!(names.version().as_str(), "acme-x-version");
        assert_eq!(names.spelled(names.app()), "Client-Id");
        assert_eq!(names.spelled(names.version()), "Acme-X-Version");
    }

    #[test]
    fn a_reserved_name_is_rejected() {
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
            let error = HeaderNames::new(&"Acme".parse().unwrap(), &overrides).unwrap_err();
            assert!(error.to_string().contains(bad), "{error}");
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

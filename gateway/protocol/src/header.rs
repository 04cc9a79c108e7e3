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

/// The role of each known header, in lower case; `*` at the end of a name stands for any rest. Of two entries for a name
/// the first one counts. CONTRACT 1 has the same names.
///
/// Client addresses, schemes and identities are removed from a trusted proxy's requests, too: a proxy that does not set
/// such a header passes on its client's. The client's address is in `X-Forwarded-For`, its scheme in
/// `X-Forwarded-Proto`, its certificate in `X-Gateway-Client-Cert-Subject`.
const KNOWN: [(HeaderRole, &[&str]); 24] = [
    (HeaderRole::Host, &["host"]),
    (HeaderRole::ContentType, &["content-type"]),
    (HeaderRole::ContentLength, &["content-length"]),
    (HeaderRole::ContentEncoding, &["content-encoding"]),
    (HeaderRole::Connection, &["connection"]),
    (HeaderRole::Expect, &["expect"]),
    (HeaderRole::RequestId, &["x-request-id"]),
    (HeaderRole::Traceparent, &["traceparent"]),
    (HeaderRole::Tracestate, &["tracestate"]),
    (HeaderRole::ForwardedFor, &["x-forwarded-for"]),
    (HeaderRole::ForwardedProto, &["x-forwarded-proto"]),
    (HeaderRole::ForwardedHost, &["x-forwarded-host"]),
    (HeaderRole::Forwarded, &["forwarded"]),
    // The gateway's own: `INTERNAL_PREFIX`.
    (HeaderRole::Removed, &["x-gateway-*"]),
    // Headers of one connection only (RFC 9110 section 7.6.1), and those that end at the gateway.
    (
        HeaderRole::Removed,
        &[
            "keep-alive",
            "proxy-connection",
            "proxy-authenticate",
            "proxy-authorization",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "http2-settings",
        ],
    ),
    // What could make a backend see another request than the one that was verified, or a proxy before it handle the
    // request in another way.
    (
        HeaderRole::Removed,
        &[
            "l5d-*",
            "proxy",
            "x-envoy-*",
            "x-host",
            "x-http-host-override",
            "x-http-method",
            "x-http-method-override",
            "x-http-path-override",
            "x-method",
            "x-method-override",
            "x-original-*",
            "x-override-method",
            "x-override-uri",
            "x-override-url",
            "x-rewrite-*",
        ],
    ),
    // The client's address.
    (
        HeaderRole::Removed,
        &[
            "ali-cdn-real-ip",
            "cdn-src-ip",
            "cf-connecting-ip",
            "cf-connecting-ipv6",
            "cf-pseudo-ipv4",
            "client-ip",
            "cloudfront-viewer-address",
            "cluster-client-ip",
            "coming-from",
            "do-connecting-ip",
            "eo-connecting-ip",
            "fastly-client-ip",
            "fly-client-ip",
            "forwarded-for",
            "http-client-ip",
            "http-x-forwarded-for",
            "incap-client-ip",
            "proxy-client-ip",
            "true-client-ip",
            "x-azure-clientip",
            "x-azure-socketip",
            "x-client-ip",
            "x-cluster-client-ip",
            "x-coming-from",
            "x-forwarded-client-ip",
            "x-nf-client-connection-ip",
            "x-originating-ip",
            "x-proxyuser-ip",
            "x-real-client-ip",
            "x-sucuri-clientip",
            "x-true-client-ip",
            "x-vercel-forwarded-for",
            "x-vercel-proxied-for",
        ],
    ),
    // The client's scheme.
    (
        HeaderRole::Removed,
        &[
            "cloudfront-forwarded-proto",
            "fastly-ssl",
            "front-end-https",
            "x-arr-ssl",
            "x-scheme",
            "x-url-scheme",
        ],
    ),
    // The client's certificate: RFC 9440, and the headers of servers that end TLS.
    (
        HeaderRole::Removed,
        &[
            "cf-cert-*",
            "cf-client-cert-*",
            "client-cert",
            "client-cert-chain",
            "ssl-client-*",
            "x-amzn-mtls-*",
            "x-arr-clientcert",
            "x-client-cert*",
            "x-client-cn",
            "x-client-dn",
            "x-client-issuer",
            "x-client-san",
            "x-client-subject",
            "x-client-verified",
            "x-client-verify",
            "x-forwarded-client-cert*",
            "x-forwarded-ssl-client-*",
            "x-forwarded-tls-client-*",
            "x-ssl",
            "x-ssl-*",
            "x-tls-client-*",
        ],
    ),
    // The user, as servers that authenticate requests report it.
    (
        HeaderRole::Removed,
        &[
            "cf-access-*",
            "iv-creds",
            "iv-groups",
            "iv-user",
            "mellon-*",
            "ngrok-auth-*",
            "oidc-*",
            "shib-*",
            "sm-universalid",
            "sm-user",
            "sm-userdn",
            "tailscale-*",
            "teleport-jwt-assertion",
            "x-amzn-ava-*",
            "x-amzn-oidc-*",
            "x-anonymous-consumer",
            "x-apigateway-api-*",
            "x-auth-email",
            "x-auth-groups",
            "x-auth-request-*",
            "x-auth-roles",
            "x-auth-subject",
            "x-auth-user",
            "x-auth-userid",
            "x-auth-username",
            "x-authenticated-*",
            "x-authentik-*",
            "x-consumer-*",
            "x-credential-*",
            "x-endpoint-api-*",
            "x-forwarded-access-token",
            "x-forwarded-email",
            "x-forwarded-groups",
            "x-forwarded-preferred-username",
            "x-forwarded-user",
            "x-goog-authenticated-*",
            "x-goog-iap-*",
            "x-id-token",
            "x-ms-client-principal*",
            "x-ms-token-*",
            "x-pomerium-*",
            "x-userinfo",
            "x-vouch-*",
            "x-webauth-*",
        ],
    ),
    // Several of these: address, user, certificate, scheme.
    (
        HeaderRole::Removed,
        &[
            "$ws*",
            "proxy-remote-user",
            "remote-*",
            "wl-proxy-*",
            "x-appengine-*",
            "x-remote-*",
        ],
    ),
    // Where a request comes from, beside the headers above.
    (
        HeaderRole::Proxy,
        &["x-forwarded", "x-forwarded-*", "x-real-ip"],
    ),
    // The trace that a request belongs to, beside `traceparent`.
    (
        HeaderRole::Proxy,
        &[
            "b3",
            "baggage",
            "correlation-context",
            "eagleeye-*",
            "elastic-apm-traceparent",
            "grpc-trace-bin",
            "newrelic",
            "ot-tracer-*",
            "sentry-trace",
            "sw8",
            "sw8-*",
            "uber-trace-id",
            "uberctx-*",
            "x-amzn-trace-id",
            "x-b3-*",
            "x-client-trace-id",
            "x-cloud-trace-context",
            "x-datadog-*",
            "x-dynatrace",
            "x-honeycomb-trace",
            "x-instana-*",
            "x-newrelic-*",
            "x-ot-span-context",
        ],
    ),
    (HeaderRole::Cookie, &["cookie"]),
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
            roles: Roles::known(),
        };
        names.check()?;
        for (name, role) in [
            (&names.authorization, HeaderRole::Authorization),
            (&names.app, HeaderRole::App),
            (&names.language, HeaderRole::Language),
            (&names.version, HeaderRole::Version),
        ] {
            names.roles.add(name.as_str(), role);
        }
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
            if self.is_reserved(name.as_str()) {
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

    /// Whether a name (in lower case) has a meaning already, or looks like one that has.
    fn is_reserved(&self, name: &str) -> bool {
        const OTHERS: [&str; 5] = ["set-cookie", "origin", "referer", "user-agent", "date"];
        name.contains('_')
            || name.starts_with("content-")
            || name.starts_with("accept")
            || OTHERS.contains(&name)
            || self.role_of(name.as_bytes()) != HeaderRole::Ordinary
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
    /// Another header about the origin of a request or its trace: passed only from a trusted proxy.
    Proxy,
    /// `Cookie`; on a route without the cookies of logins.
    Cookie,
    /// Always removed: internal, hop-by-hop, an override of what was verified, an address, a scheme or an identity by
    /// another server, or a look-alike with `_`.
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
            | Self::Cookie
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

/// The names with a role, by their first and third letters: few have the same ones, so a lookup compares one or two.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Roles {
    by_letters: Vec<Vec<KnownName>>,
}

/// A name with a role, or the beginning of such names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownName {
    text: Box<str>,
    is_beginning: bool,
    role: HeaderRole,
}

/// Names up to this length cost no allocation.
const INLINE_NAME: usize = 64;

impl Roles {
    /// The roles of all [`KNOWN`] names.
    fn known() -> Self {
        let mut roles = Self {
            by_letters: vec![Vec::new(); 1 << 10],
        };
        for (role, names) in KNOWN {
            for name in names {
                roles.add(name, role);
            }
        }
        roles
    }

    fn add(&mut self, name: &str, role: HeaderRole) {
        let (text, is_beginning) = match name.strip_suffix('*') {
            Some(beginning) => (beginning, true),
            None => (name, false),
        };
        self.by_letters[place(text.as_bytes())].push(KnownName {
            text: text.into(),
            is_beginning,
            role,
        });
    }

    fn role_of(&self, name: &[u8]) -> HeaderRole {
        if !name.contains(&b'_') {
            return self.role_of_spelled(name);
        }
        // Some servers read `_` as `-`: the look-alike of a name with a role must not pass.
        let mut normal: SmallVec<[u8; INLINE_NAME]> = SmallVec::from_slice(name);
        for byte in &mut normal {
            if *byte == b'_' {
                *byte = b'-';
            }
        }
        match self.role_of_spelled(&normal) {
            HeaderRole::Ordinary => HeaderRole::Ordinary,
            _ => HeaderRole::Removed,
        }
    }

    /// The role of a name as it is spelled, in any letter case.
    fn role_of_spelled(&self, name: &[u8]) -> HeaderRole {
        let alike = self.by_letters[place(name)].iter();
        let mut alike = alike.filter(|known| known.includes(name));
        alike
            .next()
            .map_or(HeaderRole::Ordinary, |known| known.role)
    }
}

impl KnownName {
    fn includes(&self, name: &[u8]) -> bool {
        let text = self.text.as_bytes();
        if self.is_beginning {
            name.len() >= text.len() && name[..text.len()].eq_ignore_ascii_case(text)
        } else {
            name.eq_ignore_ascii_case(text)
        }
    }
}

/// The place of a name in [`Roles`], the same in any letter case. Every beginning has the three letters that it depends
/// on.
fn place(name: &[u8]) -> usize {
    let letter = |index: usize| usize::from(name.get(index).copied().unwrap_or_default() & 31);
    letter(0) << 5 | letter(2)
}

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
    fn the_contract_names_every_known_header() {
        let contract = include_str!("../CONTRACT.md").to_lowercase();
        let names = KNOWN.iter().flat_map(|(_, names)| *names);
        let missing: Vec<_> = names
            .filter(|name| !contract.contains(&format!("`{name}`")))
            .collect();
        assert_eq!(missing, [&""; 0]);
    }

    #[test]
    fn the_first_entry_for_a_name_counts() {
        let roles = Roles::known();
        for (name, role) in [
            ("X-Forwarded-For", HeaderRole::ForwardedFor),
            ("x-forwarded-email", HeaderRole::Removed),
            ("X-FORWARDED-TLS-CLIENT-CERT-INFO", HeaderRole::Removed),
            ("x-forwarded-port", HeaderRole::Proxy),
            ("x-forwarded-", HeaderRole::Proxy),
            ("x-gateway-", HeaderRole::Removed),
            ("$WSRU", HeaderRole::Removed),
            ("b3", HeaderRole::Proxy),
            ("B3", HeaderRole::Proxy),
            ("X_B3_TraceId", HeaderRole::Removed),
            ("SSL_CLIENT_S_DN", HeaderRole::Removed),
            ("content_length", HeaderRole::Removed),
            ("x-client-version", HeaderRole::Ordinary),
            ("x-auth-token", HeaderRole::Ordinary),
            ("x-b3", HeaderRole::Ordinary),
            ("x", HeaderRole::Ordinary),
            ("", HeaderRole::Ordinary),
        ] {
            assert_eq!(roles.role_of(name.as_bytes()), role, "{name}");
        }
        for (role, names) in KNOWN {
            for name in names {
                let name = name.replace('*', "any");
                assert_eq!(roles.role_of(name.as_bytes()), role, "{name}");
            }
        }
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
            "remote-user",
            "x-b3-traceid",
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

//! Header names: the convention headers derived from the prefix, and the internal ones. CONTRACT 1.
//!
//! This is the only module with header names of Signpost.

mod role;

use std::str::FromStr;

use http::HeaderName;

pub use self::role::HeaderRole;
use self::role::Roles;
use crate::word::ParseError;

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
/// That account's type: its provider's name, percent-encoded.
pub const X_GATEWAY_ACCOUNT_TYPE: HeaderName = HeaderName::from_static("x-gateway-account-type");
/// The account's display name.
pub const X_GATEWAY_ACCOUNT_NAME: HeaderName = HeaderName::from_static("x-gateway-account-name");
/// The account's e-mail address, verified by its provider.
pub const X_GATEWAY_ACCOUNT_EMAIL: HeaderName = HeaderName::from_static("x-gateway-account-email");
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
/// The version whose client sent the request, if a bridge changed it.
pub const X_GATEWAY_BRIDGE: HeaderName = HeaderName::from_static("x-gateway-bridge");
/// `true` if the request was signed that a bridge changed: it has no `sign` any more.
pub const X_GATEWAY_SIGNED: HeaderName = HeaderName::from_static("x-gateway-signed");
/// The version whose client sent the original, if this request is a copy.
pub const X_GATEWAY_SHADOW: HeaderName = HeaderName::from_static("x-gateway-shadow");
/// The value of [`X_GATEWAY_REFUSED`]: the request is a copy.
pub const REFUSED_SHADOW: &str = "shadow";
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
/// What the gateway has taken off the beginning of the path: the version's prefix.
pub const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
/// W3C Trace Context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What belongs to a `traceparent`. W3C Trace Context section 3.3.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

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
    type Err = ParseError;

    fn from_str(prefix: &str) -> Result<Self, Self::Err> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let begins_with_letter = prefix.starts_with(|first: char| first.is_ascii_alphabetic());
        if begins_with_letter && prefix.bytes().all(is_allowed) && prefix.len() <= 32 {
            Ok(Self(prefix.to_owned()))
        } else {
            let rule = "a letter, then up to 31 letters, digits or hyphens";
            Err(ParseError(rule))
        }
    }
}

show_as_str!(Prefix: Display);

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
    /// The user's credential.
    pub authorization: HeaderName,
    /// The application's ident.
    pub app: HeaderName,
    /// The language of texts.
    pub language: HeaderName,
    /// The requested version; in a response, the version that served it.
    pub version: HeaderName,
    /// In a response: why that version was selected.
    pub version_source: HeaderName,
    /// The time, of signatures in headers.
    pub time: HeaderName,
    /// The signature, of signatures in headers.
    pub sign: HeaderName,
    /// The nonce, of signatures in headers.
    pub nonce: HeaderName,
    roles: Roles,
}

impl HeaderNames {
    /// The prefix, from which the names derive that no key replaces.
    #[must_use]
    pub const fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// What clients send, each with its key in `[headers]`.
    #[must_use]
    pub const fn convention(&self) -> [(&'static str, &HeaderName); 4] {
        [
            ("app", &self.app),
            ("version", &self.version),
            ("language", &self.language),
            ("authorization", &self.authorization),
        ]
    }

    /// What carries a signature in headers. CONTRACT 3.
    #[must_use]
    pub const fn of_signature(&self) -> [&HeaderName; 3] {
        [&self.time, &self.sign, &self.nonce]
    }

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
            time: derive(prefix, "Time"),
            sign: derive(prefix, "Sign"),
            nonce: derive(prefix, "Nonce"),
            roles: Roles::known(),
        };
        let by_key = [
            (
                "authorization",
                &names.authorization,
                HeaderRole::Authorization,
            ),
            ("app", &names.app, HeaderRole::App),
            ("language", &names.language, HeaderRole::Language),
            ("version", &names.version, HeaderRole::Version),
        ];
        for (index, (key, name, _)) in by_key.into_iter().enumerate() {
            let derived = [
                &names.version_source,
                &names.time,
                &names.sign,
                &names.nonce,
            ];
            let is_duplicate = by_key[..index].iter().any(|(_, other, _)| *other == name)
                || derived.contains(&name);
            let why = if is_duplicate {
                "used for another of these headers"
            } else if names.is_reserved(name.as_str()) {
                "used by HTTP, proxies or the gateway itself"
            } else {
                continue;
            };
            let name = name.clone();
            return Err(HeaderNamesError { key, name, why });
        }
        // Not earlier: a name that has a role counts as reserved.
        let of_signature = [
            ("", &names.time, HeaderRole::Time),
            ("", &names.sign, HeaderRole::Sign),
            ("", &names.nonce, HeaderRole::Nonce),
        ];
        for (_, name, role) in by_key.into_iter().chain(of_signature) {
            names.roles.add(name.as_str(), role);
        }
        Ok(names)
    }

    fn is_reserved(&self, name: &str) -> bool {
        const OTHERS: [&str; 5] = ["set-cookie", "origin", "referer", "user-agent", "date"];
        // Many servers drop such a name, or read it as the one with `-`.
        name.contains('_')
            || name.starts_with("content-")
            || name.starts_with("accept")
            || OTHERS.contains(&name)
            || self.role_of(name.as_bytes()) != HeaderRole::Ordinary
    }

    /// The value of `WWW-Authenticate` in a 401 with this code. No browser knows the scheme, so none asks for a password.
    /// RFC 9110 section 11.6.1, CONTRACT 1.
    #[must_use]
    pub fn challenge(&self, code: &str) -> String {
        let (prefix, header) = (self.prefix.as_str(), self.spelled(&self.authorization));
        format!("Signpost realm=\"{prefix}\", header=\"{header}\", error=\"{code}\"")
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

/// The name is not possible for a convention header.
#[derive(Debug, thiserror::Error)]
#[error("a name that no other header has; {name} is {why}")]
pub struct HeaderNamesError {
    /// The key of `[headers]`.
    pub key: &'static str,
    name: HeaderName,
    why: &'static str,
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
        assert_eq!(names.app.as_str(), "acme-x-app");
        assert_eq!(names.version_source.as_str(), "acme-x-version-source");
    }

    #[test]
    fn an_override_replaces_the_derived_name() {
        let overrides = HeaderOverrides {
            app: Some(HeaderName::from_static("client-id")),
            ..HeaderOverrides::default()
        };
        let names = HeaderNames::new(&"Acme".parse().unwrap(), &overrides).unwrap();
        assert_eq!(names.app.as_str(), "client-id");
        assert_eq!(names.version.as_str(), "acme-x-version");
        assert_eq!(names.spelled(&names.app), "Client-Id");
        assert_eq!(names.spelled(&names.version), "Acme-X-Version");
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

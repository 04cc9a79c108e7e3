//! CORS: preflights, and the headers by which a browser lets a page of another origin read a response. CONTRACT 2.
//!
//! Off, it costs a branch. On, a response costs no allocation: all values except the origin are built with the gateway.

use http::{HeaderName, header};
use signpost_protocol::header::HeaderNames;
use smallvec::SmallVec;

use crate::{
    config::{AllowedOrigins, Cors, OriginPattern},
    request::{BodyLength, Headers, Methods, is_named},
    wire::syntax::field::NameAndValue,
};

/// Request headers of a page, beside the convention headers.
const ALLOWED: [HeaderName; 1] = [header::CONTENT_TYPE];
/// Answer headers of Signpost that pages may read, beside version and version source.
const EXPOSED: [&str; 6] = [
    "X-Request-Id",
    "Retry-After",
    "RateLimit",
    "RateLimit-Policy",
    "Allow",
    "WWW-Authenticate",
];
/// The prefix of the headers of CORS, which a backend's response loses.
const PREFIX: &[u8] = b"access-control-";

/// For how long a browser caches the response to a preflight, in seconds.
const MAX_AGE: &str = "600";

/// Rules for requests of pages of other origins.
#[derive(Debug)]
pub struct CorsRules {
    origins: AllowedOrigins,
    credentials: bool,
    expose_headers: String,
    allow_headers: String,
    /// The methods that any version accepts.
    allow_methods: String,
}

/// The header fields that CORS adds to a response.
pub(crate) type CorsFields<'a> = SmallVec<[NameAndValue<'a>; 6]>;

impl CorsRules {
    /// Creates the rules; `names`: the names of the convention headers. `further`: the names of other headers that the
    /// gateway adds to responses.
    #[must_use]
    pub fn new(cors: Cors, names: &HeaderNames, further: &[HeaderName], methods: Methods) -> Self {
        let spelled = |name: &HeaderName| names.spelled(name);
        let convention = names.convention().into_iter();
        let allowed = convention
            .map(|(_, name)| name)
            .chain(names.of_signature())
            .chain(&ALLOWED)
            .chain(&cors.allow_headers);
        let allowed: Vec<_> = allowed.map(spelled).collect();
        let own = EXPOSED.into_iter().map(str::to_owned);
        let exposed = own
            .chain([&names.version, &names.version_source].map(spelled))
            .chain(further.iter().map(spelled))
            .chain(cors.expose_headers.iter().map(spelled));
        let exposed: Vec<_> = exposed.collect();
        Self {
            origins: cors.origins,
            credentials: cors.credentials,
            expose_headers: exposed.join(", "),
            allow_headers: allowed.join(", "),
            allow_methods: methods.to_string(),
        }
    }

    /// The origins whose pages may call.
    #[must_use]
    pub const fn origins(&self) -> &AllowedOrigins {
        &self.origins
    }

    /// The fields of a response to a request with these headers. `Vary` is always one of them.
    pub(crate) fn response_fields<'a>(
        &'a self,
        headers: &'a (impl Headers + ?Sized),
    ) -> CorsFields<'a> {
        let mut fields = CorsFields::new();
        if let Some(origin) = self.allowed_origin(headers) {
            self.push_allowed(origin, &mut fields);
            fields.push(field(
                "access-control-expose-headers",
                self.expose_headers.as_bytes(),
            ));
        }
        // Also without an origin: a cache could otherwise give this response to a page, which then cannot read it.
        fields.push(field("vary", b"Origin"));
        fields
    }

    /// The fields of the response to a preflight. One from an origin that may not call gets `Vary` alone.
    pub(crate) fn preflight_fields<'a>(
        &'a self,
        headers: &'a (impl Headers + ?Sized),
    ) -> CorsFields<'a> {
        let mut fields = CorsFields::new();
        if let Some(origin) = self.allowed_origin(headers) {
            self.push_allowed(origin, &mut fields);
            fields.extend([
                field(
                    "access-control-allow-methods",
                    self.allow_methods.as_bytes(),
                ),
                field(
                    "access-control-allow-headers",
                    self.allow_headers.as_bytes(),
                ),
                field("access-control-max-age", MAX_AGE.as_bytes()),
            ]);
        }
        fields.push(field(
            "vary",
            b"Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
        ));
        fields
    }

    fn push_allowed<'a>(&self, origin: &'a [u8], fields: &mut CorsFields<'a>) {
        fields.push(field("access-control-allow-origin", origin));
        if self.credentials {
            fields.push(field("access-control-allow-credentials", b"true"));
        }
    }

    /// The value of `Access-Control-Allow-Origin`; `None` if the request has no origin, several, or one that may not
    /// call.
    fn allowed_origin<'a>(&self, headers: &'a (impl Headers + ?Sized)) -> Option<&'a [u8]> {
        let mut origins = headers
            .each()
            .filter(|(name, _)| is_named(name, &header::ORIGIN));
        let (_, origin) = origins.next()?;
        // No browser sends two, and the response can name only one.
        if origins.next().is_some() {
            return None;
        }
        match &self.origins {
            AllowedOrigins::Any => Some(b"*"),
            AllowedOrigins::Listed(patterns) => {
                let is_allowed = patterns.iter().any(|pattern| matches(pattern, origin));
                is_allowed.then_some(origin)
            }
        }
    }
}

/// Whether a request is a preflight: `OPTIONS` with an origin and a requested method, without a body. Fetch standard.
#[must_use]
pub(crate) fn is_preflight(
    method: &[u8],
    body: BodyLength,
    headers: &(impl Headers + ?Sized),
) -> bool {
    let has = |wanted: &HeaderName| headers.each().any(|(name, _)| is_named(name, wanted));
    method == b"OPTIONS"
        && body == BodyLength::None
        && has(&header::ORIGIN)
        && has(&header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Whether a field of a backend's response is one of CORS: the gateway alone decides on them.
#[must_use]
pub(crate) fn is_of_cors(name: &[u8]) -> bool {
    name.get(..PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// Whether an origin, as a browser serializes it, matches. Bytes are compared: browsers write lower case (RFC 6454).
fn matches(pattern: &OriginPattern, origin: &[u8]) -> bool {
    match pattern {
        OriginPattern::Exact(known) => **known == *origin,
        OriginPattern::Below { scheme, domain } => origin
            .strip_prefix(&**scheme)
            .and_then(|rest| rest.strip_suffix(&**domain))
            // Otherwise `https://other.test/.example.org` would match, too: it begins and ends like a subdomain.
            .is_some_and(are_labels),
    }
}

/// Whether the text is one or more labels of a host name, in lower case.
fn are_labels(text: &[u8]) -> bool {
    let is_of_label = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    text.split(|byte| *byte == b'.')
        .all(|label| !label.is_empty() && label.iter().all(is_of_label))
}

fn field<'a>(name: &'static str, value: &'a [u8]) -> NameAndValue<'a> {
    (name.as_bytes(), value)
}

#[cfg(test)]
mod tests {
    use signpost_protocol::header::HeaderOverrides;

    use super::*;

    fn rules(origins: AllowedOrigins, credentials: bool) -> CorsRules {
        let renamed = HeaderOverrides {
            language: Some(HeaderName::from_static("x-language")),
            ..HeaderOverrides::default()
        };
        let names = HeaderNames::new(&"Acme".parse().unwrap(), &renamed).unwrap();
        let cors = Cors {
            origins,
            credentials,
            expose_headers: vec![HeaderName::from_static("x-more")],
            allow_headers: vec![HeaderName::from_static("x-trace")],
        };
        CorsRules::new(cors, &names, &[], Methods::USUAL)
    }

    fn listed() -> AllowedOrigins {
        AllowedOrigins::Listed(vec![
            OriginPattern::Exact((*b"https://app.example.com").into()),
            OriginPattern::Below {
                scheme: (*b"https://").into(),
                domain: (*b".example.org").into(),
            },
            OriginPattern::Below {
                scheme: (*b"http://").into(),
                domain: (*b".localhost:3000").into(),
            },
        ])
    }

    fn shown(fields: &CorsFields<'_>) -> Vec<String> {
        let line = |(name, value): &NameAndValue<'_>| {
            format!("{}: {}", name.escape_ascii(), value.escape_ascii())
        };
        fields.iter().map(line).collect()
    }

    #[test]
    fn origins_match_exactly_or_by_their_domain() {
        let rules = rules(listed(), false);
        for (origin, is_allowed) in [
            ("https://app.example.com", true),
            ("https://a.example.org", true),
            ("https://a-1.b_2.example.org", true),
            ("http://a.localhost:3000", true),
            ("http://app.example.com", false),
            ("https://app.example.com:8443", false),
            ("https://APP.example.com", false),
            ("https://app.example.com.", false),
            ("https://app.example.com/", false),
            ("https://app.example.com.evil.com", false),
            ("https://example.org", false),
            ("https://.example.org", false),
            ("https://a..example.org", false),
            ("https://evilexample.org", false),
            ("https://example.org.evil.com", false),
            ("https://evil.com/.example.org", false),
            ("https://evil.com:1.example.org", false),
            ("https://user@a.example.org", false),
            ("https://a.example.org:8443", false),
            ("http://a.example.org", false),
            ("https://A.example.org", false),
            ("http://a.localhost", false),
            ("http://a.localhost:30000", false),
            ("null", false),
            ("*", false),
            ("", false),
            ("https://a.example.org https://app.example.com", false),
        ] {
            let headers = [("Origin", origin)];
            let found = rules.allowed_origin(&headers[..]);
            assert_eq!(found.is_some(), is_allowed, "{origin}");
            assert!(found.is_none_or(|found| found == origin.as_bytes()));
        }
        let twice = [("Origin", "https://app.example.com"); 2];
        assert_eq!(rules.allowed_origin(&twice[..]), None);
        assert_eq!(rules.allowed_origin(&[("X", "y")][..]), None);
    }

    #[test]
    fn a_response_has_the_fields_of_its_origin() {
        let headers = [("ORIGIN", "https://app.example.com")];
        let with = rules(listed(), true);
        assert_eq!(
            shown(&with.response_fields(&headers[..])),
            [
                "access-control-allow-origin: https://app.example.com",
                "access-control-allow-credentials: true",
                "access-control-expose-headers: X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, \
                 Allow, WWW-Authenticate, Acme-X-Version, Acme-X-Version-Source, X-More",
                "vary: Origin",
            ]
        );
        let other = [("Origin", "https://evil.com")];
        assert_eq!(shown(&with.response_fields(&other[..])), ["vary: Origin"]);
        assert_eq!(shown(&with.response_fields(&[][..])), ["vary: Origin"]);
        let any = rules(AllowedOrigins::Any, false);
        let fields = shown(&any.response_fields(&other[..]));
        assert_eq!(fields[0], "access-control-allow-origin: *");
        assert_eq!(shown(&any.response_fields(&[][..])), ["vary: Origin"]);
    }

    #[test]
    fn a_preflight_lists_methods_and_headers() {
        let rules = rules(listed(), false);
        let headers = [("Origin", "https://a.example.org")];
        assert_eq!(
            shown(&rules.preflight_fields(&headers[..])),
            [
                "access-control-allow-origin: https://a.example.org",
                "access-control-allow-methods: GET, POST",
                "access-control-allow-headers: Acme-X-App, Acme-X-Version, X-Language, Acme-X-Authorization, Acme-X-Time, Acme-X-Sign, Acme-X-Nonce, \
                 Content-Type, X-Trace",
                "access-control-max-age: 600",
                "vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
            ]
        );
        let other = [("Origin", "https://evil.com")];
        assert_eq!(shown(&rules.preflight_fields(&other[..])).len(), 1);
    }

    #[test]
    fn only_options_with_origin_and_method_is_a_preflight() {
        let whole = [
            ("Origin", "null"),
            ("Access-Control-Request-Method", "POST"),
        ];
        let none = BodyLength::None;
        assert!(is_preflight(b"OPTIONS", none, &whole[..]));
        assert!(!is_preflight(b"GET", none, &whole[..]));
        assert!(!is_preflight(b"options", none, &whole[..]));
        for body in [BodyLength::Known(1), BodyLength::Unknown] {
            assert!(!is_preflight(b"OPTIONS", body, &whole[..]));
        }
        assert!(!is_preflight(b"OPTIONS", none, &whole[..1]));
        assert!(!is_preflight(b"OPTIONS", none, &whole[1..]));
    }

    #[test]
    fn only_headers_of_cors_are_removed() {
        for (name, is_removed) in [
            ("Access-Control-Allow-Origin", true),
            ("access-control-max-age", true),
            ("ACCESS-CONTROL-X", true),
            ("Access-Control", false),
            ("Vary", false),
            ("", false),
        ] {
            assert_eq!(is_of_cors(name.as_bytes()), is_removed, "{name}");
        }
    }
}

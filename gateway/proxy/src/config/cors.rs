//! CORS: which pages of other origins may call the gateway from a browser. CONTRACT 2.

use std::fmt;

use http::HeaderName;
use serde_json::json;
use signpost_kit::config::{Read, Section, Value, origin::Origin};

use super::readers::each;

const ALLOWED_ORIGIN: &str =
    "\"https://app.example.com\", \"https://*.example.com\", or \"*\" alone";
const ALLOWED_HEADER: &str = "the names of headers, for example \"X-Trace\"";
/// Limit of each list of headers: a browser reads them with every response.
const MAX_NAMES: usize = 64;

/// The settings of CORS; none if no origin is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// The origins of pages that may call.
    pub origins: AllowedOrigins,
    /// Whether such pages may send cookies, and use responses to requests with cookies.
    pub credentials: bool,
    /// Response headers that pages may read, in addition to Signpost's own.
    pub expose_headers: Vec<HeaderName>,
    /// Request headers that pages may send, in addition to the convention headers and `Content-Type`.
    pub allow_headers: Vec<HeaderName>,
}

/// The origins that may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedOrigins {
    /// All.
    Any,
    /// Origins that match one of these patterns: at least one.
    Listed(Vec<OriginPattern>),
}

impl AllowedOrigins {
    /// As the configuration has them.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::Any => vec!["*".to_owned()],
            Self::Listed(patterns) => patterns.iter().map(OriginPattern::to_string).collect(),
        }
    }
}

/// An origin, or all origins below a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginPattern {
    /// The serialized origin, for example `https://app.example.com`. RFC 6454.
    Exact(Box<[u8]>),
    /// One or more labels between these two, for example `https://` and `.example.com:8443`.
    Below {
        /// The scheme, with `://`.
        scheme: Box<[u8]>,
        /// The domain and port, with the dot in front.
        domain: Box<[u8]>,
    },
}

impl Cors {
    /// Reads the table; `None` if no origin is allowed.
    pub(super) fn read(section: &mut Section<'_>) -> Read<Option<Self>> {
        let origins = origins(section);
        let credentials = section.flag("credentials", false);
        let expose_headers = header_names(section, "expose_headers");
        let allow_headers = header_names(section, "allow_headers");
        let (origins, credentials) = (origins?, credentials?);
        if credentials && origins == Some(AllowedOrigins::Any) {
            let allowed = "false, if origins is \"*\": any page could act as the user";
            return Err(section.problem("credentials", "true", allowed));
        }
        let (expose_headers, allow_headers) = (expose_headers?, allow_headers?);
        Ok(origins.map(|origins| Self {
            origins,
            credentials,
            expose_headers,
            allow_headers,
        }))
    }
}

/// Reads `origins`; `None` if the list is empty.
fn origins(section: &mut Section<'_>) -> Read<Option<AllowedOrigins>> {
    const KEY: &str = "origins";
    let allowed = format!("a list of {ALLOWED_ORIGIN}");
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    section.describe(KEY, &allowed, texts);
    let Some(value) = section.find(KEY, &allowed) else {
        section.set(KEY, "[]");
        return Ok(None);
    };
    let items = value.items();
    let items = items.ok_or_else(|| value.invalid(&allowed))?;
    let texts: Vec<_> = items.iter().filter_map(Value::as_str).collect();
    if texts.contains(&"*") && items.len() > 1 {
        return Err(value.problem(
            "\"*\" beside other origins",
            "\"*\" alone, or a list without it",
        ));
    }
    value.set(format!("{texts:?}"));
    if texts == ["*"] {
        return Ok(Some(AllowedOrigins::Any));
    }
    let patterns = each(&items, pattern)?;
    Ok((!patterns.is_empty()).then_some(AllowedOrigins::Listed(patterns)))
}

fn pattern(item: &Value<'_>) -> Read<OriginPattern> {
    let Some(text) = item.as_str() else {
        return Err(item.invalid_unshown(ALLOWED_ORIGIN));
    };
    OriginPattern::parse(text).map_err(|why| {
        let shown = format!("{}, {why}", item.shown());
        item.problem(&shown, ALLOWED_ORIGIN)
    })
}

impl OriginPattern {
    /// Parses `scheme://host`, optionally with a port; the host may begin with `*.`.
    ///
    /// # Errors
    ///
    /// Why the text is not an origin.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("which has no scheme")?;
        if rest.contains(['/', '?', '#']) {
            return Err(match rest.find('/') {
                Some(at) if at == rest.len() - 1 => "which ends with a slash",
                _ => "which has a path",
            });
        }
        let below = rest.strip_prefix("*.");
        let host = below.unwrap_or(rest);
        if host.contains('*') {
            return Err("which has a wildcard that is not the whole first label");
        }
        let origin: Origin = format!("{scheme}://{host}")
            .parse()
            .map_err(|_| "which is not an origin")?;
        // In the form in which browsers send origins, since requests are compared byte for byte.
        let serialized = origin.to_string();
        if below.is_none() {
            return Ok(Self::Exact(serialized.into_bytes().into()));
        }
        if origin.to_url().domain().is_none() {
            return Err("which has a wildcard before an IP address");
        }
        let (scheme, host) = serialized
            .split_once("://")
            .ok_or("which is not an origin")?;
        Ok(Self::Below {
            scheme: format!("{scheme}://").into_bytes().into(),
            domain: format!(".{host}").into_bytes().into(),
        })
    }
}

impl fmt::Display for OriginPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest): (&[u8], &[u8]) = match self {
            Self::Exact(origin) => (b"", origin),
            Self::Below { scheme, domain } => (scheme, domain),
        };
        let wildcard = if scheme.is_empty() { "" } else { "*" };
        let [scheme, rest] = [scheme, rest].map(String::from_utf8_lossy);
        write!(formatter, "{scheme}{wildcard}{rest}")
    }
}

/// Reads a list of header names.
fn header_names(section: &mut Section<'_>, key: &str) -> Read<Vec<HeaderName>> {
    // A `*` would be a wildcard for browsers.
    let name = |text: &str| text.parse().ok().filter(|_| text != "*");
    let names: Vec<HeaderName> = section.list(key, &[], ALLOWED_HEADER, name)?;
    if names.len() > MAX_NAMES {
        let count = format!("{} names", names.len());
        return Err(section.problem(key, &count, &format!("at most {MAX_NAMES}")));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{MINIMAL, load, problems};

    fn cors(table: &str) -> Option<Cors> {
        load(&format!("{MINIMAL}[cors]\n{table}\n")).unwrap().cors
    }

    fn exact(text: &str) -> OriginPattern {
        OriginPattern::Exact(text.as_bytes().into())
    }

    fn below(scheme: &str, domain: &str) -> OriginPattern {
        OriginPattern::Below {
            scheme: scheme.as_bytes().into(),
            domain: domain.as_bytes().into(),
        }
    }

    #[test]
    fn cors_is_off_by_default() {
        assert_eq!(load(MINIMAL).unwrap().cors, None);
        assert_eq!(cors("origins = []\ncredentials = true"), None);
    }

    #[test]
    fn origins_are_kept_as_browsers_write_them() {
        for (written, expected) in [
            ("https://App.example.com", exact("https://app.example.com")),
            (
                "https://app.example.com:443",
                exact("https://app.example.com"),
            ),
            ("http://localhost:3000", exact("http://localhost:3000")),
            ("http://[::1]:3000", exact("http://[::1]:3000")),
            ("https://*.example.org", below("https://", ".example.org")),
            (
                "https://*.a.example.org:8443",
                below("https://", ".a.example.org:8443"),
            ),
            ("http://*.localhost:80", below("http://", ".localhost")),
        ] {
            let found = cors(&format!("origins = ['{written}']")).unwrap();
            assert_eq!(
                found.origins,
                AllowedOrigins::Listed(vec![expected]),
                "{written}"
            );
        }
        let all = cors("origins = ['*']").unwrap();
        assert_eq!(all.origins, AllowedOrigins::Any);
        assert!(!all.credentials);
    }

    #[test]
    fn every_problem_says_why() {
        for (table, found) in [
            (
                "origins = ['https://app.example/']",
                "cors.origins[0]: found 'https://…, which ends with a slash",
            ),
            ("origins = ['https://app.example/x']", "which has a path"),
            ("origins = ['https://app.example?x']", "which has a path"),
            ("origins = ['app.example']", "which has no scheme"),
            ("origins = ['null']", "which has no scheme"),
            ("origins = ['ftp://app.example']", "which is not an origin"),
            (
                "origins = ['https://user@app.example']",
                "which is not an origin",
            ),
            (
                "origins = ['https://a.*.example']",
                "which has a wildcard that is not the whole first label",
            ),
            (
                "origins = ['https://*app.example']",
                "which has a wildcard that is not the whole first label",
            ),
            (
                "origins = ['https://*.*.example']",
                "which has a wildcard that is not the whole first label",
            ),
            (
                "origins = ['https://*']",
                "which has a wildcard that is not the whole first label",
            ),
            (
                "origins = ['https://*.127.0.0.1']",
                "which has a wildcard before an IP address",
            ),
            ("origins = ['https://*.']", "which is not an origin"),
            (
                "origins = ['*', 'https://app.example']",
                "found \"*\" beside other origins",
            ),
            (
                "origins = ['*']\ncredentials = true",
                "cors.credentials: found true; allowed: false, if",
            ),
            ("origins = '*'", "allowed: a list of"),
            ("origins = [1]", "cors.origins[0]: found a whole number"),
            ("allow_headers = ['*']", "cors.allow_headers: found"),
            ("expose_headers = ['a b']", "cors.expose_headers: found"),
            (
                "origin = []",
                "cors.origin: unknown key; did you mean origins?",
            ),
        ] {
            let report = problems(&format!("{MINIMAL}[cors]\n{table}\n"));
            assert!(report.contains(found), "{table}\n{report}");
        }
    }
}

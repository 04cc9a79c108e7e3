//! Fixed headers of responses: `[headers.response]`, of the gateway or of a version. CONTRACT 1.

use http::{HeaderName, HeaderValue, header};
use signpost_kit::config::{Read, Section};
use signpost_protocol::header::{
    DEPRECATION, HeaderNames, INTERNAL_PREFIX, RATELIMIT, RATELIMIT_POLICY, SUNSET, X_REQUEST_ID,
};

use crate::{
    request::is_named,
    wire::syntax::field::{HOP_BY_HOP, NameAndValue},
};

const FIELDS: &str = "headers, each \"NAME: VALUE\", for example \"X-Frame-Options: DENY\"";
const NAMES: &str = "the names of headers, for example \"Server\"";
const ALLOWED: &str = "a header that neither the connection, the body, the convention nor the gateway itself decides on";
/// Limit of each list: a client reads the headers with every response.
const MAX_FIELDS: usize = 64;

/// The prefix of the headers of CORS, which `[cors]` decides on.
const CORS_PREFIX: &str = "access-control-";

/// Headers whose value the gateway or the login service decides.
const RESERVED: [HeaderName; 11] = [
    header::ALLOW,
    // The same value with each response could not describe every body.
    header::CONTENT_ENCODING,
    header::CONTENT_TYPE,
    header::DATE,
    header::LOCATION,
    header::RETRY_AFTER,
    header::SET_COOKIE,
    DEPRECATION,
    RATELIMIT,
    RATELIMIT_POLICY,
    SUNSET,
];

/// A header that is sent with each response.
type FixedField = (HeaderName, HeaderValue);

/// What one `[headers.response]` changes, in the form in which it is sent.
#[derive(Clone, Debug, Default)]
pub struct ResponseHeaders {
    /// The headers that are sent.
    fields: Vec<FixedField>,
    /// The headers that a backend's response loses.
    removed: Vec<HeaderName>,
}

impl ResponseHeaders {
    /// Reads `response` of the table `[headers]`. `names` are the names of the convention headers, if they are valid.
    pub(super) fn read(section: &mut Section<'_>, names: Option<&HeaderNames>) -> Read<Self> {
        section.section("response", |section| {
            let set = section.list("set", &[], FIELDS, field);
            let add = section.list("add", &[], FIELDS, field);
            let remove = section.list("remove", &[], NAMES, |name| name.parse().ok());
            let (set, add, removed) = (set?, add?, remove?);
            let of = |fields: &[FixedField]| fields.iter().map(|(name, _)| name.clone()).collect();
            let set_names: Vec<_> = of(&set);
            check("set", &set_names, section, names)?;
            check("add", &of(&add), section, names)?;
            check("remove", &removed, section, names)?;
            if let Some(name) = (1..set_names.len())
                .find(|&index| set_names[..index].contains(&set_names[index]))
                .map(|index| &set_names[index])
            {
                let twice = format!("\"{name}\" twice");
                return Err(section.problem("set", &twice, "each name once"));
            }
            Ok(Self {
                fields: [set, add].concat(),
                removed: [set_names, removed].concat(),
            })
        })
    }

    /// These headers of a version beside the gateway's, which lose what the version sets or removes.
    pub(super) fn beside(mut self, gateway: &Self) -> Self {
        let kept = gateway.fields.iter();
        let kept = kept.filter(|(name, _)| !self.removed.contains(name));
        self.fields = kept.cloned().chain(self.fields.iter().cloned()).collect();
        self.removed.extend_from_slice(&gateway.removed);
        self
    }

    /// The headers that are sent.
    pub fn fields(&self) -> impl Iterator<Item = NameAndValue<'_>> {
        let fields = self.fields.iter();
        fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
    }

    /// Whether a backend's response loses this header.
    #[must_use]
    pub fn replaces(&self, name: &[u8]) -> bool {
        self.removed.iter().any(|known| is_named(name, known))
    }
}

/// Parses `NAME: VALUE`. The value is visible ASCII, spaces and tabs; RFC 9110 section 5.5.
fn field(text: &str) -> Option<FixedField> {
    let (name, value) = text.split_once(':')?;
    let value = value.trim_matches([' ', '\t']);
    let value = Some(value).filter(|value| !value.is_empty() && value.is_ascii())?;
    Some((name.parse().ok()?, value.parse().ok()?))
}

/// Reports too many headers, or one that cannot be fixed.
fn check(
    key: &str,
    headers: &[HeaderName],
    section: &Section<'_>,
    names: Option<&HeaderNames>,
) -> Read<()> {
    if headers.len() > MAX_FIELDS {
        let count = format!("{} headers", headers.len());
        return Err(section.problem(key, &count, &format!("at most {MAX_FIELDS}")));
    }
    let Some(name) = headers.iter().find(|name| is_reserved(name, names)) else {
        return Ok(());
    };
    let allowed = if *name == header::STRICT_TRANSPORT_SECURITY {
        "tls.hsts of a listener"
    } else {
        ALLOWED
    };
    Err(section.problem(key, &format!("\"{name}\""), allowed))
}

fn is_reserved(name: &HeaderName, names: Option<&HeaderNames>) -> bool {
    let text = name.as_str();
    let is_of_convention = |names: &HeaderNames| {
        let own = [&names.version_source, &names.version, &names.app];
        own.contains(&name) || [&names.language, &names.authorization].contains(&name)
    };
    RESERVED.contains(name)
        || [X_REQUEST_ID, header::STRICT_TRANSPORT_SECURITY].contains(name)
        || HOP_BY_HOP.contains(&text.as_bytes())
        || text.starts_with(CORS_PREFIX)
        // Programs that get headers as variables (CGI, WSGI) take `_` for `-`.
        || text.replace('_', "-").starts_with(INTERNAL_PREFIX)
        || names.is_some_and(is_of_convention)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{MINIMAL, load, problems};

    fn shown(headers: &ResponseHeaders) -> Vec<String> {
        let fields = headers.fields();
        let line = |(name, value): NameAndValue<'_>| {
            format!("{}: {}", name.escape_ascii(), value.escape_ascii())
        };
        fields.map(line).collect()
    }

    #[test]
    fn a_version_has_its_own_headers_beside_the_gateways() {
        let config = load(&format!(
            "{MINIMAL}[headers.response]\nset = ['X-Frame-Options:DENY', 'X-A: 1']\nadd = ['Link: <a>', 'Link:  <b> ']\n\
             remove = ['Server']\n[versions.v1.headers.response]\nset = ['x-a: 2']\nremove = ['link', 'X-Powered-By']\n\
             [versions.v2]\nbackend = '127.0.0.1:1'\n"
        ));
        let config = config.unwrap();
        let of = |version: &str| {
            let version = config.versions.named(version.as_bytes()).unwrap();
            version.response_headers()
        };
        let all = ["x-frame-options: DENY", "x-a: 1", "link: <a>", "link: <b>"];
        assert_eq!(shown(&config.response_headers), all);
        assert_eq!(shown(of("v2")), all);
        assert_eq!(shown(of("v1")), ["x-frame-options: DENY", "x-a: 2"]);
        for (version, removed, kept) in [
            (
                "v1",
                &["SERVER", "Link", "x-powered-by", "X-A"][..],
                &["X-B"][..],
            ),
            (
                "v2",
                &["Server", "X-A", "X-Frame-Options"],
                &["Link", "X-Powered-By"],
            ),
        ] {
            let replaces = |name: &&str| of(version).replaces(name.as_bytes());
            assert!(removed.iter().all(replaces), "{version}");
            assert!(!kept.iter().any(replaces), "{version}");
        }
    }

    #[test]
    fn headers_that_others_decide_on_and_malformed_ones_are_rejected() {
        let wrong = |line: &str| problems(&format!("{MINIMAL}[headers.response]\n{line}\n"));
        for name in [
            "Date",
            "Content-Length",
            "content-type",
            "Transfer-Encoding",
            "Connection",
            "Trailer",
            "X-Request-Id",
            "X-Gateway-A",
            "X_Gateway_A",
            "Access-Control-Allow-Origin",
            "Set-Cookie",
            "Acme-X-Version",
            "Acme-X-Version-Source",
            "Acme-X-App",
            "Location",
            "RateLimit",
            "Sunset",
        ] {
            let lower = name.to_lowercase();
            for (key, line) in [
                ("set", format!("set = ['{name}: 1']")),
                ("add", format!("add = ['{name}: 1']")),
                ("remove", format!("remove = ['{name}']")),
            ] {
                let report = wrong(&line);
                let expected =
                    format!("headers.response.{key}: found \"{lower}\"; allowed: {ALLOWED}");
                assert!(report.contains(&expected), "{report}");
            }
        }
        for (line, expected) in [
            (
                "set = ['X-A']",
                "allowed: a list of headers, each \"NAME: VALUE\"",
            ),
            ("set = ['X-A:']", "allowed: a list of headers"),
            ("set = ['X A: 1']", "allowed: a list of headers"),
            ("add = [': 1']", "allowed: a list of headers"),
            (
                r#"add = ["X-A: 1\r\nX-B: 2"]"#,
                "allowed: a list of headers",
            ),
            ("add = ['X-A: \u{e4}']", "allowed: a list of headers"),
            (
                "remove = ['X-A: 1']",
                "allowed: a list of the names of headers",
            ),
            (
                "set = ['X-A: 1', 'x-a: 2']",
                "found \"x-a\" twice; allowed: each name once",
            ),
            (
                "set = ['Strict-Transport-Security: max-age=1']",
                "allowed: tls.hsts of a listener",
            ),
            ("replace = []", "unknown key; allowed:"),
        ] {
            let report = wrong(line);
            assert!(report.contains(expected), "{line}\n{report}");
        }
        let many: String = (0..65).map(|number| format!("'X-{number}',")).collect();
        let report = wrong(&format!("remove = [{many}]"));
        assert!(
            report.contains("found 65 headers; allowed: at most 64"),
            "{report}"
        );
    }
}

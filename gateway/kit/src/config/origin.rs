//! Web origins: allowed return addresses of a login, and the address at which browsers reach the gateway.

use std::{fmt, str::FromStr};

use url::{Position, Url};

/// Scheme (http or https), host and port (RFC 6454). `Display` is its ASCII serialization: `https://app.example:8443`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(Url);

impl Origin {
    /// The port, if the scheme is https.
    #[must_use]
    pub fn https_port(&self) -> Option<u16> {
        self.is_https()
            .then(|| self.0.port_or_known_default())
            .flatten()
    }

    /// Whether `url` has this origin. Both were parsed by the same parser.
    #[must_use]
    pub fn contains(&self, url: &Url) -> bool {
        url.scheme() == self.0.scheme()
            && url.host_str() == self.0.host_str()
            && url.port_or_known_default() == self.0.port_or_known_default()
    }

    /// Whether the scheme is https.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The URL of its root, `https://app.example/`.
    #[must_use]
    pub fn to_url(&self) -> Url {
        self.0.clone()
    }

    fn as_str(&self) -> &str {
        &self.0[..Position::BeforePath]
    }
}

impl FromStr for Origin {
    type Err = ParseOriginError;

    /// Letter case, a default port and one trailing slash do not matter.
    ///
    /// The parser (WHATWG URL) repairs much else: line breaks, missing slashes, numbers in place of addresses, letters
    /// beyond ASCII. Text that needs such a repair is rejected as a mistake. Wildcards are not supported: `*` would be
    /// a host name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let origin = Url::parse(text).map(Self).map_err(|_| ParseOriginError)?;
        let default_port = match origin.0.scheme() {
            "http" => ":80",
            "https" => ":443",
            _ => return Err(ParseOriginError),
        };
        let written = text.to_ascii_lowercase();
        let written = written.strip_suffix('/').unwrap_or(&written);
        let rest = written.strip_prefix(origin.as_str());
        let is_plain = rest.is_some_and(|rest| {
            rest.is_empty() || (rest == default_port && origin.0.port().is_none())
        });
        let is_whole = &origin.0[Position::BeforePath..] == "/";
        if is_plain && is_whole && !written.contains(['*', '@']) {
            Ok(origin)
        } else {
            Err(ParseOriginError)
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The text is no origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an origin: http or https, a host, optionally a port, and nothing else")]
pub struct ParseOriginError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_port_and_the_hosts_letter_case_do_not_matter() {
        let origin: Origin = "https://App.example:443".parse().unwrap();
        assert!(origin.contains(&Url::parse("https://app.example/path?x").unwrap()));
        assert!(!origin.contains(&Url::parse("http://app.example/").unwrap()));
        assert!(!origin.contains(&Url::parse("https://app.example:8443/").unwrap()));
        assert_eq!(origin.to_string(), "https://app.example");
        assert_eq!(origin, "HTTPS://app.EXAMPLE/".parse().unwrap());
        assert!(origin.is_https());
        assert_eq!(origin.to_url().as_str(), "https://app.example/");
    }

    #[test]
    fn hosts_are_names_or_addresses() {
        for good in [
            "http://127.0.0.1:8080",
            "http://[::1]:81",
            "https://xn--bcher-kva.example",
            "http://localhost",
        ] {
            assert_eq!(good.parse::<Origin>().unwrap().to_string(), good);
        }
    }

    #[test]
    fn anything_but_an_origin_is_rejected() {
        for bad in [
            "",
            "app.example",
            "https://",
            "https://app.example/path",
            "https://app.example?x",
            "https://app.example/?",
            "https://app.example/#f",
            "https://u@app.example",
            "https://@app.example",
            "ftp://app.example",
            "file:///x",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }

    #[test]
    fn text_that_the_parser_would_repair_is_rejected() {
        for bad in [
            " https://app.example",
            "https:app.example",
            "https:/app.example",
            "https:///app.example",
            "https:\\\\app.example",
            "https://app.example//",
            "https://app\n.example",
            "https://app%2Eexample",
            "https://bücher.example",
            "https://app.example:",
            "https://app.example:0443",
            "http://127.1",
            "http://0x7f000001",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn wildcards_are_rejected() {
        for wildcard in ["https://*", "https://*.example", "https://app.*"] {
            assert!(wildcard.parse::<Origin>().is_err(), "{wildcard}");
        }
    }
}

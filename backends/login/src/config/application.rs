//! The application of single-application mode, and the origins that logins may return to.

use std::{fmt, str::FromStr};

use url::Url;

use super::{problems::Problems, raw::RawApplication};

/// Shown on pages when no name was configured.
const NAME: &str = "Signpost";

/// What a record in the store says in multi-application mode.
#[derive(Clone, Debug)]
pub struct SingleApplication {
    /// Its name, for people.
    pub name: String,
    /// Origins that logins may return to; default none.
    pub return_to: Vec<Origin>,
}

impl SingleApplication {
    pub(super) fn read(raw: RawApplication, problems: &mut Problems) -> Self {
        let return_to = raw
            .return_to
            .unwrap_or_default()
            .into_iter()
            .filter_map(|origin| {
                problems.parse(
                    "application.return_to",
                    &origin,
                    "origins, \"https://app.example\" say",
                )
            });
        let return_to = return_to.collect();
        let name = raw.name.unwrap_or_else(|| NAME.to_owned());
        if name.trim().is_empty() || name.chars().count() > 100 {
            problems.add(
                "application.name",
                &format!("{name:?}"),
                "1 to 100 characters",
            );
        }
        Self { name, return_to }
    }
}

/// A web origin (RFC 6454): scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(url::Origin);

impl Origin {
    /// Whether `url` is of this origin. Both went through the same parser.
    #[must_use]
    pub fn is_of(&self, url: &Url) -> bool {
        url.origin() == self.0
    }
}

impl FromStr for Origin {
    type Err = ParseOriginError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Url::parse(text).map_err(|_| ParseOriginError)?;
        let is_web = matches!(url.scheme(), "http" | "https");
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        if is_web && is_bare && is_anonymous {
            Ok(Self(url.origin()))
        } else {
            Err(ParseOriginError)
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.ascii_serialization())
    }
}

/// The text is no origin of the web.
#[derive(Debug, thiserror::Error)]
#[error("an http or https origin: scheme, host and port only")]
pub struct ParseOriginError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_port_and_the_hosts_letter_case_do_not_matter() {
        let origin: Origin = "https://App.example:443".parse().unwrap();
        assert!(origin.is_of(&Url::parse("https://app.example/path?x").unwrap()));
        assert!(!origin.is_of(&Url::parse("http://app.example/").unwrap()));
        assert!(!origin.is_of(&Url::parse("https://app.example:8443/").unwrap()));
        assert_eq!(origin.to_string(), "https://app.example");
    }

    #[test]
    fn more_than_an_origin_is_refused() {
        for bad in [
            "",
            "app.example",
            "https://app.example/path",
            "https://u@app.example",
            "file:///x",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_asterisk_stands_for_no_other_host() {
        for wildcard in ["https://*", "https://*.example"] {
            let origin: Origin = wildcard.parse().unwrap();
            for address in ["https://app.example/", "https://example/"] {
                assert!(!origin.is_of(&Url::parse(address).unwrap()), "{wildcard}");
            }
        }
    }
}

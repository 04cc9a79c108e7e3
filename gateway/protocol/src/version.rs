//! Version names, and the source of a version. CONTRACT 5.

use std::str::FromStr;

use crate::word::{ParseError, is_word};

/// A version's name: `[A-Za-z0-9._-]{1,32}`, compared case-insensitively and kept in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(Box<str>);

impl Version {
    /// The name in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a header's value names this version. Does not allocate; a malformed value names none.
    #[must_use]
    pub fn is_named_by(&self, value: &[u8]) -> bool {
        self.0.as_bytes().eq_ignore_ascii_case(value)
    }
}

impl FromStr for Version {
    type Err = ParseError;

    /// Parses a name. Stored in lower case.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if is_word(name.as_bytes(), 32) {
            Ok(Self(name.to_ascii_lowercase().into_boxed_str()))
        } else {
            let rule = "1 to 32 letters, digits, dots, underscores or hyphens";
            Err(ParseError(rule))
        }
    }
}

show_as_str!(Version: Display);

label_enum! {
    /// Why a version was selected; the value of the version-source headers.
    pub enum VersionSource {
        /// Named in the version header.
        Header = "header",
        /// The request's host is the version's: no header.
        Host = "host",
        /// The path begins with the version's prefix: no header.
        Prefix = "prefix",
        /// The application's default version: no header.
        App = "app",
        /// The default route: no header, and the application has no default version.
        Default = "default",
        /// The default route: the version in the header does not exist.
        Unknown = "unknown",
        /// The version that issued the login's `state`, on the callback.
        State = "state",
    }
}

/// Returns the name of the version that issued a login's token or `state`: both are `<version>.<base64url>`. CONTRACT 8. Such a
/// version need not exist.
///
/// The provider's redirect cannot carry the gateway's headers, so its version is found in `state`. Only the login service knows
/// what the rest of the value means.
///
/// The last dot separates: a version's name may contain dots, base64url does not.
#[must_use]
pub fn version_of(state_or_token: &str) -> Option<&str> {
    state_or_token.rsplit_once('.').map(|(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_compares_without_letter_case_but_exactly() {
        let version: Version = "V2.Beta_1-x".parse().unwrap();
        assert_eq!(version.as_str(), "v2.beta_1-x");
        assert!(version.is_named_by(b"v2.BETA_1-X"));
        assert!(!version.is_named_by(b"v2"));
        assert!(!version.is_named_by(b" v2.beta_1-x"));
    }

    #[test]
    fn a_malformed_name_is_rejected() {
        for bad in ["", "v 1", "v/1", "ä", &"v".repeat(33)] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_sources_are_in_the_order_of_their_numbers() {
        for (index, source) in VersionSource::ALL.into_iter().enumerate() {
            assert_eq!(source as usize, index);
        }
    }

    #[test]
    fn a_source_is_found_by_its_own_word() {
        let found = VersionSource::from_word;
        assert_eq!(found("state"), Some(VersionSource::State));
        assert_eq!(found("State"), None);
    }

    #[test]
    fn the_version_precedes_the_last_dot() {
        assert_eq!(version_of("v1.AbC-_"), Some("v1"));
        assert_eq!(version_of("v1.2.AbC"), Some("v1.2"));
        assert_eq!(version_of("AbC"), None);
    }
}

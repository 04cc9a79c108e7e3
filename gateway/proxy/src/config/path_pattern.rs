//! Which paths an entry of the configuration is for. CONTRACT 5.

use std::{cmp::Reverse, fmt, str::FromStr};

use crate::wire::syntax::path::canonical_path;

/// In reports: stands for all paths that are not told apart. No path is like this.
pub const OTHER_PATHS: &str = "other";

/// The paths that it takes, in the form in which paths are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// `/orders`: this path only.
    Exact(Box<str>),
    /// `/orders/`: it and all below it. With its `/`.
    Below(Box<str>),
    /// `/orders/**`: `/orders`, and all below `/orders/`. Without `/**`.
    Tree(Box<str>),
}

/// A text is not a path that a request can have, or an ambiguous one, or has a `*` elsewhere than in the last `/**`.
#[derive(Debug)]
pub struct InvalidPattern;

impl PathPattern {
    /// What the configuration allows.
    pub const ALLOWED: &str = "a path, for example \"/orders\", \"/orders/\" for all below it, or \"/orders/**\" for both; no other *, and no \"//\", \"..\", \";\"";

    /// Whether it takes `path`. Allocates nothing.
    #[must_use]
    pub fn takes(&self, path: &str) -> bool {
        match self {
            Self::Exact(only) => path == &**only,
            Self::Below(start) => path.starts_with(&**start),
            // Whole segments only: `/orders/**` must not take `/orders-old`.
            Self::Tree(root) => path
                .strip_prefix(&**root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        }
    }

    /// The pattern of every path.
    pub(super) fn all() -> Self {
        Self::Below("/".into())
    }

    /// Whether it takes every path that `other` takes.
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Exact(path)) => self.takes(path),
            (Self::Exact(_), _) => false,
            // "/" takes every path; the root of "/**" is empty.
            (Self::Below(start), Self::Tree(root)) => &**start == "/" || root.starts_with(&**start),
            // What takes the shortest path of a pattern takes all that are below it.
            (_, Self::Below(start) | Self::Tree(start)) => self.takes(start),
        }
    }

    /// Whether it takes every request that is counted by this path, which has `*` for a segment that looks like data, unless it
    /// is a pattern itself.
    #[must_use]
    pub fn covers(&self, counted: &str) -> bool {
        match counted.parse() {
            Ok(other) => self.includes(&other),
            Err(InvalidPattern) => self.takes(counted),
        }
    }

    /// Of several that take a path, the one with the least key is for the fewest paths: the longest, and of `/orders` and
    /// `/orders/**` the first.
    pub(crate) fn precedence(&self) -> (Reverse<usize>, bool) {
        match self {
            Self::Exact(text) | Self::Below(text) => (Reverse(text.len()), false),
            Self::Tree(root) => (Reverse(root.len()), true),
        }
    }
}

impl FromStr for PathPattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let root = text.strip_suffix("/**");
        let base = root.unwrap_or(text);
        // A wildcard elsewhere would be taken literally, and match nothing.
        if canonical_path(text).is_none() || base.contains('*') {
            return Err(InvalidPattern);
        }
        // An escaped wildcard is none.
        let base = canonical_path(base).unwrap_or_default().into();
        Ok(match root {
            Some(_) => Self::Tree(base),
            None if base.ends_with('/') => Self::Below(base),
            None => Self::Exact(base),
        })
    }
}

/// As the configuration has it.
impl fmt::Display for PathPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) | Self::Below(text) => formatter.write_str(text),
            Self::Tree(root) => write!(formatter, "{root}/**"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_takes_its_paths() {
        for (pattern, taken, others) in [
            (
                "/orders",
                &["/orders"][..],
                &["/orders/", "/orders/1", "/order", "/orders2", "/Orders"][..],
            ),
            (
                "/orders/",
                &["/orders/", "/orders/1", "/orders//"],
                &["/orders", "/orders2"],
            ),
            (
                "/orders/**",
                &[
                    "/orders",
                    "/orders/",
                    "/orders/1",
                    "/orders/1/2",
                    "/orders//",
                ],
                &[
                    "/orders2",
                    "/orders%2F1",
                    "/order",
                    "/Orders",
                    "/",
                    "//orders",
                ],
            ),
            ("/", &["/", "/orders"], &[]),
            ("/**", &["/", "/orders"], &[]),
            ("/%C3%A9/**", &["/%C3%A9", "/%C3%A9/1"], &["/%c3%a9"]),
        ] {
            let parsed: PathPattern = pattern.parse().unwrap();
            assert_eq!(parsed.to_string(), pattern);
            for path in taken {
                assert!(parsed.takes(path), "{pattern} {path}");
            }
            for path in others {
                assert!(!parsed.takes(path), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn a_pattern_includes_those_for_fewer_paths() {
        for (pattern, included, others) in [
            ("/a", &["/a"][..], &["/a/", "/a/**", "/"][..]),
            ("/a/", &["/a/", "/a/b", "/a/b/**"], &["/a", "/a/**", "/**"]),
            ("/a/**", &["/a", "/a/", "/a/**", "/a/b/"], &["/ab", "/"]),
            ("/", &["/", "/**", "/a/**", "/a"], &[]),
            ("/**", &["/", "/**", "/a/**", "/a"], &[]),
        ] {
            let parsed = |text: &str| text.parse::<PathPattern>().unwrap();
            let includes = |other: &&str| parsed(pattern).includes(&parsed(other));
            assert!(included.iter().all(includes), "{pattern} {included:?}");
            assert!(!others.iter().any(includes), "{pattern} {others:?}");
        }
    }

    #[test]
    fn a_pattern_covers_what_is_counted_by_words_of_a_path() {
        for (pattern, counted, expected) in [
            ("/orders", "/orders", true),
            ("/orders/**", "/orders/*/lines", true),
            ("/orders/", "/orders/", true),
            ("/orders/", "/orders/**", false),
            ("/orders/1", "/orders/*", false),
            ("/", OTHER_PATHS, false),
        ] {
            let parsed: PathPattern = pattern.parse().unwrap();
            assert_eq!(parsed.covers(counted), expected, "{pattern} {counted}");
        }
    }

    #[test]
    fn a_pattern_is_written_in_the_form_in_which_paths_are_compared() {
        for (text, written) in [
            ("/%6Frders/**", "/orders/**"),
            ("/%c3%a9/", "/%C3%A9/"),
            ("/a/%2A%2A", "/a/**"),
        ] {
            let pattern: PathPattern = text.parse().unwrap();
            assert_eq!(pattern.to_string(), written);
        }
        let no_wildcard: PathPattern = "/a/%2A%2A".parse().unwrap();
        assert!(!no_wildcard.takes("/a/b"));
    }

    #[test]
    fn other_texts_are_no_patterns() {
        for text in [
            "",
            "orders",
            "**",
            "/orders/*",
            "/*",
            "/**/orders",
            "/a/**/b",
            "/a/**/**",
            "/a/**/",
            // Issue 44, row 39: these would match nothing.
            "/orders**",
            "/orders*",
            "/a*b",
            "/*a/**",
            "/a?b",
            "/a b",
            "/\u{e4}",
            "//orders",
            "/orders//**",
            "/orders/../**",
            "/orders;x",
            "/orders%2F1",
        ] {
            assert!(text.parse::<PathPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_pattern_for_the_fewest_paths_comes_first() {
        let mut patterns: Vec<PathPattern> = [
            "/**",
            "/orders/**",
            "/",
            "/orders/",
            "/orders",
            "/orders/1/**",
        ]
        .map(|text| text.parse().unwrap())
        .into();
        patterns.sort_by_key(PathPattern::precedence);
        let sorted: Vec<_> = patterns.iter().map(ToString::to_string).collect();
        assert_eq!(
            sorted,
            [
                "/orders/1/**",
                "/orders/",
                "/orders",
                "/orders/**",
                "/",
                "/**"
            ]
        );
    }
}

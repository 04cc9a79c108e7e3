//! By which path a request is counted: its pattern.
//!
//! | request | pattern |
//! | --- | --- |
//! | a route of its version takes it | the route's path |
//! | a change or the shadow of its version takes it | of these paths, the one for the fewest requests, as pairs have it |
//! | any other | its path, with `*` for each segment that looks like data |
//!
//! A client can invent paths, but none of the configuration. So each bound of the others has a rest,
//! [`OTHER_PATHS`](crate::config::OTHER_PATHS), and an application leaves room to others. Of requests that anyone can send,
//! only those count that the gateway accepted and that did not fail; they fill half of each bound.

use std::collections::BTreeMap;

use signpost_protocol::version::Version;

use super::Day;
use crate::{config::PathPattern, observe::outcome::Outcome, request::Method};

/// Patterns of a version that a gateway tells apart on a day, each with its method, beside those of the configuration.
pub const MAX_PATTERNS: usize = 500;

/// Patterns of them that one application can be the first to use; and its paths between two collections.
pub(super) const MAX_OF_APP: usize = 400;

/// Segments of a pattern; those beyond them are not told apart.
const MAX_SEGMENTS: usize = 12;

/// Bytes of a segment that is a word.
const MAX_WORD: usize = 32;

/// Large letters of a word that has small ones, too: `listOpenOrders` has two.
const MAX_LARGE: u64 = 4;

const DIGIT: u64 = 1;
const LARGE: u64 = 1 << 16;
const SMALL: u64 = 1 << 32;
const NO_WORD: u64 = 1 << 48;

/// The class of each byte. Their sum counts the bytes of each class: a segment is shorter than 65,536 bytes.
static CLASSES: [u64; 256] = {
    let mut classes = [NO_WORD; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => DIGIT,
            b'A'..=b'Z' => LARGE,
            b'a'..=b'z' => SMALL,
            b'-' | b'_' | b'.' => 0,
            _ => NO_WORD,
        };
        byte += 1;
    }
    classes
};

/// Whether a request is counted by its path: with a route, and signed; or else accepted, with a response that is no error.
pub(super) fn is_counted(outcome: &Outcome<'_>) -> bool {
    let is_accepted = outcome.rejection.is_none() && (200..400).contains(&outcome.sent.status);
    outcome.learnt.route.is_some() && (outcome.learnt.is_signed || is_accepted)
}

/// Writes the pattern of a request into `text`: one of the configuration, if it has one.
pub(super) fn write_pattern(text: &mut String, configured: Option<&PathPattern>, path: &str) {
    text.clear();
    match configured {
        Some(pattern) => pattern.write(text),
        None => write_words(text, path),
    }
}

/// Writes a path, with `*` for each segment that looks like data.
fn write_words(text: &mut String, path: &str) {
    let path = if path.is_empty() { "/" } else { path };
    let (mut written, mut begin) = (0, 0);
    let segments = path.as_bytes().split(|byte| *byte == b'/');
    // A path begins with "/": its first segment is empty.
    for (number, segment) in segments.enumerate() {
        if number > MAX_SEGMENTS {
            return text.extend([&path[written..begin], "**"]);
        }
        let end = begin + segment.len();
        if !is_word(segment) {
            text.extend([&path[written..begin], "*"]);
            written = end;
        }
        begin = end + 1;
    }
    text.push_str(&path[written..]);
}

/// Whether a segment is a word of an API: letters, hyphens, underscores and dots; one digit may end it, as in `v2`.
fn is_word(segment: &[u8]) -> bool {
    if segment.len() > MAX_WORD {
        return false;
    }
    let classes = segment.iter().map(|byte| CLASSES[usize::from(*byte)]);
    let counts: u64 = classes.sum();
    let of = |class: u64| counts / class % LARGE;
    let is_numbered = of(DIGIT) == 1 && segment.len() > 1;
    let is_numbered = is_numbered && segment.last().is_some_and(u8::is_ascii_digit);
    counts < NO_WORD
        && (of(DIGIT) == 0 || is_numbered)
        && (of(LARGE) <= MAX_LARGE || of(SMALL) == 0)
}

/// The patterns that a gateway tells apart today.
#[derive(Debug, Default)]
pub(super) struct Known {
    day: Option<Day>,
    /// Each with the application that was the first to use it.
    of: BTreeMap<Version, BTreeMap<(Method, Box<str>), i64>>,
}

impl Known {
    /// Whether the pattern is one of the [`MAX_PATTERNS`] of its version on this day.
    pub(super) fn has_room(
        &mut self,
        (day, version): (Day, &Version),
        (method, pattern): (Method, &str),
        (application, is_signed): (i64, bool),
    ) -> bool {
        if self.day.replace(day) != Some(day) {
            self.of.clear();
        }
        let known = self.of.entry(version.clone()).or_default();
        let key = (method, pattern.into());
        if known.contains_key(&key) {
            return true;
        }
        let max = MAX_PATTERNS / if is_signed { 1 } else { 2 };
        let of_app = known.values().filter(|first| **first == application);
        let has_room = known.len() < max && of_app.count() < MAX_OF_APP;
        if has_room {
            known.insert(key, application);
        }
        has_room
    }
}

impl PathPattern {
    /// As [`ToString`], without an allocation.
    fn write(&self, text: &mut String) {
        match self {
            Self::Exact(path) | Self::Below(path) => text.push_str(path),
            Self::Tree(root) => text.extend([root, "/**"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_look_like_data_are_not_told_apart() {
        for (path, expected) in [
            ("/", "/"),
            ("", "/"),
            ("/orders/42/lines", "/orders/*/lines"),
            ("/orders/", "/orders/"),
            ("/users/3f2b9c1e-0d8e-4a58-9f1d-0a7c4f7e2b11", "/users/*"),
            ("/v2/oauth2/token", "/v2/oauth2/token"),
            ("/listOpenOrders", "/listOpenOrders"),
            ("/files/report.pdf", "/files/report.pdf"),
            ("/t/aBcDeFgHiJ", "/t/*"),
            ("/AVAILABLE", "/AVAILABLE"),
            ("/t/ab12", "/t/*"),
            ("/t/7", "/t/*"),
            ("/t/a%20b", "/t/*"),
            ("/t/me@example.com", "/t/*"),
            ("/t/thisisaverylongsegmentthatnobodywrites", "/t/*"),
            (
                "/a/b/c/d/e/f/g/h/i/j/k/l/m/n",
                "/a/b/c/d/e/f/g/h/i/j/k/l/**",
            ),
        ] {
            let mut text = String::new();
            write_words(&mut text, path);
            assert_eq!(text, expected, "{path}");
        }
    }

    #[test]
    fn a_version_has_a_bounded_number_of_patterns_on_a_day() {
        let (mut known, version) = (Known::default(), "v1".parse().unwrap());
        let today = Day::at(signpost_kit::clock::Timestamp::from_millis(0));
        let room = |known: &mut Known, number: usize, by| {
            let pattern = format!("/{number}");
            known.has_room((today, &version), (Method::Get, &pattern), by)
        };
        let half = MAX_PATTERNS / 2;
        assert!((0..half).all(|number| room(&mut known, number, (1, false))));
        assert!(!room(&mut known, half, (1, false)));
        assert!((half..MAX_OF_APP).all(|number| room(&mut known, number, (1, true))));
        // One application leaves room to others.
        assert!(!room(&mut known, MAX_OF_APP, (1, true)));
        assert!((MAX_OF_APP..MAX_PATTERNS).all(|number| room(&mut known, number, (2, true))));
        assert!(!room(&mut known, MAX_PATTERNS, (2, true)));
        // What is known stays known, whoever sends it.
        assert!(room(&mut known, MAX_PATTERNS - 1, (1, false)));
        let tomorrow = Day::at(today.begin().plus(std::time::Duration::from_secs(86_400)));
        assert!(known.has_room((tomorrow, &version), (Method::Get, "/new"), (1, true)));
    }
}

//! The series and labels that an expression of `PromQL` uses. It is split into words only: whether it is valid, a real
//! Prometheus says.

use std::collections::{BTreeMap, BTreeSet};

/// What an expression uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Each series, with the labels in its selectors.
    pub series: BTreeMap<String, BTreeSet<String>>,
    /// The matchers in the selectors of all series.
    pub matchers: Vec<Matcher>,
    /// Labels by which it aggregates or joins.
    pub grouping: BTreeSet<String>,
}

/// A matcher in a selector, for example `a{b=~"c|d"}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    /// The series, here `a`.
    pub series: String,
    /// The label, here `b`.
    pub label: String,
    /// Whether it matches a regular expression: `=~` or `!~`.
    pub is_regex: bool,
    /// What it matches, as it is between the quotes.
    pub pattern: String,
}

impl Matcher {
    /// The values that it names: one, or the alternatives of a regular expression.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        let limit = if self.is_regex { usize::MAX } else { 1 };
        self.pattern.splitn(limit, '|')
    }
}

/// Words that are followed by a list of labels.
const GROUPING: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];

/// Words between expressions.
const OPERATORS: [&str; 7] = ["and", "or", "unless", "bool", "offset", "inf", "nan"];

/// Reads an expression.
#[must_use]
pub fn uses(expression: &str) -> Uses {
    let mut uses = Uses::default();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '"' | '\'' | '`' => behind_string(rest),
            '[' => rest.split_once(']').map_or("", |(_, behind)| behind),
            '0'..='9' | '.' => behind_word(rest).1,
            letter if is_of_word(letter) => {
                let (word, behind) = behind_word(rest);
                uses.add(word, behind.trim_start())
            }
            other => &rest[other.len_utf8()..],
        }
        .trim_start();
    }
    uses
}

impl Uses {
    /// Adds what a word means, and returns what follows.
    fn add<'e>(&mut self, word: &str, behind: &'e str) -> &'e str {
        if GROUPING.contains(&word) {
            let (inner, behind) = split_list(behind, '(', ')');
            self.grouping.extend(labels(inner));
            return behind;
        }
        let next = behind_word(behind).0;
        let is_function = behind.starts_with('(') || GROUPING[..2].contains(&next);
        if is_function || OPERATORS.contains(&word) {
            return behind;
        }
        let used = self.series.entry(word.to_owned()).or_default();
        let (inner, behind) = split_list(behind, '{', '}');
        used.extend(labels(inner));
        self.matchers.extend(matchers(word, inner));
        behind
    }
}

/// The labels of a list, with or without values.
fn labels(list: &str) -> impl Iterator<Item = String> {
    let mut rest = list.trim_start();
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            if is_of_word(first) {
                let (word, behind) = behind_word(rest);
                rest = behind;
                return Some(word.to_owned());
            }
            rest = if first == '"' {
                behind_string(rest)
            } else {
                &rest[first.len_utf8()..]
            };
        }
    })
}

/// The matchers of a selector's list.
fn matchers<'l>(series: &'l str, list: &'l str) -> impl Iterator<Item = Matcher> + 'l {
    let mut rest = list;
    std::iter::from_fn(move || {
        let (label, behind) = behind_word(rest.trim_start_matches([',', ' ', '\n']));
        let operator = behind.trim_start();
        let value = operator.trim_start_matches(['=', '!', '~', ' ']);
        rest = behind_string(value);
        let pattern = value.get(1..value.len() - rest.len())?;
        Some(Matcher {
            series: series.to_owned(),
            label: label.to_owned(),
            is_regex: operator[1..].starts_with('~'),
            pattern: pattern.trim_end_matches(['"', '\'']).to_owned(),
        })
    })
}

/// The content of a list at the beginning, and what follows it; nothing, if there is no list.
fn split_list(text: &str, open: char, close: char) -> (&str, &str) {
    let Some(inner) = text.strip_prefix(open) else {
        return ("", text);
    };
    let mut rest = inner;
    while let Some(letter) = rest.chars().next() {
        if letter == close {
            let length = inner.len() - rest.len();
            return (&inner[..length], &rest[letter.len_utf8()..]);
        }
        rest = if letter == '"' {
            behind_string(rest)
        } else {
            &rest[letter.len_utf8()..]
        };
    }
    (inner, "")
}

/// What follows the string at the beginning.
fn behind_string(text: &str) -> &str {
    let mut letters = text.char_indices();
    let Some((_, quote)) = letters.next() else {
        return "";
    };
    while let Some((offset, letter)) = letters.next() {
        if letter == quote {
            return &text[offset + letter.len_utf8()..];
        }
        if letter == '\\' {
            letters.next();
        }
    }
    ""
}

fn behind_word(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !is_of_word(letter) && letter != '.');
    text.split_at(end.unwrap_or(text.len()))
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_:".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn series_and_labels_are_found() {
        let expression = r#"histogram_quantile(0.99, sum by (job, le) (rate(a_bucket{b=~"x}|y\"", c!=""}[5m])))
            / on (job) group_left () (d:e > 1e3) or 0 * sum(f offset 5m) without (g)
            and absent(up{job="h"} == 1) unless time() - i < 14 * 86400"#;
        let uses = uses(expression);
        let names: Vec<_> = uses.series.keys().map(String::as_str).collect();
        assert_eq!(names, ["a_bucket", "d:e", "f", "i", "up"]);
        assert_eq!(uses.series["a_bucket"], set(&["b", "c"]));
        assert_eq!(uses.series["up"], set(&["job"]));
        assert_eq!(uses.grouping, set(&["g", "job", "le"]));
    }

    #[test]
    fn matchers_are_found() {
        let uses = uses(r#"sum(a{b=~"x|y.*", c!="", d = "e|f"}) / b{} + c{d!~'x'}"#);
        let found = uses.matchers.iter().map(|matcher| {
            let values: Vec<_> = matcher.values().collect();
            (&*matcher.series, &*matcher.label, values)
        });
        let expected = [
            ("a", "b", vec!["x", "y.*"]),
            ("a", "c", vec![""]),
            ("a", "d", vec!["e|f"]),
            ("c", "d", vec!["x"]),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_name_alone_is_a_series() {
        assert_eq!(uses("up").series.len(), 1);
        assert_eq!(uses(" rate(a[$__rate_interval]) ").series.len(), 1);
        assert_eq!(uses("5 + 1.5").series.len(), 0);
    }
}

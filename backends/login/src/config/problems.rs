//! Everything that is wrong with a configuration, told at once: file, key, what was found, what is allowed.

use std::{
    fmt,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    str::FromStr,
};

/// One key that is unknown, or whose value is not one it can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    key: String,
    found: String,
    allowed: String,
}

impl ConfigProblem {
    /// `key` is dotted, empty for the file as a whole; `found` must not repeat a secret.
    #[must_use]
    pub fn new(key: &str, found: &str, allowed: &str) -> Self {
        Self {
            key: key.to_owned(),
            found: found.to_owned(),
            allowed: allowed.to_owned(),
        }
    }

    /// The key it is about.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// All problems of one file, each on a line of its own when shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblems {
    file: PathBuf,
    problems: Vec<ConfigProblem>,
}

impl ConfigProblems {
    pub(super) fn none() -> Self {
        Self {
            file: PathBuf::new(),
            problems: Vec::new(),
        }
    }

    pub(super) fn of_file(self, file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            ..self
        }
    }

    pub(super) fn push(&mut self, problem: ConfigProblem) {
        self.problems.push(problem);
    }

    pub(super) fn extend(&mut self, more: Self) {
        self.problems.extend(more.problems);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// The problems, in the order of the configuration's own sections.
    pub fn iter(&self) -> std::slice::Iter<'_, ConfigProblem> {
        self.problems.iter()
    }
}

impl From<ConfigProblem> for ConfigProblems {
    fn from(problem: ConfigProblem) -> Self {
        Self {
            problems: vec![problem],
            ..Self::none()
        }
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.problems.iter().enumerate() {
            let line_break = if place == 0 { "" } else { "\n" };
            write!(formatter, "{line_break}{}: ", self.file.display())?;
            if !problem.key.is_empty() {
                write!(formatter, "{}: ", problem.key)?;
            }
            write!(
                formatter,
                "found {}; allowed: {}",
                problem.found, problem.allowed
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblems {}

/// Of an address no more than its scheme: it may hold a password.
fn without_address(found: &str) -> String {
    match found.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://…"),
        None => found.to_owned(),
    }
}

/// Collects problems while values are parsed, so that one bad value does not hide the next.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<ConfigProblem>);

impl Problems {
    pub(super) fn add(&mut self, key: &str, found: &str, allowed: &str) {
        self.0
            .push(ConfigProblem::new(key, &without_address(found), allowed));
    }

    /// Parses a value that is no secret.
    pub(super) fn parse<T: FromStr>(&mut self, key: &str, value: &str, allowed: &str) -> Option<T> {
        let parsed = value.parse().ok();
        if parsed.is_none() {
            self.add(key, &format!("{value:?}"), allowed);
        }
        parsed
    }

    /// Takes a number within a range, both ends included; a bad one is noted and the default returned.
    pub(super) fn within(
        &mut self,
        key: &str,
        given: Option<i64>,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> u64 {
        let Some(given) = given else { return default };
        match u64::try_from(given) {
            Ok(number) if range.contains(&number) => number,
            _ => {
                self.add(
                    key,
                    &given.to_string(),
                    &format!("{} to {}", range.start(), range.end()),
                );
                default
            }
        }
    }

    /// `Ok` as long as nothing was noted.
    pub(super) fn is_none(&self) -> Result<(), ()> {
        if self.0.is_empty() { Ok(()) } else { Err(()) }
    }
}

impl From<Problems> for ConfigProblems {
    fn from(problems: Problems) -> Self {
        Self {
            problems: problems.0,
            ..Self::none()
        }
    }
}

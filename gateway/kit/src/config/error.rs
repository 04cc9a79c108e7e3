//! The problems of a configuration file, as its author reads them.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::settings::ReadFile;

/// A value is invalid or missing. The problem is recorded already: reading continues, to find the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// The result of reading a key.
pub type Read<T> = Result<T, Invalid>;

/// Why a configuration cannot be used. `Display` has a line for each problem: file, line, key, what was found, what is
/// allowed.
#[derive(Debug)]
pub struct ConfigError {
    pub(super) path: PathBuf,
    /// In the order of the file.
    pub problems: Vec<Problem>,
    /// The file and the files that it names, as they were read.
    pub(crate) files: Vec<ReadFile>,
}

/// One problem of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "operators", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "operators", schema(as = ConfigProblem))]
pub struct Problem {
    /// Counted from 1; `None` if the problem is a missing key.
    pub line: Option<usize>,
    /// Dotted; empty if the problem concerns no key.
    pub key: String,
    /// What was found, and what is allowed.
    pub text: String,
    #[serde(skip)]
    pub(super) is_missing: bool,
}

impl Problem {
    pub(super) fn new(line: Option<usize>, key: impl Into<String>, text: String) -> Self {
        Self {
            line,
            key: key.into(),
            text,
            is_missing: false,
        }
    }

    fn in_file(&self, path: &Path) -> String {
        let line = self.line.map(|line| format!(":{line}"));
        let key = Some(&self.key).filter(|key| !key.is_empty());
        let key = key.map(|key| format!("{key}: "));
        format!(
            "{}{}: {}{}",
            path.display(),
            line.unwrap_or_default(),
            key.unwrap_or_default(),
            self.text
        )
    }
}

impl ConfigError {
    /// A problem of the whole file. `files` are all files that were read.
    pub(crate) fn new(path: &Path, text: String, files: Vec<ReadFile>) -> Self {
        Self {
            path: path.to_owned(),
            problems: vec![Problem::new(None, "", text)],
            files,
        }
    }

    /// A problem of a key that only the system around the file shows.
    pub(crate) fn of_key(path: &Path, key: &str, text: String) -> Self {
        let mut error = Self::new(path, text, Vec::new());
        error.problems[0].key = key.to_owned();
        error
    }

    /// The lines of `Display`, one for each problem.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |problem: &Problem| problem.in_file(&self.path);
        self.problems.iter().map(line).collect()
    }

    /// The keys that have problems, dotted; empty if a problem concerns none.
    #[must_use]
    pub fn keys(&self) -> Vec<&str> {
        let keys = self.problems.iter().map(|problem| problem.key.as_str());
        keys.collect()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines().join("\n"))
    }
}

impl std::error::Error for ConfigError {}

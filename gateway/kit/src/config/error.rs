//! The problems of a configuration file, as its author reads them.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use super::settings::ReadFile;

/// A value is invalid or missing. The problem is recorded already: reading continues, to find the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// The result of reading a key.
pub type Read<T> = Result<T, Invalid>;

/// Why a configuration cannot be used. `Display` has a line for each problem: file, line, key, what was found, what is
/// allowed.
#[derive(Debug)]
pub enum ConfigError {
    /// The file does not exist or cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The file is not TOML, or has unknown keys or invalid values.
    Invalid {
        /// The file.
        path: PathBuf,
        /// All problems, in the order of the file.
        problems: Vec<Problem>,
        /// The file and the files that it names, as they were read.
        files: Vec<ReadFile>,
    },
}

/// One problem of a file.
#[derive(Clone, PartialEq, Eq)]
pub struct Problem {
    /// Counted from 1; `None` if the problem is a missing key.
    pub(super) line: Option<usize>,
    /// Dotted; empty if the problem concerns no key.
    pub(super) key: String,
    pub(super) text: String,
    pub(super) is_missing: bool,
}

impl Problem {
    /// A reader failed without reporting a problem: a bug. The program must not start with half a configuration.
    pub(super) fn unexplained() -> Self {
        Self {
            line: None,
            key: String::new(),
            text: "internal error: a value was rejected without a reason; please report it"
                .to_owned(),
            is_missing: false,
        }
    }

    /// The key, dotted; empty if the problem concerns no key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl ConfigError {
    /// The lines of `Display`, one for each problem.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Unreadable { path, cause } => {
                vec![format!("{}: cannot be read: {cause}", path.display())]
            }
            Self::Invalid { path, problems, .. } => {
                let line = |problem: &Problem| problem.in_file(path);
                problems.iter().map(line).collect()
            }
        }
    }

    /// The configuration file and the files that it names, as they were read.
    #[must_use]
    pub fn files(&self) -> Vec<ReadFile> {
        match self {
            Self::Unreadable { path, .. } => vec![ReadFile::new(path, None)],
            Self::Invalid { files, .. } => files.clone(),
        }
    }

    /// The keys that have problems.
    #[must_use]
    pub fn keys(&self) -> Vec<&str> {
        match self {
            Self::Unreadable { .. } => Vec::new(),
            Self::Invalid { problems, .. } => problems.iter().map(Problem::key).collect(),
        }
    }
}

impl Problem {
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

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.lines().join("\n"))
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Debug for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.in_file(Path::new("")))
    }
}

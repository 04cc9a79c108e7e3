//! What is wrong with a configuration, for the person who wrote it.

use std::{
    cell::Cell,
    fmt::{self, Display},
    path::{Path, PathBuf},
};

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there, or may not be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The file is no TOML.
    #[error("{}: line {line}: not TOML: {cause}", path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the parser says.
        cause: String,
    },
    /// Keys or values that it cannot have.
    #[error("{}", problems.display(path))]
    Problems {
        /// The file.
        path: PathBuf,
        /// All of them.
        problems: Problems,
    },
}

/// Everything that is wrong with one file.
#[derive(Debug)]
pub struct Problems(Vec<Problem>);

/// One key that is wrong, or missing.
pub(super) struct Problem {
    pub(super) key: String,
    pub(super) found: String,
    pub(super) allowed: String,
}

impl Problems {
    pub(super) fn new(problems: Vec<Problem>) -> Self {
        Self(problems)
    }

    fn display<'p>(&'p self, path: &'p Path) -> impl Display + 'p {
        let first = Cell::new(true);
        fmt::from_fn(move |formatter| {
            for problem in &self.0 {
                if !first.replace(false) {
                    writeln!(formatter)?;
                }
                let Problem {
                    key,
                    found,
                    allowed,
                } = problem;
                write!(
                    formatter,
                    "{}: {key}: found {found}; allowed: {allowed}",
                    path.display()
                )?;
            }
            first.set(true);
            Ok(())
        })
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.key)
    }
}

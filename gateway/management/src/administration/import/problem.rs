//! The problems of a file. None quotes the file: if columns are mixed up, it would show keys.

use std::{borrow::Cow, fmt, io};

use signpost_protocol::label_enum;
use signpost_proxy::AppStoreError;

/// Limit of a file's size: 64 MiB. It is held in memory, so that it can be wiped, and validated before anything is
/// written.
pub(crate) const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;
/// Limit of a line of JSON: far above an application with 100 origins. Its values take many times its size in memory.
pub(super) const MAX_LINE_BYTES: usize = 256 * 1024;
/// Limit of applications per file. Each takes about 0.5 KiB of memory in addition to the file.
pub(crate) const MAX_APPLICATIONS: usize = 250_000;
/// Limit of problems that are listed; the rest are counted.
pub(super) const MAX_SHOWN_PROBLEMS: usize = 50;

label_enum! {
    /// A column, or member, with its name.
    #[derive(Hash)]
    pub(super) enum Field {
        Ident = "ident",
        Key = "key",
        Name = "name",
        Origins = "origins",
        Profile = "profile",
        DefaultVersion = "default_version",
        RateLimit = "rate_limit",
        Extensions = "extensions",
        State = "state",
    }
}

impl Field {
    /// The field with this name. `app list --json` has other names for some fields; both are read.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "return_to" => Some(Self::Origins),
            "sign_profile" => Some(Self::Profile),
            _ => Self::from_word(name),
        }
    }
}

/// A problem of a line. It never quotes the file.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(super) line: u64,
    pub(super) field: Option<Field>,
    pub(super) what: Cow<'static, str>,
}

impl Problem {
    pub(in crate::administration) fn new(line: u64, what: &'static str) -> Self {
        Self {
            line,
            field: None,
            what: Cow::Borrowed(what),
        }
    }

    /// The ident exists in the store already.
    pub fn taken(line: u64) -> Self {
        Self {
            field: Some(Field::Ident),
            ..Self::new(line, "the store already has this ident")
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: ", self.line)?;
        if let Some(field) = self.field {
            write!(formatter, "{}: ", field.as_str())?;
        }
        formatter.write_str(&self.what)
    }
}

/// All problems of a file, ordered by line.
#[derive(Clone, Debug)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Problems, in the order of their lines.
    pub fn new(mut problems: Vec<Problem>) -> Self {
        // A stable sort: the problems of one line stay in the order of the checks.
        problems.sort_by_key(|problem| problem.line);
        Self(problems)
    }
}

/// One problem per line; at most [`MAX_SHOWN_PROBLEMS`], then the number of the rest.
impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().take(MAX_SHOWN_PROBLEMS).enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(formatter, "{line_break}{problem}")?;
        }
        match self.0.len().saturating_sub(MAX_SHOWN_PROBLEMS) {
            0 => Ok(()),
            more => write!(formatter, "\nand {more} more problems"),
        }
    }
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file's problems, by line.
    #[error("{0}")]
    Problems(Problems),
    /// The file is too large for one import.
    #[error("the file is larger than {} MiB: import it in parts", MAX_FILE_BYTES / 1024 / 1024)]
    TooLarge,
    /// The file has too many applications for one import.
    #[error("the file has more than {MAX_APPLICATIONS} applications: import it in parts")]
    TooMany,
    /// The file cannot be read.
    #[error("cannot be read")]
    Io(#[from] io::Error),
    /// The file is not CSV.
    #[error("neither CSV nor JSON lines")]
    Unreadable,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] AppStoreError),
}

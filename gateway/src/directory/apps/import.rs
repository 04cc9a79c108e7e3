//! Import of applications: reads a file, and reports all of its problems by line.
//!
//! A file is CSV (RFC 4180, UTF-8) with a header row, or JSON lines (one object per line); its first character decides.
//! A problem never quotes the file: if columns are mixed up, it would show keys.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    io::{self, Read},
};

use serde_json::{Map, Value};
use signpost_kit::clock::Timestamp;
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
};
use zeroize::{Zeroize, Zeroizing};

use super::{
    administration::{AdministrationError, AppName, Origin, ProfileChoice, Rules, texts},
    store::{AppStoreError, NewApp},
};

/// Limit of a file's size: 64 MiB. It is held in memory, so that it can be wiped, and validated before anything is
/// written.
pub(crate) const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;
/// Limit of applications per file. Each takes about 0.5 KiB of memory in addition to the file.
pub(crate) const MAX_APPLICATIONS: usize = 250_000;
/// Limit of problems that are listed; the rest are counted.
const MAX_SHOWN_PROBLEMS: usize = 50;
/// Limit of problems that are stored and counted: an invalid file could have millions.
const MAX_KEPT_PROBLEMS: usize = 10_000;
/// Limit of a key's length, in bytes.
const MAX_KEY_BYTES: usize = 1024;

/// Names of the columns, or members. `return_to` and `sign_profile` are aliases, as in `app list --json`.
const NAMES: [(&str, Field); 8] = [
    ("ident", Field::Ident),
    ("key", Field::Key),
    ("name", Field::Name),
    ("origins", Field::Origins),
    ("return_to", Field::Origins),
    ("profile", Field::Profile),
    ("sign_profile", Field::Profile),
    ("default_version", Field::DefaultVersion),
];
const REQUIRED: [Field; 3] = [Field::Ident, Field::Key, Field::Name];

const ALLOWED_PROFILE: &str = "a preset (plain, decoded, bilibili, alipay, wechat, top), or an object with any of values, \
                               layout, empty, leave_out (not \"time\"), cover, algorithm, replay";

/// Reads a file of at most [`MAX_FILE_BYTES`].
///
/// # Errors
///
/// It cannot be read, or is too large.
pub(crate) fn read_file(
    source: impl Read,
    expected_bytes: usize,
) -> Result<Zeroizing<Vec<u8>>, ImportError> {
    // Allocated once: a growing buffer would leave copies of keys behind that are not wiped.
    let capacity = expected_bytes.min(MAX_FILE_BYTES) + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(capacity));
    source
        .take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ImportError::TooLarge);
    }
    Ok(bytes)
}

/// The applications of a file, and the line of each ident.
#[derive(Default)]
pub(super) struct ParsedFile {
    pub(super) apps: Vec<NewApp>,
    pub(super) lines: HashMap<AppIdent, u64>,
}

/// Reads all applications, and lists the problems of invalid ones.
///
/// # Errors
///
/// There are too many, or the file is not UTF-8 or not CSV.
pub(super) fn read_apps(
    file: &[u8],
    rules: &Rules,
    now: Timestamp,
) -> Result<(ParsedFile, Vec<Problem>), ImportError> {
    let text = std::str::from_utf8(file).map_err(|error| {
        let line = 1 + line_breaks(&file[..error.valid_up_to()]);
        ImportError::Problems(Problems::new(vec![Problem::new(line, "not UTF-8")]))
    })?;
    // Spreadsheets write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        rules,
        now,
        read: ParsedFile::default(),
        problems: Vec::new(),
    };
    if text.trim_start().starts_with('{') {
        reader.json_lines(text)?;
    } else {
        reader.csv(text)?;
    }
    Ok((reader.read, reader.problems))
}

/// A column, or member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Field {
    Ident,
    Key,
    Name,
    Origins,
    Profile,
    DefaultVersion,
}

impl Field {
    fn named(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, field)| *field)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Ident => "ident",
            Self::Key => "key",
            Self::Name => "name",
            Self::Origins => "origins",
            Self::Profile => "profile",
            Self::DefaultVersion => "default_version",
        }
    }
}

/// An application as written, not yet validated. Empty means absent.
#[derive(Default)]
struct RawApp {
    ident: String,
    key: Zeroizing<String>,
    name: String,
    origins: Vec<String>,
    profile: RawProfile,
    default_version: String,
}

/// A sign profile as written: a preset's name, or an object.
#[derive(Default)]
enum RawProfile {
    #[default]
    None,
    Preset(String),
    Settings(Value),
}

struct Reader<'r> {
    rules: &'r Rules,
    now: Timestamp,
    read: ParsedFile,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn csv(&mut self, text: &str) -> Result<(), ImportError> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .flexible(true)
            .has_headers(false)
            .from_reader(text.as_bytes());
        let mut record = csv::StringRecord::new();
        let mut columns: Option<Vec<Field>> = None;
        let mut lines = LineCounter::new(text.as_bytes());
        while reader
            .read_record(&mut record)
            .map_err(|_| ImportError::Unreadable)?
        {
            let start = record.position().map_or(0, csv::Position::byte);
            let line = lines.line_at(usize::try_from(start).unwrap_or(usize::MAX));
            let Some(columns) = &columns else {
                let Some(read) = self.header(line, &record) else {
                    return Ok(());
                };
                columns = Some(read);
                continue;
            };
            if record.len() != columns.len() {
                let problem = format!(
                    "{} fields; the header row has {}",
                    record.len(),
                    columns.len()
                );
                self.problem(line, None, problem);
                continue;
            }
            let mut raw = RawApp::default();
            for (field, value) in columns.iter().zip(&record) {
                self.cell(line, *field, value, &mut raw);
            }
            self.add(line, raw)?;
        }
        if columns.is_none() {
            self.problem(
                1,
                None,
                "the file is empty; it must start with a header row",
            );
        }
        Ok(())
    }

    /// The columns; `None` if the header row has problems.
    fn header(&mut self, line: u64, record: &csv::StringRecord) -> Option<Vec<Field>> {
        let columns: Vec<Option<Field>> = record.iter().map(Field::named).collect();
        let problems = self.problems.len();
        if columns.contains(&None) {
            // The problem does not name the column: if the header row is missing, it may be a key.
            let known = "ident, key, name, origins, profile, default_version";
            let problem = format!("unknown column in the header row; allowed: {known}");
            self.problem(line, None, problem);
        }
        let mut seen = HashSet::new();
        for field in columns.iter().flatten() {
            if !seen.insert(field) {
                self.problem(line, Some(*field), "duplicate column");
            }
        }
        for field in REQUIRED {
            if !seen.contains(&field) {
                self.problem(line, Some(field), "missing in the header row");
            }
        }
        let is_good = self.problems.len() == problems;
        columns
            .into_iter()
            .collect::<Option<_>>()
            .filter(|_| is_good)
    }

    fn cell(&mut self, line: u64, field: Field, value: &str, raw: &mut RawApp) {
        match field {
            Field::Ident => value.clone_into(&mut raw.ident),
            Field::Key => value.clone_into(&mut raw.key),
            Field::Name => value.clone_into(&mut raw.name),
            Field::Origins => raw.origins = split_origins(value),
            Field::DefaultVersion => value.clone_into(&mut raw.default_version),
            Field::Profile if value.starts_with('{') => match serde_json::from_str(value) {
                Ok(settings) => raw.profile = RawProfile::Settings(settings),
                Err(_) => self.problem(line, Some(field), ALLOWED_PROFILE),
            },
            Field::Profile if value.is_empty() => {}
            Field::Profile => raw.profile = RawProfile::Preset(value.to_owned()),
        }
    }

    fn json_lines(&mut self, text: &str) -> Result<(), ImportError> {
        for (line, object) in (1..).zip(text.lines()) {
            if object.trim().is_empty() {
                continue;
            }
            let Ok(members) = serde_json::from_str::<Map<String, Value>>(object) else {
                self.problem(line, None, "not a JSON object");
                continue;
            };
            let mut raw = RawApp::default();
            let mut seen = HashSet::new();
            for (name, value) in members {
                match Field::named(&name) {
                    // The problem does not name the member: a misplaced name may be a key.
                    None => self.problem(line, None, "unknown member"),
                    Some(field) if !seen.insert(field) => {
                        self.problem(line, Some(field), "duplicate member");
                    }
                    Some(field) => self.member(line, field, value, &mut raw),
                }
            }
            self.add(line, raw)?;
        }
        Ok(())
    }

    fn member(&mut self, line: u64, field: Field, value: Value, raw: &mut RawApp) {
        match (field, value) {
            (_, Value::Null) => {}
            (Field::Key, Value::String(mut key)) => {
                *raw.key = key.trim().to_owned();
                key.zeroize();
            }
            (Field::Ident, Value::String(text)) => text.trim().clone_into(&mut raw.ident),
            (Field::Name, Value::String(text)) => raw.name = text,
            (Field::DefaultVersion, Value::String(text)) => {
                text.trim().clone_into(&mut raw.default_version);
            }
            (Field::Origins, Value::String(text)) => raw.origins = split_origins(&text),
            (Field::Origins, Value::Array(texts)) => {
                let texts: Option<Vec<String>> = texts
                    .into_iter()
                    .map(|text| text.as_str().map(str::to_owned))
                    .collect();
                match texts {
                    Some(texts) => raw.origins = texts,
                    None => self.problem(line, Some(field), "must be a list of strings"),
                }
            }
            (Field::Profile, Value::String(text)) if text.is_empty() => {}
            (Field::Profile, Value::String(text)) => raw.profile = RawProfile::Preset(text),
            (Field::Profile, value) => raw.profile = RawProfile::Settings(value),
            (field, _) => self.problem(line, Some(field), "must be a string"),
        }
    }

    /// Validates an application, reports all of its problems, and adds it if it has none.
    fn add(&mut self, line: u64, raw: RawApp) -> Result<(), ImportError> {
        let ident: Option<AppIdent> = self.parsed(line, Field::Ident, &raw.ident);
        let key = self.key(line, &raw.key);
        let name: Option<AppName> = self.parsed(line, Field::Name, &raw.name);
        let origins: Vec<Origin> = raw
            .origins
            .iter()
            .filter_map(|origin| self.parsed(line, Field::Origins, origin))
            .collect();
        let problem = self.rules.check_origins(&origins).err();
        self.report(line, Field::Origins, problem);
        let profile = self.profile(line, raw.profile);
        let default_version = Some(&*raw.default_version)
            .filter(|version| !version.is_empty())
            .and_then(|version| self.parsed(line, Field::DefaultVersion, version));
        let problem = default_version
            .as_ref()
            .and_then(|version| self.rules.check_version(version).err());
        self.report(line, Field::DefaultVersion, problem);
        let Some(ident) = ident else { return Ok(()) };
        if let Some(first) = self.read.lines.get(&ident) {
            let problem = format!("duplicate of line {first}");
            self.problem(line, Some(Field::Ident), problem);
            return Ok(());
        }
        if self.read.lines.len() >= MAX_APPLICATIONS {
            return Err(ImportError::TooMany);
        }
        self.read.lines.insert(ident, line);
        if let (Some(key), Some(name)) = (key, name) {
            self.read.apps.push(NewApp {
                ident,
                key,
                name: name.into(),
                profile,
                return_to_origins: texts(origins),
                default_version,
                created_at: self.now,
            });
        }
        Ok(())
    }

    fn key(&mut self, line: u64, text: &str) -> Option<AppKey> {
        if text.len() > MAX_KEY_BYTES {
            let problem = format!("longer than {MAX_KEY_BYTES} bytes");
            self.problem(line, Some(Field::Key), problem);
            return None;
        }
        let key: AppKey = self.parsed(line, Field::Key, text)?;
        match key.check_strength() {
            Err(weak) if !self.rules.allows_weak_keys => {
                let problem = format!("a weak key: {weak}; to accept it, pass --allow-weak-key");
                self.problem(line, Some(Field::Key), problem);
                None
            }
            _ => Some(key),
        }
    }

    fn profile(&mut self, line: u64, written: RawProfile) -> Option<SignProfile> {
        let profile = match written {
            RawProfile::None => return None,
            RawProfile::Preset(name) => SignProfile::preset(&name).map(|preset| {
                ProfileChoice::from_preset(preset).apply_to(self.rules.gateway_profile.clone())
            }),
            RawProfile::Settings(settings) => serde_json::from_value(settings).ok(),
        };
        let profile = profile.filter(|profile| self.rules.is_allowed(profile));
        if profile.is_none() {
            self.problem(
                line,
                Some(Field::Profile),
                format!("allowed: {ALLOWED_PROFILE}"),
            );
        }
        profile
    }

    fn parsed<T: std::str::FromStr>(&mut self, line: u64, field: Field, text: &str) -> Option<T>
    where
        T::Err: fmt::Display,
    {
        match text.parse() {
            Ok(value) => Some(value),
            Err(_) if text.is_empty() => {
                self.problem(line, Some(field), "missing");
                None
            }
            Err(allowed) => {
                self.problem(line, Some(field), format!("allowed: {allowed}"));
                None
            }
        }
    }

    fn report(&mut self, line: u64, field: Field, problem: Option<AdministrationError>) {
        if let Some(problem) = problem {
            self.problem(line, Some(field), problem.to_string());
        }
    }

    fn problem(&mut self, line: u64, field: Option<Field>, what: impl Into<Cow<'static, str>>) {
        if self.problems.len() >= MAX_KEPT_PROBLEMS {
            return;
        }
        self.problems.push(Problem {
            line,
            field,
            what: what.into(),
        });
    }
}

/// Splits a list of origins, which cannot contain white space.
fn split_origins(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Converts ascending byte offsets to line numbers.
struct LineCounter<'t> {
    text: &'t [u8],
    offset: usize,
    line: u64,
}

impl<'t> LineCounter<'t> {
    const fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
        }
    }

    /// The line of the record at byte `start`. The CSV reader's position may be at the previous line's end, or at
    /// skipped empty lines.
    fn line_at(&mut self, start: usize) -> u64 {
        let rest = &self.text[start.min(self.text.len())..];
        let skipped = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let start = (start + skipped.count()).min(self.text.len());
        if start > self.offset {
            self.line += line_breaks(&self.text[self.offset..start]);
            self.offset = start;
        }
        self.line
    }
}

fn line_breaks(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// A problem of a line. It never quotes the file.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    line: u64,
    field: Option<Field>,
    what: Cow<'static, str>,
}

impl Problem {
    fn new(line: u64, what: &'static str) -> Self {
        Self {
            line,
            field: None,
            what: Cow::Borrowed(what),
        }
    }

    /// The ident exists in the store already.
    pub(super) fn taken(line: u64) -> Self {
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
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
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
pub(crate) enum ImportError {
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

#[cfg(test)]
mod tests;

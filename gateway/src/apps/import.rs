//! Applications from a file: what it may look like, and everything that is wrong with it, by line.
//!
//! A file is CSV (RFC 4180, UTF-8) with a header row, or JSON lines: an object a line. Which of both, its first character
//! tells. A problem never repeats what the file has: columns that were mixed up would show keys.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    io::{self, Read},
};

use gateway_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
};
use serde_json::{Map, Value};
use signpost_kit::clock::Timestamp;
use zeroize::{Zeroize, Zeroizing};

use super::{
    administration::{AdministrationError, AppName, Origin, ProfileChoice, Rules, texts},
    store::{AppStoreError, NewApp},
};

/// The largest file, 64 MiB: it is held in memory, so that it can be wiped, and so that all of it can be judged before
/// anything is written.
pub(crate) const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;
/// The most applications of one file. Each takes about 0.5 KiB of memory beside the file.
pub(crate) const MAX_APPLICATIONS: usize = 250_000;
/// Problems that are told one by one.
const MAX_TOLD_PROBLEMS: usize = 50;
/// More problems are neither kept nor counted: a file of nothing else would have millions.
const MAX_KEPT_PROBLEMS: usize = 10_000;
/// The longest key, in bytes.
const MAX_KEY_BYTES: usize = 1024;

/// The columns, or members; the first three are needed. `return_to` and `sign_profile` are what `app list --json` calls
/// two of them.
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
const NEEDED: [Field; 3] = [Field::Ident, Field::Key, Field::Name];

const ALLOWED_PROFILE: &str = "a preset (plain, decoded, bilibili, alipay, wechat, top), or an object with any of values, \
                               layout, empty, leave_out (not \"time\"), cover, algorithm, replay";

/// Reads a file, up to the largest size that is taken.
///
/// # Errors
///
/// It cannot be read, or is larger.
pub(crate) fn read_file(
    source: impl Read,
    expected_bytes: usize,
) -> Result<Zeroizing<Vec<u8>>, ImportError> {
    // Room for all of it at once: a buffer that grows leaves copies behind that nobody wipes.
    let room = expected_bytes.min(MAX_FILE_BYTES) + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    source
        .take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ImportError::TooLarge);
    }
    Ok(bytes)
}

/// The applications of a file, and where each is told of.
#[derive(Default)]
pub(super) struct ReadApps {
    pub(super) apps: Vec<NewApp>,
    pub(super) lines: HashMap<AppIdent, u64>,
}

/// Reads all applications, or finds out what is wrong with them.
///
/// # Errors
///
/// There are too many, or the file as a whole is not what it should be.
pub(super) fn read_apps(
    file: &[u8],
    rules: &Rules,
    now: Timestamp,
) -> Result<(ReadApps, Vec<Problem>), ImportError> {
    let text = std::str::from_utf8(file).map_err(|error| {
        let line = 1 + line_breaks(&file[..error.valid_up_to()]);
        ImportError::Problems(Problems::new(vec![Problem::of_line(line, "not UTF-8")]))
    })?;
    // Spreadsheets begin a file with it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reading = Reading {
        rules,
        now,
        read: ReadApps::default(),
        problems: Vec::new(),
    };
    if text.trim_start().starts_with('{') {
        reading.json_lines(text)?;
    } else {
        reading.csv(text)?;
    }
    Ok((reading.read, reading.problems))
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

/// What a line says of an application, not yet judged. Empty is as good as absent.
#[derive(Default)]
struct Line {
    ident: String,
    key: Zeroizing<String>,
    name: String,
    origins: Vec<String>,
    profile: Written,
    default_version: String,
}

/// A sign profile as written.
#[derive(Default)]
enum Written {
    #[default]
    None,
    Preset(String),
    Settings(Value),
}

struct Reading<'r> {
    rules: &'r Rules,
    now: Timestamp,
    read: ReadApps,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn csv(&mut self, text: &str) -> Result<(), ImportError> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .flexible(true)
            .has_headers(false)
            .from_reader(text.as_bytes());
        let mut record = csv::StringRecord::new();
        let mut columns: Option<Vec<Field>> = None;
        let mut lines = Lines::new(text.as_bytes());
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
            let mut said = Line::default();
            for (field, value) in columns.iter().zip(&record) {
                self.cell(line, *field, value, &mut said);
            }
            self.take(line, said)?;
        }
        if columns.is_none() {
            self.problem(1, None, "nothing; a header row comes first");
        }
        Ok(())
    }

    /// The columns, if all are known and none is missing.
    fn header(&mut self, line: u64, record: &csv::StringRecord) -> Option<Vec<Field>> {
        let columns: Vec<Option<Field>> = record.iter().map(Field::named).collect();
        let problems = self.problems.len();
        if columns.contains(&None) {
            // Not its name: where the header row is missing, this may be a key.
            let known = "ident, key, name, origins, profile, default_version";
            let problem = format!("an unknown column in the header row; allowed: {known}");
            self.problem(line, None, problem);
        }
        let mut seen = HashSet::new();
        for field in columns.iter().flatten() {
            if !seen.insert(field) {
                self.problem(line, Some(*field), "a second column of this kind");
            }
        }
        for field in NEEDED {
            if !seen.contains(&field) {
                self.problem(line, Some(field), "no such column in the header row");
            }
        }
        let is_good = self.problems.len() == problems;
        columns
            .into_iter()
            .collect::<Option<_>>()
            .filter(|_| is_good)
    }

    fn cell(&mut self, line: u64, field: Field, value: &str, said: &mut Line) {
        match field {
            Field::Ident => value.clone_into(&mut said.ident),
            Field::Key => value.clone_into(&mut said.key),
            Field::Name => value.clone_into(&mut said.name),
            Field::Origins => said.origins = words(value),
            Field::DefaultVersion => value.clone_into(&mut said.default_version),
            Field::Profile if value.starts_with('{') => match serde_json::from_str(value) {
                Ok(settings) => said.profile = Written::Settings(settings),
                Err(_) => self.problem(line, Some(field), ALLOWED_PROFILE),
            },
            Field::Profile if value.is_empty() => {}
            Field::Profile => said.profile = Written::Preset(value.to_owned()),
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
            let mut said = Line::default();
            let mut seen = HashSet::new();
            for (name, value) in members {
                match Field::named(&name) {
                    // A name may be in the wrong place, and be a key.
                    None => self.problem(line, None, "an unknown member"),
                    Some(field) if !seen.insert(field) => {
                        self.problem(line, Some(field), "a second member of this kind");
                    }
                    Some(field) => self.member(line, field, value, &mut said),
                }
            }
            self.take(line, said)?;
        }
        Ok(())
    }

    fn member(&mut self, line: u64, field: Field, value: Value, said: &mut Line) {
        match (field, value) {
            (_, Value::Null) => {}
            (Field::Key, Value::String(mut key)) => {
                *said.key = key.trim().to_owned();
                key.zeroize();
            }
            (Field::Ident, Value::String(text)) => text.trim().clone_into(&mut said.ident),
            (Field::Name, Value::String(text)) => said.name = text,
            (Field::DefaultVersion, Value::String(text)) => {
                text.trim().clone_into(&mut said.default_version);
            }
            (Field::Origins, Value::String(text)) => said.origins = words(&text),
            (Field::Origins, Value::Array(texts)) => {
                let texts: Option<Vec<String>> = texts
                    .into_iter()
                    .map(|text| text.as_str().map(str::to_owned))
                    .collect();
                match texts {
                    Some(texts) => said.origins = texts,
                    None => self.problem(line, Some(field), "a list of texts is wanted"),
                }
            }
            (Field::Profile, Value::String(text)) if text.is_empty() => {}
            (Field::Profile, Value::String(text)) => said.profile = Written::Preset(text),
            (Field::Profile, value) => said.profile = Written::Settings(value),
            (field, _) => self.problem(line, Some(field), "a text is wanted"),
        }
    }

    /// Judges what a line says, all of it.
    fn take(&mut self, line: u64, said: Line) -> Result<(), ImportError> {
        let ident: Option<AppIdent> = self.parsed(line, Field::Ident, &said.ident);
        let key = self.key(line, &said.key);
        let name: Option<AppName> = self.parsed(line, Field::Name, &said.name);
        let origins: Vec<Origin> = said
            .origins
            .iter()
            .filter_map(|origin| self.parsed(line, Field::Origins, origin))
            .collect();
        let problem = self.rules.check_origins(&origins).err();
        self.refused(line, Field::Origins, problem);
        let profile = self.profile(line, said.profile);
        let default_version = Some(&*said.default_version)
            .filter(|version| !version.is_empty())
            .and_then(|version| self.parsed(line, Field::DefaultVersion, version));
        let problem = default_version
            .as_ref()
            .and_then(|version| self.rules.check_version(version).err());
        self.refused(line, Field::DefaultVersion, problem);
        let Some(ident) = ident else { return Ok(()) };
        if let Some(first) = self.read.lines.get(&ident) {
            let problem = format!("the same as in line {first}");
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
                let problem = format!("a weak key: {weak}; --allow-weak-key takes it all the same");
                self.problem(line, Some(Field::Key), problem);
                None
            }
            _ => Some(key),
        }
    }

    fn profile(&mut self, line: u64, written: Written) -> Option<SignProfile> {
        let profile = match written {
            Written::None => return None,
            Written::Preset(name) => SignProfile::preset(&name).map(|preset| {
                ProfileChoice::of_preset(preset).over(self.rules.gateway_profile.clone())
            }),
            Written::Settings(settings) => serde_json::from_value(settings).ok(),
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

    fn refused(&mut self, line: u64, field: Field, problem: Option<AdministrationError>) {
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

/// Origins hold no white space, so that it separates them where there is one text for all.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Finds out in which line something stands, for places further and further on.
struct Lines<'t> {
    text: &'t [u8],
    place: usize,
    line: u64,
}

impl<'t> Lines<'t> {
    const fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            place: 0,
            line: 1,
        }
    }

    /// The line of the record that a reader found at `start`, which may be at the end of the line before, or at empty
    /// lines that it skips.
    fn line_at(&mut self, start: usize) -> u64 {
        let behind = &self.text[start.min(self.text.len())..];
        let skipped = behind
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let start = (start + skipped.count()).min(self.text.len());
        if start > self.place {
            self.line += line_breaks(&self.text[self.place..start]);
            self.place = start;
        }
        self.line
    }
}

fn line_breaks(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// Something wrong with a line. It repeats nothing of the file.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    line: u64,
    field: Option<Field>,
    what: Cow<'static, str>,
}

impl Problem {
    fn of_line(line: u64, what: &'static str) -> Self {
        Self {
            line,
            field: None,
            what: Cow::Borrowed(what),
        }
    }

    /// The store has an application of that ident already.
    pub(super) fn taken(line: u64) -> Self {
        Self {
            field: Some(Field::Ident),
            ..Self::of_line(line, "the store has an application of this ident")
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

/// Everything that is wrong with a file, in the order of its lines.
#[derive(Clone, Debug)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.line);
        Self(problems)
    }
}

/// A line each; of very many, the first ones and how many more there are.
impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.0.iter().take(MAX_TOLD_PROBLEMS).enumerate() {
            let line_break = if place == 0 { "" } else { "\n" };
            write!(formatter, "{line_break}{problem}")?;
        }
        match self.0.len().saturating_sub(MAX_TOLD_PROBLEMS) {
            0 => Ok(()),
            more => write!(formatter, "\nand {more} more problems"),
        }
    }
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// What is wrong with the file, by line.
    #[error("{0}")]
    Problems(Problems),
    /// The file is too large for one import.
    #[error("the file is larger than {} MiB: import it in parts", MAX_FILE_BYTES / 1024 / 1024)]
    TooLarge,
    /// The file has too many applications for one import.
    #[error("the file has more than {MAX_APPLICATIONS} applications: import it in parts")]
    TooMany,
    /// It cannot be read.
    #[error("it cannot be read")]
    Io(#[from] io::Error),
    /// It is not CSV.
    #[error("it is neither CSV nor JSON lines")]
    Unreadable,
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] AppStoreError),
}

#[cfg(test)]
mod tests;

//! Import of applications: reads a file, and reports all of its problems by line.
//!
//! A file is CSV (RFC 4180, UTF-8) with a header row, or JSON lines (one object per line); its first character decides.
//! A problem never quotes the file: if columns are mixed up, it would show keys.

mod file;
mod problem;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fmt,
    str::FromStr,
};

use serde_json::Value;
use signpost_kit::{
    clock::Timestamp,
    secret::{NOT_UTF_8, oddity},
};
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
};
use signpost_proxy::AppState;
use zeroize::Zeroizing;

pub use self::file::read_file;
pub use self::problem::{ImportError, Problems};
pub(crate) use self::problem::{MAX_FILE_BYTES, Problem};
use self::{
    file::{LineCounter, Members, line_breaks},
    problem::{Field, MAX_APPLICATIONS, MAX_LINE_BYTES},
};
use super::{
    rules::{AppName, BrokenRule, Origin, ProfileChoice, Rules},
    summary::NewApp,
};

/// Limit of problems that are stored and counted: an invalid file could have millions.
const MAX_KEPT_PROBLEMS: usize = 10_000;
/// Limit of a key's length, in bytes.
const MAX_KEY_BYTES: usize = 1024;

const REQUIRED: [Field; 3] = [Field::Ident, Field::Key, Field::Name];

const ALLOWED_PROFILE: &str = "or an object with any of values, layout, empty, leave_out (not \"time\"), cover, \
                               algorithm, replay";

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
        ImportError::Problems(Problems::new(vec![Problem::new(line, NOT_UTF_8)]))
    })?;
    // Spreadsheets write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        rules,
        now,
        file: ParsedFile::default(),
        problems: Vec::new(),
    };
    if text.trim_start().starts_with('{') {
        reader.json_lines(text)?;
    } else {
        reader.csv(text)?;
    }
    Ok((reader.file, reader.problems))
}

/// An application as written, not yet validated. Empty means absent.
#[derive(Default)]
struct RawApp {
    ident: String,
    key: Zeroizing<String>,
    name: String,
    origins: Vec<String>,
    /// A preset's name, or the text of an object.
    profile: String,
    default_version: String,
    rate_limit: String,
    extensions: Vec<String>,
    state: String,
}

impl RawApp {
    fn list(&mut self, field: Field) -> &mut Vec<String> {
        match field {
            Field::Extensions => &mut self.extensions,
            _ => &mut self.origins,
        }
    }
}

struct Reader<'r> {
    rules: &'r Rules,
    now: Timestamp,
    file: ParsedFile,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn csv(&mut self, text: &str) -> Result<(), ImportError> {
        let mut reader = csv::ReaderBuilder::new()
            // A record with too many or too few fields is a problem of its line; otherwise the reader would end there.
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
                let Some(header) = self.header(line, &record) else {
                    return Ok(());
                };
                columns = Some(header);
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
                self.member(line, *field, value.into(), &mut raw);
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
        let columns: Vec<_> = record.iter().map(str::trim).map(Field::named).collect();
        let problems = self.problems.len();
        if columns.contains(&None) {
            // The problem does not name the column: if the header row is missing, it may be a key.
            let known = "ident, key, name, origins, profile, default_version, rate_limit, extensions, state";
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

    fn json_lines(&mut self, text: &str) -> Result<(), ImportError> {
        for (line, object) in (1..).zip(text.lines()) {
            if object.trim().is_empty() {
                continue;
            }
            if object.len() > MAX_LINE_BYTES {
                self.problem(line, None, "longer than 256 KiB");
                continue;
            }
            let Ok(Members(members)) = serde_json::from_str(object) else {
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
                    // As its text: a map would keep only the last of its members with the same name.
                    Some(Field::Profile) if value.get().starts_with('{') => {
                        value.get().clone_into(&mut raw.profile);
                    }
                    Some(field) => match serde_json::from_str(value.get()) {
                        Ok(value) => self.member(line, field, value, &mut raw),
                        Err(_) => self.problem(line, Some(field), "cannot be read"),
                    },
                }
            }
            self.add(line, raw)?;
        }
        Ok(())
    }

    fn member(&mut self, line: u64, field: Field, value: Value, raw: &mut RawApp) {
        match (field, value) {
            (_, Value::Null) => {}
            (Field::Key, Value::String(key)) => raw.key = Zeroizing::new(key),
            (Field::Ident, Value::String(text)) => text.trim().clone_into(&mut raw.ident),
            (Field::Name, Value::String(text)) => raw.name = text,
            (Field::DefaultVersion, Value::String(text)) => {
                text.trim().clone_into(&mut raw.default_version);
            }
            (Field::RateLimit, Value::String(text)) => text.trim().clone_into(&mut raw.rate_limit),
            (Field::State, Value::String(text)) => text.trim().clone_into(&mut raw.state),
            (Field::Origins | Field::Extensions, Value::String(text)) => {
                *raw.list(field) = text.split_whitespace().map(str::to_owned).collect();
            }
            (Field::Origins | Field::Extensions, Value::Array(texts)) => {
                let texts: Option<Vec<String>> = texts
                    .into_iter()
                    .map(|text| text.as_str().map(str::to_owned))
                    .collect();
                match texts {
                    Some(texts) => *raw.list(field) = texts,
                    None => self.problem(line, Some(field), "must be a list of strings"),
                }
            }
            (Field::Profile, Value::String(text)) => text.trim().clone_into(&mut raw.profile),
            (Field::Profile, value) => raw.profile = value.to_string(),
            (field, _) => self.problem(line, Some(field), "must be a string"),
        }
    }

    /// Validates an application, reports all of its problems, and adds it if it has none.
    fn add(&mut self, line: u64, raw: RawApp) -> Result<(), ImportError> {
        let ident: Option<AppIdent> = self.parsed(line, Field::Ident, &raw.ident);
        let key = self.key(line, &raw.key);
        let name: Option<AppName> = self.parsed(line, Field::Name, &raw.name);
        let origins: Vec<Origin> = self.parsed_list(line, Field::Origins, &raw.origins);
        let extensions = self.parsed_list(line, Field::Extensions, &raw.extensions);
        let problem = self.rules.check_origins(origins.len()).err();
        self.report(line, Field::Origins, problem);
        let profile = self.profile(line, &raw.profile);
        let default_version = self.given(line, Field::DefaultVersion, &raw.default_version);
        let rate_limit = self.given(line, Field::RateLimit, &raw.rate_limit);
        let state = self.given(line, Field::State, &raw.state);
        let problem = self.rules.check_version(default_version.as_ref()).err();
        self.report(line, Field::DefaultVersion, problem);
        let Some(ident) = ident else { return Ok(()) };
        if let Some(first) = self.file.lines.get(&ident) {
            let problem = format!("duplicate of line {first}");
            self.problem(line, Some(Field::Ident), problem);
            return Ok(());
        }
        if self.file.lines.len() >= MAX_APPLICATIONS {
            return Err(ImportError::TooMany);
        }
        // Also for an application with problems, so that its duplicates are reported in the same run.
        self.file.lines.insert(ident, line);
        if let (Some(key), Some(name)) = (key, name) {
            self.file.apps.push(NewApp {
                ident,
                key,
                name,
                profile,
                return_to: origins,
                default_version,
                rate_limit,
                extensions,
                state: state.unwrap_or(AppState::Active),
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
        // Quotes, for example, would be part of the key here, but not at the client: no signature would ever match.
        if let Some(oddity) = oddity(text) {
            self.problem(line, Some(Field::Key), format!("found {oddity}"));
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

    fn profile(&mut self, line: u64, text: &str) -> Option<SignProfile> {
        let profile = match text {
            "" => return None,
            settings if settings.starts_with('{') => serde_json::from_str(settings).ok(),
            name => SignProfile::preset(name).map(|preset| {
                ProfileChoice::from_preset(preset).apply_to(self.rules.gateway_profile.clone())
            }),
        };
        let profile = profile.filter(|profile| self.rules.is_allowed(profile));
        if profile.is_none() {
            self.problem(
                line,
                Some(Field::Profile),
                format!(
                    "allowed: a preset ({}), {ALLOWED_PROFILE}",
                    SignProfile::PRESETS.join(", ")
                ),
            );
        }
        profile
    }

    /// Parses each text of a list, and leaves out those that are reported.
    fn parsed_list<T: FromStr<Err: fmt::Display>>(
        &mut self,
        line: u64,
        field: Field,
        texts: &[String],
    ) -> Vec<T> {
        let texts = texts.iter();
        texts
            .filter_map(|text| self.parsed(line, field, text))
            .collect()
    }

    /// Parses a setting that may be absent.
    fn given<T: FromStr<Err: fmt::Display>>(
        &mut self,
        line: u64,
        field: Field,
        text: &str,
    ) -> Option<T> {
        (!text.is_empty()).then(|| self.parsed(line, field, text))?
    }

    fn parsed<T: FromStr<Err: fmt::Display>>(
        &mut self,
        line: u64,
        field: Field,
        text: &str,
    ) -> Option<T> {
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

    fn report(&mut self, line: u64, field: Field, problem: Option<BrokenRule>) {
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

#[cfg(test)]
mod tests;

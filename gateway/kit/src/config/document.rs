//! A file while it is read: its lines, the problems found so far, and its settings.

use std::{cell::RefCell, ops::Range, path::Path};

use serde_json::Value as Json;
use toml::{Spanned, de::DeTable};

use super::{
    error::{ConfigError, Problem},
    secret_files::SecretFiles,
    settings::{ReadFile, Setting, Settings},
};

/// A known key is suggested for an unknown one if at most one letter in three differs.
const LETTERS_PER_TYPO: usize = 3;

/// A file that is being read.
pub(super) struct Document<'d> {
    path: &'d Path,
    text: &'d str,
    pub(super) problems: RefCell<Vec<Problem>>,
    pub(super) settings: RefCell<Settings>,
    pub(super) secrets: RefCell<SecretFiles>,
    /// Every key that a reader asked for.
    known: RefCell<Vec<NamedKey>>,
    unknown: RefCell<Vec<(NamedKey, usize)>>,
    /// Whether the readers run to describe their keys, without a file.
    pub(super) is_described: bool,
}

/// A key: the path of its section, its name, and what its reader allows, in words and as JSON Schema.
struct NamedKey {
    section: String,
    name: String,
    allowed: String,
    schema: Json,
}

impl NamedKey {
    fn new(section: &str, name: &str, allowed: &str, schema: Json) -> Self {
        Self {
            section: section.to_owned(),
            name: name.to_owned(),
            allowed: allowed.to_owned(),
            schema,
        }
    }

    fn dotted(&self) -> String {
        dotted(&self.section, &self.name)
    }
}

/// The dotted name of a key in a section.
pub(super) fn dotted(section: &str, name: &str) -> String {
    if section.is_empty() {
        name.to_owned()
    } else {
        format!("{section}.{name}")
    }
}

/// The file's tables and its syntax errors. The messages do not quote the file, which may hold secrets.
pub(super) fn parse(text: &str) -> (Spanned<DeTable<'_>>, Vec<Problem>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let problem = |error: toml::de::Error| {
        let line = error.span().map(|span| line_of(text, &span));
        let message = error.message().replace('\n', ", ");
        Problem::new(line, "", format!("not TOML: {message}"))
    };
    (table, errors.into_iter().map(problem).collect())
}

/// The line, counted from 1, on which a part of the text begins.
fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.get(..span.start).unwrap_or(text);
    1 + before.bytes().filter(|byte| *byte == b'\n').count()
}

impl<'d> Document<'d> {
    pub(super) fn new(path: &'d Path, text: &'d str) -> Self {
        Self {
            path,
            text,
            problems: RefCell::default(),
            settings: RefCell::default(),
            secrets: RefCell::default(),
            known: RefCell::default(),
            unknown: RefCell::default(),
            is_described: false,
        }
    }

    /// The line, counted from 1, on which a part of the file begins.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        line_of(self.text, span)
    }

    /// A part of the file as written.
    pub(super) fn written(&self, span: Range<usize>) -> &'d str {
        self.text.get(span).unwrap_or_default()
    }

    /// Notes that a reader asked for a key; the first one says what is allowed.
    pub(super) fn note_known(&self, section: &str, name: &str, allowed: &str, schema: Json) {
        if !self.is_known(section, name) {
            let key = NamedKey::new(section, name, allowed, schema);
            self.known.borrow_mut().push(key);
        }
    }

    /// The keys that readers asked for, dotted, each with its allowed values and its schema; and the settings.
    pub(super) fn into_described(self) -> (Vec<(String, String, Json)>, Settings) {
        let known = self.known.into_inner().into_iter();
        let known = known.map(|key| (key.dotted(), key.allowed, key.schema));
        (known.collect(), self.settings.into_inner())
    }

    pub(super) fn is_known(&self, section: &str, name: &str) -> bool {
        let known = self.known.borrow();
        let mut known = known.iter();
        known.any(|key| key.section == section && key.name == name)
    }

    pub(super) fn note_unknown(&self, section: &str, name: &str, line: usize) {
        let key = NamedKey::new(section, name, "", Json::Null);
        self.unknown.borrow_mut().push((key, line));
    }

    pub(super) fn set(&self, setting: Setting) {
        self.settings.borrow_mut().add(setting);
    }

    /// Adds a file whose content is part of the configuration.
    pub(super) fn add_file(&self, file: ReadFile) {
        self.settings.borrow_mut().files.push(file);
    }

    /// Notes the file that holds the secret of a key; `None` if this file does.
    pub(super) fn add_secret(&self, key: String, file: Option<&Path>) {
        let file = file.unwrap_or(self.path);
        self.secrets.borrow_mut().add(file, key);
    }

    /// Returns the settings; or all problems, and the files that were read.
    pub(super) fn finish(self) -> Result<Settings, ConfigError> {
        let known = self.known.into_inner();
        let mut problems = self.problems.into_inner();
        for (key, line) in self.unknown.into_inner() {
            // A key that was refused without being read is one problem, not two.
            if problems.iter().any(|problem| problem.key == key.dotted()) {
                continue;
            }
            let meant = suggestion(&key, &known);
            // A misspelled key that is also required is one problem, not two.
            problems.retain(|problem| !problem.is_missing || Some(&problem.key) != meant.as_ref());
            let text = unknown_key(&key, meant, &known);
            problems.push(Problem::new(Some(line), key.dotted(), text));
        }
        if problems.is_empty() {
            return Ok(self.settings.into_inner());
        }
        problems.sort_by_key(|problem| problem.line.unwrap_or_default());
        Err(ConfigError {
            path: self.path.to_owned(),
            problems,
            files: self.settings.into_inner().files,
        })
    }
}

/// The known key, dotted, that is most similar to an unknown one.
fn suggestion(key: &NamedKey, known: &[NamedKey]) -> Option<String> {
    let nearest = known
        .iter()
        .filter(|known| known.section == key.section)
        .map(|known| (strsim::osa_distance(&known.name, &key.name), known))
        .filter(|(distance, _)| *distance <= key.name.chars().count().div_ceil(LETTERS_PER_TYPO))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known);
    // The right name in the wrong section.
    let is_elsewhere = |known: &&NamedKey| known.name == key.name && known.section != key.section;
    let elsewhere = || known.iter().find(is_elsewhere);
    nearest.or_else(elsewhere).map(NamedKey::dotted)
}

/// The message about an unknown key. Its value is not shown: the key may be the misspelled one of a secret.
fn unknown_key(key: &NamedKey, meant: Option<String>, known: &[NamedKey]) -> String {
    match meant {
        Some(meant) => {
            let section = format!("{}.", key.section);
            let is_of_root = !meant.contains('.') && !key.section.is_empty();
            match meant.strip_prefix(&section) {
                Some(here) => format!("unknown key; did you mean {here}?"),
                // In TOML a table extends to the next header.
                None if is_of_root => {
                    format!("unknown key here; {meant} belongs above the first [section]")
                }
                None => format!("unknown key; did you mean {meant}?"),
            }
        }
        None => {
            let here = known.iter().filter(|known| known.section == key.section);
            let names: Vec<_> = here.map(|known| known.name.as_str()).collect();
            format!("unknown key; allowed: {}", names.join(", "))
        }
    }
}

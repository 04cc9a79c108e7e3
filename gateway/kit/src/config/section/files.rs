//! Readers of files and secrets that keys name.

use std::path::{Path, PathBuf};

use super::{NamedFile, SECRET, Section};
use crate::{
    config::{
        error::Read,
        settings::{ReadFile, ValueSource, read_regular},
    },
    secret::{Secret, SecretSource},
};

/// Allowed values of a file's path, for messages.
const FILE: &str = "a file path";

/// A reader fails if its value is invalid, or missing though required. It has reported that then, and the caller reads on: every
/// problem of a file is shown at once.
#[expect(clippy::missing_errors_doc, reason = "above, for all readers")]
impl Section<'_> {
    /// Reads a file path, if the file has the key.
    pub fn path(&mut self, key: &str) -> Read<Option<PathBuf>> {
        self.optional_by(key, FILE, |text| {
            (!text.is_empty()).then(|| PathBuf::from(text))
        })
    }

    /// Reads a file by its path, if the configuration has the key. The file is watched, and its content is compared at a
    /// reload, but never shown.
    pub fn file(&mut self, key: &str) -> Read<Option<NamedFile>> {
        let Some(value) = self.find(key, FILE) else {
            return Ok(None);
        };
        let path = value.as_str().filter(|text| !text.is_empty());
        let path = path.ok_or_else(|| value.invalid_unshown(FILE))?;
        let path = PathBuf::from(path);
        let content = read_regular(&path);
        let file = ReadFile::new(&path, content.as_ref().ok().map(|content| &content[..]));
        // Path and hash: the content itself need not be kept for the comparison.
        let compared = format!("{file:?}");
        self.document.add_file(file);
        let content = content.map_err(|cause| {
            let value = format!("{}, which cannot be read ({cause})", path.display());
            self.problem(key, &value, "the path of a file that this program can read")
        })?;
        self.set_hidden(
            key,
            &format!("\"{}\"", path.display()),
            Secret::from(compared),
        );
        Ok(Some(NamedFile { path, content }))
    }

    /// Reads a secret from its source, if the file has the key. The secret is never shown.
    pub fn secret(&mut self, key: &str) -> Read<Option<Secret>> {
        self.secret_source(key, SECRET)?
            .map(|source| self.fetch(key, source, SECRET))
            .transpose()
    }

    /// Reads a required secret from its source.
    pub fn required_secret(&mut self, key: &str) -> Read<Secret> {
        self.secret(key)?.ok_or_else(|| self.missing(key, SECRET))
    }

    /// Reads where a secret comes from, if the file has the key. The value is never shown.
    pub fn secret_source(&mut self, key: &str, allowed: &str) -> Read<Option<SecretSource>> {
        let Some(value) = self.find(key, allowed) else {
            return Ok(None);
        };
        let text = value.as_str();
        let text = text.ok_or_else(|| value.invalid_unshown(allowed))?;
        Ok(Some(SecretSource::from(text)))
    }

    /// Fetches a secret, lists it as a setting, and records the file that holds it.
    pub fn fetch(&mut self, key: &str, source: SecretSource, allowed: &str) -> Read<Secret> {
        if let SecretSource::Literal(_) = source {
            self.note_secret(key, None);
        }
        let holder = match &source {
            SecretSource::Env(_) => ValueSource::Environment,
            SecretSource::File(_) => ValueSource::SecretFile,
            SecretSource::Literal(_) => ValueSource::File,
        };
        let secret = self.read_source(key, source, allowed)?;
        let shown = "(secret)".to_owned();
        self.add(key, shown, Some(secret.clone()), Some(holder));
        Ok(secret)
    }

    /// Notes that `file`, or without one the configuration file, holds a secret: [`Self::secret_warnings`].
    pub fn note_secret(&self, key: &str, file: Option<&Path>) {
        self.document.add_secret(self.key(key), file);
    }

    /// Notes the file of a database: [`Self::secret_warnings`].
    pub fn note_database(&self, key: &str, file: &Path) {
        self.note_secret(key, Some(file));
        self.document.secrets.borrow_mut().database = Some(file.to_owned());
    }

    /// Notes that the value of a key is known to everyone, so that its file need not be kept from other users.
    pub fn note_public(&self, key: &str) {
        self.document.secrets.borrow_mut().remove(&self.key(key));
    }

    /// A warning for each file that other users may read, and that holds a secret read so far. Blocks.
    #[must_use]
    pub fn secret_warnings(&self) -> Vec<String> {
        self.document.secrets.borrow().warnings()
    }

    /// Reads a secret from its source, and records the file that it comes from.
    pub(in crate::config) fn read_source(
        &self,
        key: &str,
        source: SecretSource,
        allowed: &str,
    ) -> Read<Secret> {
        let path = match &source {
            SecretSource::File(path) => Some(path.clone()),
            SecretSource::Env(_) | SecretSource::Literal(_) => None,
        };
        if let Some(path) = &path {
            self.note_secret(key, Some(path));
        }
        let secret = source.read_with(|content| {
            if let Some(path) = &path {
                self.document.add_file(ReadFile::new(path, content));
            }
        });
        secret.map_err(|error| self.problem(key, &error.to_string(), allowed))
    }

    /// Records a file whose content is part of the configuration, as it was read.
    pub fn record_file(&self, file: ReadFile) {
        self.document.add_file(file);
    }
}

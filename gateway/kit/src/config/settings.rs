//! The settings of a file, and the changes from one file to the next.

use std::{
    collections::hash_map::DefaultHasher,
    fmt,
    fs::{self, File},
    hash::{Hash, Hasher},
    io::{self, Read},
    path::{Path, PathBuf},
    slice,
};

use serde::Serialize;
use zeroize::Zeroizing;

use crate::secret::Secret;

/// All keys with their values, defaults included, in the order in which they were read.
#[derive(Debug, Default)]
pub struct Settings {
    all: Vec<Setting>,
    /// The file and the files that it names, as they were read.
    pub files: Vec<ReadFile>,
    /// Whether changes of these files trigger a reload.
    pub is_watched: bool,
}

/// A file whose content is part of a configuration, in the state in which it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFile {
    path: PathBuf,
    /// A hash of the content; `None` if the file could not be read.
    content: Option<u64>,
}

/// Only this much of a file is compared: 4 MiB. No configuration or secret is larger.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

impl ReadFile {
    /// Records the content that was just read from the file at `path`.
    #[must_use]
    pub fn new(path: &Path, content: Option<&[u8]>) -> Self {
        let hash = |content: &[u8]| {
            // Its keys are fixed, so that two reads can be compared. A collision would only hide a change.
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            hasher.finish()
        };
        Self {
            path: path.to_owned(),
            content: content.map(hash),
        }
    }

    /// Reads the file again. Blocks. Anything but a regular file has no content.
    #[must_use]
    pub fn reread(&self) -> Self {
        let content = read_regular(&self.path).ok();
        Self::new(&self.path, content.as_ref().map(|content| &content[..]))
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads a regular file, up to 4 MiB. The content is zeroized when dropped: it may be a secret.
///
/// # Errors
///
/// It cannot be read, or is not a regular file.
pub fn read_regular(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    // Before it is opened: that could block, for example on a pipe.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Zeroizing::new(Vec::new());
    File::open(path)?
        .take(MAX_BYTES)
        .read_to_end(&mut content)?;
    Ok(content)
}

/// A key with its value.
#[derive(Clone, Serialize)]
#[cfg_attr(feature = "operators", derive(utoipa::ToSchema))]
pub struct Setting {
    /// The key, dotted.
    pub key: String,
    /// Its value in the form of TOML; `(secret)` in place of a secret.
    #[serde(rename = "value")]
    pub shown: String,
    /// Compared in place of `shown`, and never shown.
    #[serde(skip)]
    pub(super) secret: Option<Secret>,
    /// Where its value is from.
    pub source: ValueSource,
}

/// Where a value is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "operators", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ValueSource {
    /// The file does not have the key.
    Default,
    /// The configuration file.
    File,
    /// A variable of the environment, which the configuration file names.
    Environment,
    /// A file of its own, which the configuration file names.
    SecretFile,
}

/// A key whose value differs between two configurations. `Display` shows both values, unless they are secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "operators", derive(utoipa::ToSchema))]
pub struct Change {
    /// The key, dotted.
    pub key: String,
    /// Its value before; `None` if it is added. Of a secret, both values are shown alike.
    pub from: Option<String>,
    /// Its value afterwards; `None` if it is removed.
    pub to: Option<String>,
}

impl Settings {
    pub(super) fn add(&mut self, setting: Setting) {
        // A key that is read twice keeps its first value.
        if self.find(&setting.key).is_none() {
            self.all.push(setting);
        }
    }

    /// All keys with the values to display; secrets are hidden.
    pub fn iter(&self) -> slice::Iter<'_, Setting> {
        self.all.iter()
    }

    /// The changes from these settings to `new`. Of a table that is new or gone, the keys that its file has not are left out.
    #[must_use]
    pub fn changes(&self, new: &Self) -> Vec<Change> {
        let changed = new.all.iter().filter_map(|setting| {
            let before = self.find(&setting.key);
            let is_same = before.map_or(setting.is_default(), |before| before.is_same(setting));
            (!is_same).then(|| Change::between(before, Some(setting)))
        });
        let is_removed = |old: &&Setting| !old.is_default() && new.find(&old.key).is_none();
        let removed = self.all.iter().filter(is_removed);
        let removed = removed.map(|setting| Change::between(Some(setting), None));
        changed.chain(removed).flatten().collect()
    }

    /// Replaces the values of the keys that `is_kept` selects by their values in `old`.
    #[must_use]
    pub fn with_kept_keys(mut self, old: &Self, is_kept: impl Fn(&str) -> bool) -> Self {
        self.all.retain(|setting| !is_kept(&setting.key));
        let kept = old.all.iter().filter(|setting| is_kept(&setting.key));
        self.all.extend(kept.cloned());
        self
    }

    /// All keys with their values, ordered by key, for a keyed hash: secrets are among them.
    pub fn exposed(&self) -> impl Iterator<Item = (&Setting, &str)> {
        let mut all: Vec<_> = self.all.iter().collect();
        // Keys that a reload has kept stand at the end of the list, which is no difference.
        all.sort_unstable_by_key(|setting| &setting.key);
        all.into_iter().map(|setting| {
            let secret = setting.secret.as_ref();
            (setting, secret.map_or(&*setting.shown, Secret::expose))
        })
    }

    fn find(&self, key: &str) -> Option<&Setting> {
        self.all.iter().find(|setting| setting.key == key)
    }
}

impl Setting {
    fn is_default(&self) -> bool {
        self.source == ValueSource::Default
    }

    fn is_same(&self, other: &Self) -> bool {
        match (&self.secret, &other.secret) {
            (Some(secret), Some(other)) => secret.expose() == other.expose(),
            (None, None) => self.shown == other.shown,
            _ => false,
        }
    }
}

impl Change {
    fn between(from: Option<&Setting>, to: Option<&Setting>) -> Option<Self> {
        let setting = to.or(from)?;
        let shown = |setting: &Setting| setting.shown.clone();
        Some(Self {
            key: setting.key.clone(),
            from: from.map(shown),
            to: to.map(shown),
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match (&self.from, &self.to) {
            (Some(from), Some(to)) if from == to => write!(formatter, "{key}: changed"),
            (Some(from), Some(to)) => write!(formatter, "{key}: {from} -> {to}"),
            (None, Some(to)) => write!(formatter, "{key}: added, {to}"),
            (_, None) => write!(formatter, "{key}: removed"),
        }
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} = {}", self.key, self.shown)
    }
}

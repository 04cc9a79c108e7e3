//! All applications in a file, with which a gateway starts while its store does not answer. CONTRACT 4.
//!
//! The first line has the format, the time at which the file was last known to be true, and an HMAC under a key derived
//! from the master key; each further line is an application, its keys sealed as in the store. The HMAC is over the time,
//! the address of the store and the HMAC of the lines: so the time is renewed in place, by one write of the first line.
//! A file that was changed, is of another store or of another master key is refused. A user who can write the file can put
//! an earlier one in its place, until that is too old.

#![allow(
    unreachable_pub,
    reason = "tests of the management read snapshots by `testing`"
)]

use std::{
    fs::{self, File, Permissions},
    io::{self, BufWriter, Read, Write},
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use ring::hmac;
use serde::{Deserialize, Serialize};
use signpost_kit::clock::Timestamp;
use signpost_protocol::app::{AppId, AppIdent};
use signpost_store::tables::applications::{ApplicationRow, ApplicationSettings};
use tempfile::NamedTempFile;

use super::{App, stored::StoredApps};

/// Begin of the first line: the format.
const FORMAT: &str = "signpost-applications 1 ";

/// Bytes of the first line: format, 20 digits, 64 hex digits, two separators.
const HEADER: usize = FORMAT.len() + 20 + 1 + 64 + 1;

/// Limit of a file, for each application that the cache has place for: several times the largest one.
const MAX_BYTES_PER_APP: u64 = 16 << 10;

/// Where a snapshot is, and what it must belong to.
pub struct SnapshotFile {
    /// The file.
    pub path: PathBuf,
    /// Derived from the master keys: the first one authenticates what is written, any what is read.
    pub keys: Vec<hmac::Key>,
    /// The store's address, without user and password.
    pub store: String,
}

/// The applications of a file, and when they were last known to be true.
pub struct Snapshot {
    pub true_at: Timestamp,
    pub apps: Vec<(AppIdent, App)>,
}

/// A snapshot that is being written, to a file with another name.
pub struct NewSnapshot {
    file: BufWriter<NamedTempFile>,
    lines: hmac::Context,
}

/// The file that was written last.
pub struct WrittenSnapshot {
    file: File,
    lines: hmac::Tag,
}

impl SnapshotFile {
    /// Reads the file, for a cache of this size. Nothing in it is used unless its HMAC is right.
    pub fn read(&self, entries: u64, store: &StoredApps) -> Result<Snapshot, SnapshotError> {
        let max = entries.saturating_mul(MAX_BYTES_PER_APP);
        let mut bytes = Vec::new();
        // With a limit: the file is not authenticated yet, and may be any.
        File::open(&self.path)?.take(max).read_to_end(&mut bytes)?;
        let (header, lines) = bytes
            .split_at_checked(HEADER)
            .ok_or(SnapshotError::Refused)?;
        let header = std::str::from_utf8(header).map_err(|_| SnapshotError::Refused)?;
        let header = header.strip_prefix(FORMAT).ok_or(SnapshotError::Refused)?;
        let (time, tag) = header.split_once(' ').ok_or(SnapshotError::Refused)?;
        let true_at = time.parse().map_err(|_| SnapshotError::Refused)?;
        let true_at = Timestamp::from_millis(true_at);
        let tag = hex::decode(tag.trim_end()).map_err(|_| SnapshotError::Refused)?;
        let is_authentic = |key| {
            let content = self.authenticated(true_at, &hmac::sign(key, lines));
            hmac::verify(key, &content, &tag).is_ok()
        };
        // Before any line is parsed: no parser gets what the gateway did not write.
        if !self.keys.iter().any(is_authentic) {
            return Err(SnapshotError::Refused);
        }
        let lines = lines.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        let apps = lines.filter_map(|line| match serde_json::from_slice(line) {
            // What the store would not give either is left out.
            Ok(line) => Line::open(line, store).map(Ok),
            Err(_) => Some(Err(SnapshotError::Malformed)),
        });
        let apps: Vec<_> = apps.collect::<Result<_, _>>()?;
        if u64::try_from(apps.len()).unwrap_or(u64::MAX) > entries {
            return Err(SnapshotError::TooMany);
        }
        Ok(Snapshot { true_at, apps })
    }

    /// Begins a file beside the present one. Blocks.
    pub fn begin(&self) -> io::Result<NewSnapshot> {
        let file = tempfile::Builder::new()
            .prefix(".applications.")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(self.folder())?;
        let mut file = BufWriter::new(file);
        // A place for the first line, whose HMAC is only known after the last one.
        file.write_all(&[b' '; HEADER])?;
        let lines = hmac::Context::with_key(self.key());
        Ok(NewSnapshot { file, lines })
    }

    /// Completes a file that was true at that time, and puts it in the place of the present one. Blocks.
    pub fn replace(&self, new: NewSnapshot, true_at: Timestamp) -> io::Result<WrittenSnapshot> {
        let lines = new.lines.sign();
        let file = new
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        let header = self.header(true_at, &lines);
        file.as_file().write_all_at(header.as_bytes(), 0)?;
        // The file is synced before it gets its name, and the folder afterwards: a crash leaves the old file or the new
        // one whole.
        file.as_file().sync_all()?;
        let file = file.persist(&self.path).map_err(|error| error.error)?;
        File::open(self.folder())?.sync_all()?;
        Ok(WrittenSnapshot { file, lines })
    }

    /// Renews the time of the file. If the machine crashes meanwhile, an earlier time may remain. Blocks. `false`: the file
    /// was removed, or another is in its place.
    pub fn renew(&self, written: &WrittenSnapshot, true_at: Timestamp) -> io::Result<bool> {
        let there = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            there => there?,
        };
        let own = written.file.metadata()?;
        // The open file may have lost its name to another one. To renew it then would change a file that no start
        // reads.
        if (there.dev(), there.ino()) != (own.dev(), own.ino()) {
            return Ok(false);
        }
        let header = self.header(true_at, &written.lines);
        written.file.write_all_at(header.as_bytes(), 0)?;
        Ok(true)
    }

    fn header(&self, true_at: Timestamp, lines: &hmac::Tag) -> String {
        let tag = hmac::sign(self.key(), &self.authenticated(true_at, lines));
        format!("{FORMAT}{:020} {}\n", true_at.as_millis(), hex::encode(tag))
    }

    fn authenticated(&self, true_at: Timestamp, lines: &hmac::Tag) -> Vec<u8> {
        // Unambiguous: only the last part has no fixed length.
        let time = true_at.as_millis().to_be_bytes();
        [
            FORMAT.as_bytes(),
            &time,
            lines.as_ref(),
            self.store.as_bytes(),
        ]
        .concat()
    }

    /// The key of what is written.
    fn key(&self) -> &hmac::Key {
        &self.keys[0]
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }
}

impl NewSnapshot {
    /// Adds a page of applications, with their keys under the current master key. Blocks.
    pub fn with(mut self, mut rows: Vec<ApplicationRow>, store: &StoredApps) -> io::Result<Self> {
        for row in &mut rows {
            // By the time of a start, the previous master key may be gone from the configuration.
            store.seal_anew(row);
            let mut line = serde_json::to_vec(&Line::from(&*row))?;
            line.push(b'\n');
            self.lines.update(&line);
            self.file.write_all(&line)?;
        }
        Ok(self)
    }
}

/// An application in the file: what requests need of its row.
#[derive(Serialize, Deserialize)]
struct Line {
    id: i64,
    ident: String,
    state: String,
    /// Sealed; in hex.
    key: String,
    /// Sealed, in hex; and the end of its validity.
    previous: Option<(String, i64)>,
    sign_profile: Option<String>,
    default_version: Option<String>,
    rate_limit: Option<[i64; 2]>,
    #[serde(default)]
    extensions: Option<String>,
}

impl From<&ApplicationRow> for Line {
    fn from(row: &ApplicationRow) -> Self {
        let previous = row.previous_key.as_ref().zip(row.previous_until);
        Self {
            id: row.id.get(),
            ident: row.ident.clone(),
            state: row.state.clone(),
            key: hex::encode(&row.key),
            previous: previous.map(|(key, until)| (hex::encode(key), until.as_millis())),
            sign_profile: row.settings.sign_profile.clone(),
            default_version: row.settings.default_version.clone(),
            rate_limit: row.settings.rate_limit,
            extensions: row.settings.extensions.clone(),
        }
    }
}

impl Line {
    /// The application; `None` if its record is one that no release writes, or its key cannot be opened.
    fn open(self, store: &StoredApps) -> Option<(AppIdent, App)> {
        let bytes = |text: &str| hex::decode(text).ok();
        let ident = self.ident.parse().ok()?;
        let (previous, until) = self.previous.unzip();
        let row = ApplicationRow {
            id: AppId::new(self.id),
            ident: self.ident,
            name: String::new(),
            state: self.state,
            created_at: Timestamp::from_millis(0),
            key: bytes(&self.key)?,
            previous_key: previous.as_deref().and_then(bytes),
            previous_until: until.map(Timestamp::from_millis),
            revision: 0,
            settings: ApplicationSettings {
                sign_profile: self.sign_profile,
                return_to_origins: String::new(),
                default_version: self.default_version,
                rate_limit: self.rate_limit,
                extensions: self.extensions,
            },
        };
        Some((ident, store.open(ident, &row).ok()?))
    }
}

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It does not exist, or cannot be read.
    #[error("it cannot be read")]
    Unreadable(#[from] io::Error),
    /// Its HMAC is wrong, or it has none.
    #[error("it was changed, or belongs to another store or master key")]
    Refused,
    /// A line is not an application: a later release has written it.
    #[error("it is malformed")]
    Malformed,
    /// It has more applications than the cache has places.
    #[error("it has more applications than applications.cache_entries")]
    TooMany,
    /// It was true too long ago.
    #[error(
        "it was last known to be true at {0}, longer than stale_seconds ago, or its time is to come"
    )]
    TooOld(String),
}

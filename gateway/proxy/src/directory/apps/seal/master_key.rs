//! The file of the master key, and why a master key cannot be used.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

use super::{MASTER_KEY_BYTES, SealError};
use signpost_kit::secret::SecretError;

/// Whether the file exists. Also if that cannot be told, for example without a permission: reading it reports why.
pub(super) fn may_exist(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

/// Creates a file with a random key, mode 0600, unless it exists. Of several concurrent processes, only one creates it.
///
/// The key is first written to a temporary file with a random name, so that a file left by a crash is not in the way.
/// After the sync it is renamed, unless the target exists by then.
pub(super) fn create_unless_exists(path: &Path) -> io::Result<()> {
    if may_exist(path) {
        return Ok(());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let mut random = Zeroizing::new([0; MASTER_KEY_BYTES]);
    getrandom::fill(&mut *random).map_err(io::Error::other)?;
    let text = Zeroizing::new(format!("{}\n", hex::encode(random.as_slice())));
    let mut temporary = tempfile::Builder::new()
        .prefix(".master-key.")
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    temporary.write_all(text.as_bytes())?;
    temporary.as_file().sync_all()?;
    match temporary.persist_noclobber(path) {
        Ok(_) => {}
        // Another process was first. The caller reads its key, and this one was never used.
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.error),
    }
    // The new name is only durable after the folder was synced, too.
    File::open(folder)?.sync_all()
}

/// Why the master key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    /// It does not open the stored keys.
    #[error("wrong master key: restore the one that this store's applications were encrypted with")]
    Wrong(#[source] SealError),
    /// The given text is not a key.
    #[error("the master key is not {} hex digits", MASTER_KEY_BYTES * 2)]
    Invalid,
    /// The file does not hold a key.
    #[error("{} does not hold a master key of {} hex digits", path.display(), MASTER_KEY_BYTES * 2)]
    InvalidFile {
        /// The file.
        path: PathBuf,
    },
    /// The file is empty, and nothing is sealed yet: a start was interrupted while it created the key.
    #[error(
        "the master key {0} is empty: its creation was interrupted. No application is encrypted with it yet: \
         delete {0}, and the next start creates it; with Postgres, copy the key of the other gateways there",
        path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is empty, and the store has keys sealed with the lost key.
    #[error(
        "the master key {} is empty, and the store has applications encrypted with the lost key: restore the \
         file from a backup",
        path.display()
    )]
    Emptied {
        /// The file.
        path: PathBuf,
    },
    /// The file is missing, and the store has keys sealed with it.
    #[error(
        "the master key {} is missing, and the store has applications encrypted with it: restore it",
        path.display()
    )]
    Lost {
        /// The file.
        path: PathBuf,
    },
    /// The shared file is missing. It is not created: the key would differ from the other gateways'.
    #[error(
        "the master key {0} is missing. With Postgres it is not created, since all gateways share one: copy \
         theirs, or, for a new installation, create it once with (umask 077; openssl rand -hex 32 >{0}) and copy it to \
         every gateway",
        path.display()
    )]
    NotShared {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read, or has what no key has.
    #[error("the master key is in {0}")]
    Unreadable(SecretError),
    /// The file is missing and cannot be created.
    #[error("the master key {} cannot be created", path.display())]
    NotCreated {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
}

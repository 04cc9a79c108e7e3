//! Keys at rest: ChaCha20-Poly1305 (RFC 8439) under the master key, bound to the application's ident and to the slot.
//!
//! An attacker with write access to the database but without the master key cannot use one application's key for
//! another, put a rotated key back as the current one, or extend an overlap. What remains possible: putting back a
//! record's own earlier bytes, copied before a rotation, since nothing outside the database shows which are newer.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
};
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignTime},
};
use zeroize::Zeroizing;

use crate::config::MasterKey;

const MASTER_KEY_BYTES: usize = 32;

/// Prefix of a sealed key's authenticated data.
const FORMAT: &[u8] = b"signpost:application-key:2:";

/// Seals and opens application keys.
pub struct Sealer {
    key: LessSafeKey,
    /// Hashes whom a shared rate limit counts: all gateways on a store have the same key, and without it the store's hashes
    /// do not tell addresses.
    pub(crate) rate_key: hmac::Key,
    /// Authenticates snapshots.
    pub(super) snapshot_key: hmac::Key,
}

/// Derive [`Sealer::rate_key`] and [`Sealer::snapshot_key`] from the master key.
const RATE_KEY: &[u8] = b"signpost:rate-limits:1";
const SNAPSHOT_KEY: &[u8] = b"signpost:snapshot:1";

/// The position of a sealed key in its record. The key can only be opened for the same slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The key that clients sign with.
    Current,
    /// The key before the last rotation.
    Previous {
        /// The last millisecond of its overlap.
        until: SignTime,
    },
}

impl Slot {
    /// The authenticated data. Unambiguous: the parts before the ident have fixed lengths.
    fn authenticated(self, ident: AppIdent) -> Vec<u8> {
        let (slot, until) = match self {
            Self::Current => (b'c', 0),
            Self::Previous { until } => (b'p', until.as_millis()),
        };
        let ident = ident.as_str().as_bytes();
        [FORMAT, &[slot], &until.to_be_bytes(), ident].concat()
    }
}

impl Sealer {
    /// Reads the master key. Creates a missing [`MasterKey::File`] (mode 0600).
    ///
    /// With `seals_something`, the store has keys that only the existing master key opens, so none is created.
    ///
    /// # Errors
    ///
    /// The key's file is missing and must not be created, cannot be read or created, or does not hold a key.
    pub fn from_config(
        master_key: &MasterKey,
        seals_something: bool,
    ) -> Result<Self, MasterKeyError> {
        match master_key {
            MasterKey::File(path) if !seals_something => {
                create_unless_exists(path).map_err(|cause| MasterKeyError::NotCreated {
                    path: path.clone(),
                    cause,
                })?;
                Self::from_file(path, seals_something)
            }
            _ => {
                let existing = Self::existing(master_key, seals_something)?;
                Ok(existing.expect("only a file that may be created is missing without an error"))
            }
        }
    }

    /// Reads the master key without creating it. `None` if [`Self::from_config`] would create its file.
    ///
    /// # Errors
    ///
    /// As [`Self::from_config`].
    pub(crate) fn existing(
        master_key: &MasterKey,
        seals_something: bool,
    ) -> Result<Option<Self>, MasterKeyError> {
        match master_key {
            MasterKey::Given(secret) => Self::from_hex(secret.expose()).map(Some),
            MasterKey::File(path) | MasterKey::SharedFile(path) if path.exists() => {
                Self::from_file(path, seals_something).map(Some)
            }
            MasterKey::File(path) | MasterKey::SharedFile(path) if seals_something => {
                Err(MasterKeyError::Lost { path: path.clone() })
            }
            MasterKey::SharedFile(path) => Err(MasterKeyError::NotShared { path: path.clone() }),
            MasterKey::File(_) => Ok(None),
        }
    }

    fn from_file(path: &Path, seals_something: bool) -> Result<Self, MasterKeyError> {
        let read = fs::read_to_string(path).map(Zeroizing::new);
        let text = read.map_err(|cause| MasterKeyError::Unreadable {
            path: path.to_owned(),
            cause,
        })?;
        let path = path.to_owned();
        match text.trim() {
            "" if seals_something => Err(MasterKeyError::Emptied { path }),
            "" => Err(MasterKeyError::Empty { path }),
            digits => Self::from_hex(digits).map_err(|_| MasterKeyError::InvalidFile { path }),
        }
    }

    fn from_hex(digits: &str) -> Result<Self, MasterKeyError> {
        let mut bytes = Zeroizing::new([0; MASTER_KEY_BYTES]);
        hex::decode_to_slice(digits, &mut *bytes).map_err(|_| MasterKeyError::Invalid)?;
        let key =
            UnboundKey::new(&CHACHA20_POLY1305, &*bytes).map_err(|_| MasterKeyError::Invalid)?;
        let master = hmac::Key::new(hmac::HMAC_SHA256, &*bytes);
        let derived =
            |label| hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&master, label).as_ref());
        Ok(Self {
            key: LessSafeKey::new(key),
            rate_key: derived(RATE_KEY),
            snapshot_key: derived(SNAPSHOT_KEY),
        })
    }

    /// Seals a key for a slot of `ident`'s record: a random nonce, then the sealed key and its tag.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn seal(&self, key: &AppKey, ident: AppIdent, slot: Slot) -> Result<Vec<u8>, SealError> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NoRandomness)?;
        let mut sealed = key.expose().as_bytes().to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(slot.authenticated(ident)),
                &mut sealed,
            )
            .map_err(|_| SealError::NotSealed)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens what [`Self::seal`] sealed for the same ident and slot.
    ///
    /// # Errors
    ///
    /// Another master key sealed it, it is for another ident or slot, or it was changed.
    pub(crate) fn open(
        &self,
        sealed: &[u8],
        ident: AppIdent,
        slot: Slot,
    ) -> Result<AppKey, SealError> {
        let (nonce, sealed) = sealed
            .split_at_checked(NONCE_LEN)
            .ok_or(SealError::NotOpened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::NotOpened)?;
        let mut opened = Zeroizing::new(sealed.to_vec());
        let key = self
            .key
            .open_in_place(nonce, Aad::from(slot.authenticated(ident)), &mut opened);
        let key = key.map_err(|_| SealError::NotOpened)?;
        std::str::from_utf8(key)
            .ok()
            .and_then(|key| key.parse().ok())
            .ok_or(SealError::NotOpened)
    }

    /// Checks the master key with the current key of an application.
    ///
    /// # Errors
    ///
    /// Another master key sealed it.
    pub(super) fn check(&self, ident: AppIdent, current: &[u8]) -> Result<(), MasterKeyError> {
        let opened = self.open(current, ident, Slot::Current);
        opened.map(drop).map_err(MasterKeyError::Wrong)
    }
}

signpost_protocol::hide_in_debug!(Sealer);

/// Creates a file with a random key, mode 0600, unless it exists. Of several concurrent processes, only one creates it.
///
/// The key is first written to a temporary file with a random name, so that a file left by a crash is not in the way.
/// After the sync it is renamed, unless the target exists by then.
fn create_unless_exists(path: &Path) -> io::Result<()> {
    if path.exists() {
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
    /// The file cannot be read.
    #[error("the master key {} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
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

/// Why a key could not be sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The system has no random bytes.
    #[error("the system has no random bytes")]
    NoRandomness,
    /// The key is too long to be sealed.
    #[error("the key could not be sealed")]
    NotSealed,
    /// Another master key sealed it, it is for another application or slot, or it was changed.
    #[error(
        "encrypted with another master key or for another application or slot, or changed since"
    )]
    NotOpened,
}

/// Generates an application key.
///
/// # Errors
///
/// The system has no random bytes.
pub fn new_app_key() -> Result<AppKey, SealError> {
    let mut random = Zeroizing::new([0; AppKey::RANDOM_BYTES]);
    getrandom::fill(&mut *random).map_err(|_| SealError::NoRandomness)?;
    Ok(AppKey::from_random(&random))
}

/// Generates an application's ident.
///
/// # Errors
///
/// The system has no random bytes.
pub fn new_app_ident() -> Result<AppIdent, SealError> {
    loop {
        let mut random = [0; AppIdent::RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|_| SealError::NoRandomness)?;
        if let Some(ident) = AppIdent::generate(&random) {
            return Ok(ident);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ident(letter: char) -> AppIdent {
        letter.to_string().repeat(24).parse().unwrap()
    }

    const CURRENT: Slot = Slot::Current;

    fn previous(until: u64) -> Slot {
        let until = SignTime::from_millis(until);
        Slot::Previous { until }
    }

    #[test]
    fn a_sealed_key_opens_for_its_own_ident_and_master_key_only() {
        let sealer = Sealer::from_hex(&"ab".repeat(32)).unwrap();
        let key = new_app_key().unwrap();
        let sealed = sealer.seal(&key, ident('a'), CURRENT).unwrap();
        assert!(
            !sealed
                .windows(8)
                .any(|piece| key.expose().as_bytes().starts_with(piece))
        );
        assert!(sealer.open(&sealed, ident('a'), CURRENT).unwrap() == key);
        assert_eq!(
            sealer.open(&sealed, ident('b'), CURRENT).unwrap_err(),
            SealError::NotOpened
        );
        let other = Sealer::from_hex(&"cd".repeat(32)).unwrap();
        assert_eq!(
            other.open(&sealed, ident('a'), CURRENT).unwrap_err(),
            SealError::NotOpened
        );
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(sealer.open(&changed, ident('a'), CURRENT).is_err());
        }
        assert!(sealer.open(&sealed[..4], ident('a'), CURRENT).is_err());
    }

    #[test]
    fn a_sealed_key_opens_in_its_own_slot_until_its_own_end_only() {
        let sealer = Sealer::from_hex(&"ab".repeat(32)).unwrap();
        let key = new_app_key().unwrap();
        let slots = [CURRENT, previous(0), previous(1000), previous(1001)];
        for sealed_for in slots {
            let sealed = sealer.seal(&key, ident('a'), sealed_for).unwrap();
            for slot in slots {
                let opened = sealer.open(&sealed, ident('a'), slot);
                assert_eq!(
                    opened.is_ok(),
                    slot == sealed_for,
                    "{sealed_for:?} {slot:?}"
                );
            }
        }
    }

    #[test]
    fn files_left_by_a_crash_do_not_prevent_a_start() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signpost.key");
        // A temporary file that a killed process left, named by a process id, which is always the same in a container.
        let left = file.with_extension(format!("key.{}", std::process::id()));
        fs::write(&left, "").unwrap();
        fs::write(folder.path().join(".master-key.abcdef"), "ab").unwrap();
        Sealer::from_config(&MasterKey::File(file.clone()), false).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap().trim().len(), 64);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn the_error_for_an_empty_master_key_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signpost.key");
        fs::write(&file, "\n").unwrap();
        let master_key = MasterKey::File(file.clone());
        let empty = Sealer::from_config(&master_key, false).unwrap_err();
        assert!(empty.to_string().contains("delete"), "{empty}");
        let emptied = Sealer::from_config(&master_key, true).unwrap_err();
        assert!(emptied.to_string().contains("backup"), "{emptied}");
        // The file was not replaced.
        assert_eq!(fs::read_to_string(&file).unwrap(), "\n");
    }

    #[test]
    fn a_missing_master_key_is_created_readable_by_its_owner_only_and_reused() {
        let folder = std::env::temp_dir().join(format!("signpost-seal-{}", std::process::id()));
        let file = folder.join("signpost.key");
        let master_key = MasterKey::File(file.clone());
        let first = Sealer::from_config(&master_key, false).unwrap();
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let second = Sealer::from_config(&master_key, false).unwrap();
        let key = new_app_key().unwrap();
        let sealed = first.seal(&key, ident('a'), CURRENT).unwrap();
        assert!(second.open(&sealed, ident('a'), CURRENT).unwrap() == key);
        fs::write(&file, "not a key").unwrap();
        let error = Sealer::from_config(&master_key, false).unwrap_err();
        assert!(error.to_string().contains("signpost.key"), "{error}");
        fs::remove_file(&file).unwrap();
        let lost = Sealer::from_config(&master_key, true).unwrap_err();
        assert!(matches!(lost, MasterKeyError::Lost { .. }) && !file.exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_shared_master_key_is_never_created() {
        let folder = std::env::temp_dir().join(format!("signpost-shared-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("signpost.key");
        let master_key = MasterKey::SharedFile(file.clone());
        let missing = Sealer::from_config(&master_key, false).unwrap_err();
        assert!(missing.to_string().contains("openssl rand -hex 32"));
        let lost = Sealer::from_config(&master_key, true).unwrap_err();
        assert!(matches!(lost, MasterKeyError::Lost { .. }));
        assert!(!file.exists());
        fs::write(&file, "ab".repeat(32)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        Sealer::from_config(&master_key, false).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}

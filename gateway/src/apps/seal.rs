//! Keys at rest: ChaCha20-Poly1305 (RFC 8439) under the master key, bound to the application's ident.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use gateway_protocol::{app::AppIdent, sign::AppKey};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::config::MasterKey;

const MASTER_KEY_BYTES: usize = 32;

/// Seals and opens application keys.
pub struct Sealer(LessSafeKey);

impl Sealer {
    /// Reads the master key, making its file (mode 0600) where it is the gateway's to make.
    ///
    /// A file that several gateways share is not. Where it `seals_something` there are keys already that only the old
    /// master key opens, so that none is made.
    ///
    /// # Errors
    ///
    /// The key's file is missing and not to be made, cannot be read or made, or what is there is no key.
    pub fn from_config(
        master_key: &MasterKey,
        seals_something: bool,
    ) -> Result<Self, MasterKeyError> {
        match master_key {
            MasterKey::Given(secret) => Self::from_hex(secret.expose()),
            MasterKey::File(path) | MasterKey::SharedFile(path)
                if seals_something && !path.exists() =>
            {
                Err(MasterKeyError::Lost { path: path.clone() })
            }
            MasterKey::SharedFile(path) if !path.exists() => {
                Err(MasterKeyError::NotShared { path: path.clone() })
            }
            MasterKey::SharedFile(path) => Self::from_file(path),
            MasterKey::File(path) => {
                make_unless_there(path).map_err(|cause| MasterKeyError::NotMade {
                    path: path.clone(),
                    cause,
                })?;
                Self::from_file(path)
            }
        }
    }

    fn from_file(path: &Path) -> Result<Self, MasterKeyError> {
        if fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0) {
            tracing::warn!(path = %path.display(), "other users may read the master key: chmod 600 it");
        }
        let read = fs::read_to_string(path).map(Zeroizing::new);
        let text = read.map_err(|cause| MasterKeyError::Unreadable {
            path: path.to_owned(),
            cause,
        })?;
        Self::from_hex(text.trim()).map_err(|_| MasterKeyError::NoKeyIn {
            path: path.to_owned(),
        })
    }

    fn from_hex(digits: &str) -> Result<Self, MasterKeyError> {
        let mut bytes = Zeroizing::new([0; MASTER_KEY_BYTES]);
        hex::decode_to_slice(digits, &mut *bytes).map_err(|_| MasterKeyError::NoKey)?;
        let key =
            UnboundKey::new(&CHACHA20_POLY1305, &*bytes).map_err(|_| MasterKeyError::NoKey)?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Seals a key for `ident`: a random nonce, then the sealed key and its tag.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn seal(&self, key: &AppKey, ident: AppIdent) -> Result<Vec<u8>, SealError> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NoRandomness)?;
        let mut sealed = key.expose().as_bytes().to_vec();
        let aad = Aad::from(ident.as_str());
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .map_err(|_| SealError::NotSealed)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens what [`Self::seal`] sealed for the same ident.
    ///
    /// # Errors
    ///
    /// Another master key or another ident sealed it, or it was changed.
    pub fn open(&self, sealed: &[u8], ident: AppIdent) -> Result<AppKey, SealError> {
        let (nonce, sealed) = sealed
            .split_at_checked(NONCE_LEN)
            .ok_or(SealError::NotOpened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::NotOpened)?;
        let mut opened = Zeroizing::new(sealed.to_vec());
        let key = self
            .0
            .open_in_place(nonce, Aad::from(ident.as_str()), &mut opened);
        let key = key.map_err(|_| SealError::NotOpened)?;
        std::str::from_utf8(key)
            .ok()
            .and_then(|key| key.parse().ok())
            .ok_or(SealError::NotOpened)
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Sealer(…)")
    }
}

/// Makes a file with a random key. Of several processes that try at once, one makes it: it is written
/// aside and linked into place, so nobody sees half a key.
fn make_unless_there(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        fs::create_dir_all(folder)?;
    }
    let aside = path.with_extension(format!("key.{}", std::process::id()));
    let mut random = Zeroizing::new([0; MASTER_KEY_BYTES]);
    getrandom::fill(&mut *random).map_err(io::Error::other)?;
    let text = Zeroizing::new(format!("{}\n", hex::encode(random.as_slice())));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside)?;
    match linked {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => Err(cause),
        _ => Ok(()),
    }
}

/// Why there is no master key.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    /// The given text is no key.
    #[error("the master key is not {} hex digits", MASTER_KEY_BYTES * 2)]
    NoKey,
    /// What the file holds is no key.
    #[error("{} does not hold a master key of {} hex digits", path.display(), MASTER_KEY_BYTES * 2)]
    NoKeyIn {
        /// The file.
        path: PathBuf,
    },
    /// The file is missing, and applications were sealed under what it held.
    #[error(
        "the master key {} is missing, and the store has applications whose keys only it opens: restore it",
        path.display()
    )]
    Lost {
        /// The file.
        path: PathBuf,
    },
    /// The file is missing, and other gateways may have theirs: one that is made here would be another.
    #[error(
        "the master key {0} is missing, and none is made for a Postgres, since all gateways there share one: copy \
         theirs, or, for a new installation, make it once with (umask 077; openssl rand -hex 32 >{0}) and copy it to \
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
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// The file is missing and cannot be made.
    #[error("the master key {} cannot be made", path.display())]
    NotMade {
        /// The file.
        path: PathBuf,
        /// What the system says.
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
    /// Another master key or another ident sealed it, or it was changed.
    #[error("sealed under another master key, or changed since")]
    NotOpened,
}

/// Makes a new application key.
///
/// # Errors
///
/// The system has no random bytes.
pub fn new_app_key() -> Result<AppKey, SealError> {
    let mut random = Zeroizing::new([0; AppKey::RANDOM_BYTES]);
    getrandom::fill(&mut *random).map_err(|_| SealError::NoRandomness)?;
    Ok(AppKey::from_random(&random))
}

/// Makes a new application's ident.
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

    #[test]
    fn a_sealed_key_opens_for_its_own_ident_and_master_key_only() {
        let sealer = Sealer::from_hex(&"ab".repeat(32)).unwrap();
        let key = new_app_key().unwrap();
        let sealed = sealer.seal(&key, ident('a')).unwrap();
        assert!(
            !sealed
                .windows(8)
                .any(|piece| key.expose().as_bytes().starts_with(piece))
        );
        assert!(sealer.open(&sealed, ident('a')).unwrap() == key);
        assert_eq!(
            sealer.open(&sealed, ident('b')).unwrap_err(),
            SealError::NotOpened
        );
        let other = Sealer::from_hex(&"cd".repeat(32)).unwrap();
        assert_eq!(
            other.open(&sealed, ident('a')).unwrap_err(),
            SealError::NotOpened
        );
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(sealer.open(&changed, ident('a')).is_err());
        }
        assert!(sealer.open(&sealed[..4], ident('a')).is_err());
    }

    #[test]
    fn a_missing_master_key_is_made_for_its_owner_alone_and_kept() {
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
        let sealed = first.seal(&key, ident('a')).unwrap();
        assert!(second.open(&sealed, ident('a')).unwrap() == key);
        fs::write(&file, "not a key").unwrap();
        let error = Sealer::from_config(&master_key, false).unwrap_err();
        assert!(error.to_string().contains("signpost.key"), "{error}");
        fs::remove_file(&file).unwrap();
        let lost = Sealer::from_config(&master_key, true).unwrap_err();
        assert!(matches!(lost, MasterKeyError::Lost { .. }) && !file.exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_master_key_that_gateways_share_is_made_by_none_of_them() {
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

//! Keys at rest: ChaCha20-Poly1305 (RFC 8439) under the master key, bound to the application's ident and to the slot.
//!
//! A sealed key begins with the id of its master key: while the master key is replaced, both are known, and none is tried.
//!
//! An attacker with write access to the database but without the master key cannot use one application's key for
//! another, put a rotated key back as the current one, or extend an overlap. What remains possible: putting back a
//! record's own earlier bytes, copied before a rotation, since nothing outside the database shows which are newer.

mod master_key;

use std::{fmt, iter, path::Path};

use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
};
use signpost_kit::secret::{Secret, SecretError, SecretSource};
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignTime},
};
use signpost_store::tables::sealed_keys::SEAL_ID_BYTES;
use zeroize::Zeroizing;

use self::master_key::{MasterKeyError, create_unless_exists, may_exist};
use crate::config::{MasterKey, MultiApplications};

const MASTER_KEY_BYTES: usize = 32;

/// Prefix of a sealed key's authenticated data.
const FORMAT: &[u8] = b"signpost:application-key:3:";

/// The same of a response of the management API, which is kept for repeated requests: it can have an application's key.
const RESPONSE_FORMAT: &[u8] = b"signpost:idempotent-response:1:";

/// What is derived from a master key, by HMAC-SHA-256.
const KEY_ID: &[u8] = b"signpost:master-key-id:1";
const RATE_KEY: &[u8] = b"signpost:rate-limits:1";
const SNAPSHOT_KEY: &[u8] = b"signpost:snapshot:1";
const CONFIG_KEY: &[u8] = b"signpost:configuration:1";
const REQUEST_KEY: &[u8] = b"signpost:idempotent-request:1";

/// Seals application keys under the master key, and opens those under it or the previous one.
pub struct Sealer {
    current: MasterKeys,
    previous: Option<MasterKeys>,
}

/// A master key, and what is derived from it.
struct MasterKeys {
    id: MasterKeyId,
    sealing: LessSafeKey,
    rates: hmac::Key,
    snapshots: hmac::Key,
    configs: hmac::Key,
    requests: hmac::Key,
}

/// Names a master key; no secret. A sealed key begins with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasterKeyId([u8; SEAL_ID_BYTES]);

impl MasterKeyId {
    fn of(sealed: &[u8]) -> Option<Self> {
        sealed.first_chunk().copied().map(Self)
    }

    /// The bytes in the store.
    pub const fn bytes(self) -> [u8; SEAL_ID_BYTES] {
        self.0
    }
}

impl fmt::Display for MasterKeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

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
    fn authenticated(self, id: MasterKeyId, ident: AppIdent) -> Vec<u8> {
        let (slot, until) = match self {
            Self::Current => (b'c', 0),
            Self::Previous { until } => (b'p', until.as_millis()),
        };
        let ident = ident.as_str().as_bytes();
        [FORMAT, &id.0, &[slot], &until.to_be_bytes(), ident].concat()
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
                let existing = Self::existing_key(master_key, seals_something)?;
                Ok(existing.expect("only a file that may be created is missing without an error"))
            }
        }
    }

    /// Reads the master keys without creating one. `None` if [`Self::from_config`] would create its file.
    ///
    /// # Errors
    ///
    /// As [`Self::from_config`].
    pub fn existing(
        multi: &MultiApplications,
        seals_something: bool,
    ) -> Result<Option<Self>, MasterKeyError> {
        let existing = Self::existing_key(&multi.master_key, seals_something)?;
        let previous = multi.previous_master_key.as_ref();
        existing
            .map(|sealer| sealer.with_previous(previous))
            .transpose()
    }

    /// Also opens what the previous master key has sealed.
    ///
    /// # Errors
    ///
    /// That key is not one.
    pub fn with_previous(self, previous: Option<&Secret>) -> Result<Self, MasterKeyError> {
        let previous = previous.map(|secret| MasterKeys::from_hex(secret.expose()));
        Ok(Self {
            previous: previous.transpose()?,
            ..self
        })
    }

    fn existing_key(
        master_key: &MasterKey,
        seals_something: bool,
    ) -> Result<Option<Self>, MasterKeyError> {
        match master_key {
            MasterKey::Given(secret) => Self::from_hex(secret.expose()).map(Some),
            MasterKey::File(path) | MasterKey::SharedFile(path) if may_exist(path) => {
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
        match SecretSource::File(path.to_owned()).read() {
            Ok(digits) => Self::from_hex(digits.expose()).map_err(|_| {
                let path = path.to_owned();
                MasterKeyError::InvalidFile { path }
            }),
            Err(SecretError::Empty { path }) if seals_something => {
                Err(MasterKeyError::Emptied { path })
            }
            Err(SecretError::Empty { path }) => Err(MasterKeyError::Empty { path }),
            Err(unreadable) => Err(MasterKeyError::Unreadable(unreadable)),
        }
    }

    fn from_hex(digits: &str) -> Result<Self, MasterKeyError> {
        Ok(Self {
            current: MasterKeys::from_hex(digits)?,
            previous: None,
        })
    }

    /// The master key that seals.
    pub const fn current(&self) -> MasterKeyId {
        self.current.id
    }

    /// The master key that only opens.
    pub fn previous(&self) -> Option<MasterKeyId> {
        self.previous.as_ref().map(|keys| keys.id)
    }

    /// Hashes whom a shared rate limit counts: all gateways on a store have the same key, and without it the store's hashes
    /// do not tell addresses.
    pub(super) fn rate_key(&self) -> hmac::Key {
        self.current.rates.clone()
    }

    /// Hashes configurations, in which secrets are: the same key at all gateways of the store.
    pub fn config_key(&self) -> hmac::Key {
        self.current.configs.clone()
    }

    /// Authenticate snapshots; the first key is for new ones.
    pub fn snapshot_keys(&self) -> Vec<hmac::Key> {
        self.all().map(|keys| keys.snapshots.clone()).collect()
    }

    /// Hash the requests whose responses are kept; the first key is for new ones.
    pub fn request_keys(&self) -> Vec<hmac::Key> {
        self.all().map(|keys| keys.requests.clone()).collect()
    }

    fn all(&self) -> impl Iterator<Item = &MasterKeys> {
        iter::once(&self.current).chain(&self.previous)
    }

    /// Seals a key for a slot of `ident`'s record: the master key's id, a random nonce, then the sealed key and its tag.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn seal(&self, key: &AppKey, ident: AppIdent, slot: Slot) -> Result<Vec<u8>, SealError> {
        let authenticated = slot.authenticated(self.current(), ident);
        self.seal_bytes(key.expose().as_bytes(), authenticated)
    }

    fn seal_bytes(&self, plain: &[u8], authenticated: Vec<u8>) -> Result<Vec<u8>, SealError> {
        let MasterKeys { id, sealing, .. } = &self.current;
        // Random, since all gateways on a store seal with the same key and share no counter. Of 96 bits, a repetition
        // becomes likely only after some 2^48 keys.
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| SealError::NoRandomness)?;
        let mut sealed = plain.to_vec();
        sealing
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(authenticated),
                &mut sealed,
            )
            .map_err(|_| SealError::NotSealed)?;
        Ok([&id.0[..], &nonce, &sealed].concat())
    }

    /// Opens what [`Self::seal`] sealed for the same ident and slot.
    ///
    /// # Errors
    ///
    /// Another master key sealed it, it is for another ident or slot, or it was changed.
    pub fn open(&self, sealed: &[u8], ident: AppIdent, slot: Slot) -> Result<AppKey, SealError> {
        let key = self.open_bytes(sealed, |id| slot.authenticated(id, ident))?;
        std::str::from_utf8(&key)
            .ok()
            .and_then(|key| key.parse().ok())
            .ok_or(SealError::NotOpened)
    }

    fn open_bytes(
        &self,
        sealed: &[u8],
        authenticated: impl FnOnce(MasterKeyId) -> Vec<u8>,
    ) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let keys = self.keys_of(sealed)?;
        let (nonce, sealed) = sealed[SEAL_ID_BYTES..]
            .split_at_checked(NONCE_LEN)
            .ok_or(SealError::NotOpened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::NotOpened)?;
        // Opened in place, in memory that is wiped: no second copy of the key stays behind.
        let mut opened = Zeroizing::new(sealed.to_vec());
        let authenticated = Aad::from(authenticated(keys.id));
        let opening = keys
            .sealing
            .open_in_place(nonce, authenticated, &mut opened);
        let length = opening.map_err(|_| SealError::NotOpened)?.len();
        opened.truncate(length);
        Ok(opened)
    }

    /// Seals a response for the row with this key.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn seal_response(&self, response: &[u8], row: &[u8]) -> Result<Vec<u8>, SealError> {
        self.seal_bytes(response, authenticated_response(self.current(), row))
    }

    /// Opens what [`Self::seal_response`] sealed for the same row.
    ///
    /// # Errors
    ///
    /// Another master key sealed it, it is for another row, or it was changed.
    pub fn open_response(
        &self,
        sealed: &[u8],
        row: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, SealError> {
        self.open_bytes(sealed, |id| authenticated_response(id, row))
    }

    /// The same key under the current master key: the same bytes if that has sealed them.
    ///
    /// # Errors
    ///
    /// As [`Self::open`] and [`Self::seal`].
    pub(super) fn seal_anew(
        &self,
        sealed: &[u8],
        ident: AppIdent,
        slot: Slot,
    ) -> Result<Vec<u8>, SealError> {
        if MasterKeyId::of(sealed) == Some(self.current()) {
            return Ok(sealed.to_vec());
        }
        let key = self.open(sealed, ident, slot)?;
        self.seal(&key, ident, slot)
    }

    /// Checks that a sealed key is under a master key that is known here.
    ///
    /// # Errors
    ///
    /// Another master key sealed it.
    pub fn check(&self, sealed: &[u8]) -> Result<(), MasterKeyError> {
        let unknown = self.unknown_master_key(sealed);
        unknown.map_or(Ok(()), |other| Err(MasterKeyError::Wrong(other)))
    }

    /// That another master key sealed a key, if so.
    pub(super) fn unknown_master_key(&self, sealed: &[u8]) -> Option<SealError> {
        match self.keys_of(sealed) {
            Err(other @ SealError::OtherMasterKey(_)) => Some(other),
            // A record that was changed concerns no other one.
            _ => None,
        }
    }

    /// The master key that a sealed key names.
    fn keys_of(&self, sealed: &[u8]) -> Result<&MasterKeys, SealError> {
        let id = MasterKeyId::of(sealed).ok_or(SealError::NotOpened)?;
        // By its id, not by trying: so a wrong master key is told apart from a record that was changed.
        let mut known = self.all();
        let keys = known.find(|keys| keys.id == id);
        keys.ok_or(SealError::OtherMasterKey(id))
    }
}

fn authenticated_response(id: MasterKeyId, row: &[u8]) -> Vec<u8> {
    [RESPONSE_FORMAT, &id.0, row].concat()
}

impl MasterKeys {
    fn from_hex(digits: &str) -> Result<Self, MasterKeyError> {
        let mut bytes = Zeroizing::new([0; MASTER_KEY_BYTES]);
        hex::decode_to_slice(digits, &mut *bytes).map_err(|_| MasterKeyError::Invalid)?;
        let sealing =
            UnboundKey::new(&CHACHA20_POLY1305, &*bytes).map_err(|_| MasterKeyError::Invalid)?;
        let master = hmac::Key::new(hmac::HMAC_SHA256, &*bytes);
        // Each purpose has a key of its own, so what is made with one proves nothing elsewhere. The id is a hash, too:
        // it is stored in the open, and tells nothing of the key.
        let derived = |label| hmac::sign(&master, label);
        let key = |label| hmac::Key::new(hmac::HMAC_SHA256, derived(label).as_ref());
        let id = MasterKeyId::of(derived(KEY_ID).as_ref()).expect("the hash is longer");
        Ok(Self {
            id,
            sealing: LessSafeKey::new(sealing),
            rates: key(RATE_KEY),
            snapshots: key(SNAPSHOT_KEY),
            configs: key(CONFIG_KEY),
            requests: key(REQUEST_KEY),
        })
    }
}

signpost_protocol::hide_in_debug!(Sealer);

/// Why a key could not be sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The system has no random bytes.
    #[error("the system has no random bytes")]
    NoRandomness,
    /// The key is too long to be sealed.
    #[error("the key could not be sealed")]
    NotSealed,
    /// A master key sealed it that is not known here.
    #[error("encrypted with master key {0}, which is neither master_key nor previous_master_key")]
    OtherMasterKey(MasterKeyId),
    /// It is for another application or slot, or it was changed.
    #[error("encrypted for another application or slot, or changed since")]
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
    use std::{fs, os::unix::fs::PermissionsExt};

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
    fn a_key_is_opened_by_the_master_key_that_it_names_and_sealed_anew_by_the_current_one() {
        let [old, new] = ["ab", "cd"].map(|digits| Sealer::from_hex(&digits.repeat(32)).unwrap());
        let both = Sealer {
            previous: Some(MasterKeys::from_hex(&"ab".repeat(32)).unwrap()),
            ..Sealer::from_hex(&"cd".repeat(32)).unwrap()
        };
        let key = new_app_key().unwrap();
        for slot in [CURRENT, previous(1000)] {
            let sealed = old.seal(&key, ident('a'), slot).unwrap();
            let unknown = new.open(&sealed, ident('a'), slot).unwrap_err();
            assert_eq!(unknown, SealError::OtherMasterKey(old.current()));
            assert!(unknown.to_string().contains(&old.current().to_string()));
            let anew = both.seal_anew(&sealed, ident('a'), slot).unwrap();
            assert!(new.open(&anew, ident('a'), slot).unwrap() == key);
            assert_eq!(both.seal_anew(&anew, ident('a'), slot).unwrap(), anew);
            // The id is authenticated: it cannot be exchanged.
            let renamed = [&new.current().0, &sealed[SEAL_ID_BYTES..]].concat();
            for sealer in [&new, &both] {
                let refused = sealer.open(&renamed, ident('a'), slot).unwrap_err();
                assert_eq!(refused, SealError::NotOpened);
            }
            assert!(both.seal_anew(&sealed, ident('b'), slot).is_err());
        }
        assert_ne!(old.current(), new.current());
        assert!(!format!("{both:?}").contains("cdcd"), "{both:?}");
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
    fn a_master_key_that_cannot_be_reached_is_not_taken_for_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        // Not by permissions: they do not bind root.
        let file = folder.path().join("file/signpost.key");
        for master_key in [MasterKey::File(file.clone()), MasterKey::SharedFile(file)] {
            for seals_something in [false, true] {
                let error = Sealer::from_config(&master_key, seals_something).unwrap_err();
                assert!(matches!(error, MasterKeyError::Unreadable(_)), "{error}");
            }
        }
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

    #[test]
    fn a_response_opens_for_its_own_row_and_master_key_only() {
        let sealer = Sealer::from_hex(&"ab".repeat(32)).unwrap();
        let sealed = sealer.seal_response(b"a response", &[1; 32]).unwrap();
        let opened = sealer.open_response(&sealed, &[1; 32]).unwrap();
        assert_eq!(**opened, *b"a response");
        let of_other = sealer.open_response(&sealed, &[2; 32]);
        assert_eq!(of_other.unwrap_err(), SealError::NotOpened);
        let other = Sealer::from_hex(&"cd".repeat(32)).unwrap();
        other.open_response(&sealed, &[1; 32]).unwrap_err();
    }
}

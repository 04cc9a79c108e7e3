//! Migration of keys that an older release sealed: they were bound to their application but not to their slot.
//!
//! The old format is only accepted here, and only while every record has it. All keys are sealed again in one
//! transaction, so a single record in the current format proves that the store was migrated. Otherwise an attacker with
//! write access to the database could put an old record back at any time. What remains possible: replacing all
//! applications with those of an old backup, before a start.

use signpost_protocol::app::AppIdent;

use super::{
    record::previous_slot,
    seal::{SealError, Sealer, Slot},
};

/// A record's keys, as stored.
pub(super) struct StoredKeys {
    pub(super) id: i64,
    pub(super) ident: String,
    pub(super) current: Vec<u8>,
    pub(super) previous: Option<Vec<u8>>,
    pub(super) previous_until: Option<i64>,
}

/// A record's keys, sealed again; to be written only if the record still has `old`.
pub(super) struct Resealed {
    pub(super) id: i64,
    pub(super) old: Vec<u8>,
    pub(super) current: Vec<u8>,
    pub(super) previous: Option<Vec<u8>>,
}

/// The format of a sealed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Bound to its slot.
    Bound,
    /// Bound to its application only, as older releases did.
    Unbound,
}

/// The format of a record's current key.
///
/// # Errors
///
/// The master key opens it in neither format.
pub(super) fn format_of(
    sealer: &Sealer,
    ident: AppIdent,
    current: &[u8],
) -> Result<Format, SealError> {
    match sealer.open(current, ident, Slot::Current) {
        Ok(_) => Ok(Format::Bound),
        Err(_) => sealer.open_unbound(current, ident).map(|_| Format::Unbound),
    }
}

/// Seals all keys of the store again. `None` unless all of them are in the old format: once one is not, the store was
/// migrated, and none may have the old format.
///
/// # Errors
///
/// The system has no random bytes.
pub(super) fn reseal(
    sealer: &Sealer,
    all: Vec<StoredKeys>,
) -> Result<Option<Vec<Resealed>>, SealError> {
    let mut resealed = Vec::with_capacity(all.len());
    for keys in all {
        let Ok(ident) = keys.ident.parse::<AppIdent>() else {
            return Ok(None);
        };
        // Either it has the current format, or it is damaged. A damaged key also stops the migration: an attacker could
        // have damaged it to hide that the store was migrated.
        let Ok(current) = sealer.open_unbound(&keys.current, ident) else {
            return Ok(None);
        };
        let previous = match (keys.previous, keys.previous_until) {
            (Some(sealed), Some(until)) => match sealer.open_unbound(&sealed, ident) {
                Ok(key) => Some(sealer.seal(&key, ident, previous_slot(until))?),
                Err(_) => None,
            },
            _ => None,
        };
        resealed.push(Resealed {
            id: keys.id,
            current: sealer.seal(&current, ident, Slot::Current)?,
            old: keys.current,
            previous,
        });
    }
    Ok(Some(resealed))
}

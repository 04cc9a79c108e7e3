//! Sealing keys anew that an older release sealed, which bound them to their application but not to their slot.
//!
//! Such a key opens here and nowhere else, and here only as long as every record of the store has one: all are sealed
//! anew in one transaction, so that a single record in the present format proves, under the master key, that the store
//! has been through this. Whoever writes to the database could otherwise put an old record back as long as the program
//! lives. What remains: replacing all applications by those of an old backup, at once, before a start.

use gateway_protocol::app::AppIdent;

use super::{
    record::previous,
    seal::{SealError, Sealer, Slot},
};

/// The keys of a record as they are stored.
pub(super) struct StoredKeys {
    pub(super) id: i64,
    pub(super) ident: String,
    pub(super) current: Vec<u8>,
    pub(super) previous: Option<Vec<u8>>,
    pub(super) previous_until: Option<i64>,
}

/// The keys of a record as they are to be stored, where it still has `old`.
pub(super) struct Resealed {
    pub(super) id: i64,
    pub(super) old: Vec<u8>,
    pub(super) current: Vec<u8>,
    pub(super) previous: Option<Vec<u8>>,
}

/// How a key is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Bound to its slot.
    Bound,
    /// As older releases did.
    Unbound,
}

/// How the current key of a record is sealed.
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

/// All keys of the store, sealed anew; nothing unless every one of them is in the old format: as soon as one is not, no other
/// can be in it by right.
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
        // Either it is in the present format, or nothing opens it: whoever can write the database could have spoiled it, to
        // hide that the old format is over.
        let Ok(current) = sealer.open_unbound(&keys.current, ident) else {
            return Ok(None);
        };
        let previous = match (keys.previous, keys.previous_until) {
            (Some(sealed), Some(until)) => match sealer.open_unbound(&sealed, ident) {
                Ok(key) => Some(sealer.seal(&key, ident, previous(until))?),
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

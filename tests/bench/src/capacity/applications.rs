//! Applications by the million, sealed as the gateway reads them.

use std::path::Path;

use gateway::measured::{MasterKey, Sealer, Slot, new_app_ident, new_app_key};

use super::{
    caller::Caller,
    disk,
    tables::{Record, Tables},
};

/// Puts so many into a store, under a master key that is made in a file, and gives some of them, spread over all.
///
/// # Errors
///
/// The store refuses, or the file cannot be written.
pub fn settle(
    count: usize,
    calling: usize,
    master_key: &Path,
    tables: &mut dyn Tables,
) -> anyhow::Result<Vec<Caller>> {
    let sealer = Sealer::from_config(&MasterKey::File(master_key.to_owned()), false)?;
    let mut callers = Vec::with_capacity(calling);
    let every = (count / calling).max(1);
    let mut records = (0..count).map(|place| {
        let (ident, key) = (new_app_ident()?, new_app_key()?);
        let key_sealed = sealer.seal(&key, ident, Slot::Current)?;
        let ident = ident.to_string();
        if place % every == 0 && callers.len() < calling {
            callers.push(Caller {
                app: Some(ident.clone()),
                key: key.expose().to_owned(),
            });
        }
        Ok(Record { ident, key_sealed })
    });
    tables.insert_applications(&mut records)?;
    drop(records);
    tables.settle()?;
    disk::settle()?;
    Ok(callers)
}

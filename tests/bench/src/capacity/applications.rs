//! Applications by the million, with keys encrypted as the gateway expects.

use std::path::Path;

use signpost_proxy::measured::{MasterKey, Sealer, Slot, new_app_ident, new_app_key};

use super::{
    caller::Caller,
    disk,
    tables::{NewApplication, Tables},
};

/// Inserts `count` applications into a store, encrypted with a master key that is created in a file. Returns `calling`
/// of them, spread over all.
///
/// # Errors
///
/// When the store reports an error, or the file cannot be written.
pub fn insert(
    count: usize,
    calling: usize,
    master_key: &Path,
    tables: &mut dyn Tables,
) -> anyhow::Result<Vec<Caller>> {
    let sealer = Sealer::from_config(&MasterKey::File(master_key.to_owned()), false)?;
    let mut callers = Vec::with_capacity(calling);
    let every = (count / calling).max(1);
    let mut rows = (0..count).map(|index| {
        let (ident, key) = (new_app_ident()?, new_app_key()?);
        let key_sealed = sealer.seal(&key, ident, Slot::Current)?;
        let ident = ident.to_string();
        if index % every == 0 && callers.len() < calling {
            callers.push(Caller {
                app: Some(ident.clone()),
                key: key.expose().to_owned(),
            });
        }
        Ok(NewApplication { ident, key_sealed })
    });
    tables.insert_applications(&mut rows)?;
    drop(rows);
    tables.run_maintenance()?;
    disk::sync()?;
    Ok(callers)
}

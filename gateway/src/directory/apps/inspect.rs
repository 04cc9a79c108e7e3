//! Read-only checks of a store, for `signpost check`: whether the master key fits, and which default versions are
//! unknown or retired. Neither the database nor the key is created or migrated.

use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::app::AppIdent;
use signpost_store::{Store, StoreError, tables::applications};

use super::{
    defaults::{default_version_warnings, unusable_defaults},
    seal::Sealer,
};
use crate::config::{Config, MultiApplications};

/// Checks the configured store, and returns warnings about it. A store that does not exist yet has none: the first start
/// creates it.
///
/// # Errors
///
/// The master key cannot be read, or is not the one that sealed the stored keys: the gateway would not start.
pub(crate) async fn inspect(
    config: &Config,
    multi: &MultiApplications,
) -> anyhow::Result<Vec<String>> {
    let known = config.versions.names_in_service(SystemClock.now());
    let contents = async {
        let Some(database) = Store::open_read_only(&config.store).await? else {
            return anyhow::Ok((None, Vec::new()));
        };
        let unusable = unusable_defaults(&database, &known).await?;
        Ok((newest_key(&database).await?, unusable))
    };
    let (newest, warnings) = match contents.await {
        Ok((newest, unusable)) => (
            newest,
            default_version_warnings(&unusable, &config.versions),
        ),
        Err(error) => {
            let warning = format!(
                "the store cannot be read now, so the master key and default versions were not checked: {error:#}"
            );
            (None, vec![warning])
        }
    };
    check_key(multi, newest)?;
    Ok(warnings)
}

/// Checks that the master key is the one that sealed the keys of a database.
///
/// # Errors
///
/// It is not, it cannot be read, or the database cannot.
pub(crate) async fn check_master_key(
    database: &Store,
    multi: &MultiApplications,
) -> anyhow::Result<()> {
    check_key(multi, newest_key(database).await?)
}

fn check_key(multi: &MultiApplications, newest: Option<(AppIdent, Vec<u8>)>) -> anyhow::Result<()> {
    let sealer = Sealer::existing(&multi.master_key, newest.is_some())?;
    if let (Some(sealer), Some((ident, key))) = (sealer, newest) {
        sealer.check(ident, &key)?;
    }
    Ok(())
}

/// Ident and sealed key of the newest application, with which the master key is checked.
pub(super) async fn newest_key(
    database: &Store,
) -> Result<Option<(AppIdent, Vec<u8>)>, StoreError> {
    let newest = applications::newest(database).await?;
    Ok(newest.and_then(|newest| Some((newest.ident.parse().ok()?, newest.key))))
}

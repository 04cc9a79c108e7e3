//! Read-only checks of a store, for `signpost check`: whether the master key fits, and which default versions are
//! unknown or retired. Neither the database nor the key is created or migrated.

use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::app::AppIdent;
use signpost_store::{
    Store, StoreError,
    tables::applications::{self, PinnedApplication},
};

use super::{defaults::unusable_defaults, seal::Sealer};
use crate::config::{Config, MultiApplications};

/// The result of the checks.
#[derive(Debug)]
pub(crate) enum InspectionOutcome {
    /// The store cannot be read now, so nothing was checked.
    Unreachable(anyhow::Error),
    /// The store does not exist yet; the first start creates it.
    Missing,
    /// The store was read, and the master key fits its newest key, if any.
    Checked {
        /// Applications whose default version is not configured, or retired.
        unusable_defaults: Vec<PinnedApplication>,
    },
}

/// Checks the configured store.
///
/// # Errors
///
/// The master key cannot be read, or is not the one that sealed the stored keys: the gateway would not start.
pub(crate) async fn inspect(
    config: &Config,
    multi: &MultiApplications,
) -> anyhow::Result<InspectionOutcome> {
    let known = config.versions.names_in_service(SystemClock.now());
    let contents = async {
        let Some(database) = Store::open_read_only(&config.store).await? else {
            return anyhow::Ok(None);
        };
        let unusable_defaults = unusable_defaults(&database, &known).await?;
        Ok(Some((newest_key(&database).await?, unusable_defaults)))
    };
    let (newest, unusable_defaults) = match contents.await {
        Ok(Some(contents)) => contents,
        Ok(None) => {
            Sealer::existing(&multi.master_key, false)?;
            return Ok(InspectionOutcome::Missing);
        }
        Err(error) => {
            Sealer::existing(&multi.master_key, false)?;
            return Ok(InspectionOutcome::Unreachable(error));
        }
    };
    let sealer = Sealer::existing(&multi.master_key, newest.is_some())?;
    if let (Some(sealer), Some((ident, key))) = (sealer, newest) {
        sealer.check(ident, &key)?;
    }
    Ok(InspectionOutcome::Checked { unusable_defaults })
}

/// Ident and sealed key of the newest application, with which the master key is checked.
pub(super) async fn newest_key(
    database: &Store,
) -> Result<Option<(AppIdent, Vec<u8>)>, StoreError> {
    let newest = applications::newest(database).await?;
    Ok(newest.and_then(|newest| Some((newest.ident.parse().ok()?, newest.key))))
}

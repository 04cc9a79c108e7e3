//! Opens the configured applications, for the gateway and its commands.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use ring::hmac;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_store::{Store, StoreSettings, changes::Watch};

use super::{
    defaults::{default_version_warnings, unusable_defaults},
    directory::{AppDirectory, CachedApps},
    inspect::newest_key,
    seal::Sealer,
    stored::StoredApps,
};
use crate::{
    config::{Applications, Config, MultiApplications, Versions},
    directory::accounts::{
        directory::AccountDirectory,
        open::{OpenAccounts, open_accounts, since_epoch},
    },
};

/// The applications of a running gateway.
pub(crate) struct OpenApps {
    /// Looks up requests' applications.
    pub directory: AppDirectory,
    /// The database; `None` in single-application mode.
    pub store: Option<Store>,
    /// The accounts; `None` if they would need a store of their own that no route asks for.
    pub accounts: Option<OpenAccounts>,
    /// Hashes the keys of shared rate limits; `None` in single-application mode.
    pub rate_key: Option<hmac::Key>,
    /// Keeps the subscription to the store's changes alive.
    _watch: Option<Watch>,
}

/// Opens the applications at the start of a gateway. Blocking.
///
/// # Errors
///
/// As [`open_store`]; or the store cannot be watched.
pub(crate) fn open_apps(config: &Config) -> anyhow::Result<OpenApps> {
    let multi = match &config.applications {
        Applications::Single(key) => {
            return Ok(OpenApps {
                directory: AppDirectory::single(key.clone()),
                store: None,
                accounts: config
                    .versions
                    .check_accounts()
                    .then(|| open_accounts(&config.store))
                    .transpose()?,
                rate_key: None,
                _watch: None,
            });
        }
        Applications::Multi(multi) => multi,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (database, store) = runtime.block_on(open_store(config, multi))?;
    // The pool's connections would end with this runtime.
    database.disconnect();
    // The key exists now: `open_store` creates a missing one.
    let sealer = Sealer::existing(&multi.master_key, false)?;
    let address = &config.store.address;
    tracing::info!(store = %address, "using the store");
    warn_of_unusable_defaults(&config.store, &config.versions);
    let apps = CachedApps::new(Arc::new(store), multi.cache_entries);
    let (subscriber, accounts) = (
        apps.subscriber(),
        Arc::new(AccountDirectory::new(&database)),
    );
    let accounts_subscriber = Arc::clone(&accounts);
    let on_change = move |change| {
        subscriber(&change);
        accounts_subscriber.on_change(&change);
    };
    let watch = database
        .watch(since_epoch, on_change)
        .context("cannot subscribe to the store's change feed")?;
    Ok(OpenApps {
        directory: AppDirectory::Multi(apps),
        accounts: Some(OpenAccounts::beside_apps(accounts, database.clone())),
        store: Some(database),
        rate_key: sealer.map(|sealer| sealer.rate_key),
        _watch: Some(watch),
    })
}

/// Warns of applications whose default version is not in `versions`, or retired. Runs on its own thread: a start or reload does not
/// wait until all applications were read.
pub(crate) fn warn_of_unusable_defaults(settings: &StoreSettings, versions: &Versions) {
    let (settings, versions) = (settings.clone(), versions.clone());
    let known = versions.names_in_service(SystemClock.now());
    let check = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // A separate pool: a pooled connection would end with this runtime while requests use it.
        let found = runtime.block_on(async {
            match Store::open_read_only(&settings).await? {
                Some(database) => Ok(unusable_defaults(&database, &known).await?),
                None => anyhow::Ok(Vec::new()),
            }
        })?;
        for warning in default_version_warnings(&found, &versions) {
            tracing::warn!("{warning}");
        }
        anyhow::Ok(())
    };
    let check = move || {
        if let Err(error) = check() {
            tracing::debug!(
                cause = %format_args!("{error:#}"),
                "default versions of applications were not checked"
            );
        }
    };
    // If the thread cannot be started, the warning is skipped.
    let _ = std::thread::Builder::new()
        .name("default-versions".to_owned())
        .spawn(check);
}

/// Opens the store of applications, and checks that the master key opens its newest key.
///
/// # Errors
///
/// The database cannot be opened, the master key cannot be read, or it is not the one that sealed the stored keys.
pub async fn open_store(
    config: &Config,
    multi: &MultiApplications,
) -> anyhow::Result<(Store, StoredApps)> {
    let database = Store::open(&config.store).await?;
    let newest = newest_key(&database).await?;
    let sealer = Sealer::from_config(&multi.master_key, newest.is_some())?;
    if let Some((ident, key)) = newest {
        sealer.check(ident, &key)?;
    }
    Ok((database.clone(), StoredApps::new(database, sealer)))
}

/// Timeout of a statement that writes many applications: 100,000 take about 2 s on an ordinary machine, and only
/// operators wait for it.
const BULK_STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Raises the statement timeout for statements that write many applications.
pub(crate) fn raise_statement_timeout(store: &mut StoreSettings) {
    let statement = &mut store.postgres.statement;
    *statement = (*statement).max(BULK_STATEMENT_TIMEOUT);
}

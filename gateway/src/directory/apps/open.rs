//! Opens the configured applications, for the gateway and its commands.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use ring::hmac;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::app::AppIdent;
use signpost_store::{Store, StoreSettings, changes::Watch};

use super::{
    administration::default_version_warnings,
    directory::{AppDirectory, CachedApps},
    inspect::unusable_defaults,
    postgres::{BULK_STATEMENT_TIMEOUT, PostgresAppStore},
    seal::Sealer,
    sqlite::SqliteAppStore,
    store::AppStore,
};
use crate::{
    config::{Applications, Config, MultiApplications, Versions},
    directory::accounts::{
        directory::AccountDirectory,
        open::{OpenAccounts, open_accounts},
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
    if let Store::Postgres(postgres) = &database {
        // The pool's connections would end with this runtime.
        postgres.disconnect();
    }
    // The key exists now: `open_store` creates a missing one.
    let sealer = Sealer::existing(&multi.master_key, false)?;
    let address = &config.store.address;
    tracing::info!(store = %address, "using the store");
    warn_of_unusable_defaults(&config.store, &config.versions, &database);
    let apps = CachedApps::new(store, multi.cache_entries);
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
        rate_key: sealer.map(|sealer| sealer.rate_key()),
        _watch: Some(watch),
    })
}

/// Warns of applications whose default version is not in `versions`, or retired. Runs on its own thread: a start or reload does not
/// wait until all applications were read.
pub(crate) fn warn_of_unusable_defaults(
    settings: &StoreSettings,
    versions: &Versions,
    database: &Store,
) {
    let (settings, versions) = (settings.clone(), versions.clone());
    let known = versions.names_in_service(SystemClock.now());
    let database = database.clone();
    let check = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let found = runtime.block_on(unusable_defaults(&settings, &database, &known))?;
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
) -> anyhow::Result<(Store, Arc<dyn AppStore>)> {
    let database = Store::open(&config.store).await?;
    let store: Arc<dyn AppStore> = match database.clone() {
        Store::Sqlite(sqlite) => {
            let newest =
                sqlite.call_blocking(|connection| SqliteAppStore::newest_sealed_key(connection))?;
            Arc::new(SqliteAppStore::new(sqlite, sealer(multi, newest)?))
        }
        Store::Postgres(postgres) => {
            let newest = PostgresAppStore::newest_sealed_key(&postgres).await?;
            Arc::new(PostgresAppStore::new(postgres, sealer(multi, newest)?))
        }
    };
    Ok((database, store))
}

fn since_epoch() -> Duration {
    SystemClock.now().since_epoch()
}

/// Raises the statement timeout for statements that write many applications.
pub(crate) fn raise_statement_timeout(store: &mut StoreSettings) {
    let statement = &mut store.postgres.statement;
    *statement = (*statement).max(BULK_STATEMENT_TIMEOUT);
}

/// The sealer, which opens the newest key, if there is one.
fn sealer(
    multi: &MultiApplications,
    newest: Option<(AppIdent, Vec<u8>)>,
) -> anyhow::Result<Sealer> {
    let sealer = Sealer::from_config(&multi.master_key, newest.is_some())?;
    if let Some((ident, key)) = newest {
        sealer.check(ident, &key)?;
    }
    Ok(sealer)
}

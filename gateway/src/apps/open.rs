//! Opening the applications that a configuration names, for the gateway and for its commands.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use gateway_protocol::app::AppIdent;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_store::{Store, StoreSettings, changes::Watch};

use super::{
    administration::unknown_defaults_warning,
    directory::{AppDirectory, CachedApps},
    inspect::unknown_defaults,
    postgres::{BULK_STATEMENT_TIMEOUT, PostgresAppStore},
    reseal::{Format, format_of},
    seal::Sealer,
    sqlite::SqliteAppStore,
    store::AppStore,
};
use crate::config::{Applications, Config, MultiApplications, Versions};

/// What a running gateway has of its applications.
pub(crate) struct OpenApps {
    /// Where requests find theirs.
    pub directory: AppDirectory,
    /// The database behind them; none in single-application mode.
    pub store: Option<Store>,
    /// The watch over the store's changes, which lasts as long as this does.
    _watch: Option<Watch>,
}

/// Opens the applications of a gateway that is about to run. Blocks meanwhile.
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
        // What was connected on this runtime would end with it.
        postgres.disconnect();
    }
    warn_of_unknown_defaults(&config.store, &config.versions, &database);
    let apps = CachedApps::new(store, multi.cache_entries);
    let told = apps.subscriber();
    let watch = database
        .watch(since_epoch, move |change| told(&change))
        .context("cannot watch the store for changes")?;
    Ok(OpenApps {
        directory: AppDirectory::Multi(apps),
        store: Some(database),
        _watch: Some(watch),
    })
}

/// Warns of applications whose default version is none of `versions`, from a thread of its own: no start and no reload waits
/// until all applications were looked at.
pub(crate) fn warn_of_unknown_defaults(
    settings: &StoreSettings,
    versions: &Versions,
    database: &Store,
) {
    let (settings, known) = (settings.clone(), versions.names());
    let database = database.clone();
    let look = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let found = runtime.block_on(unknown_defaults(&settings, &database, &known))?;
        if let Some(warning) = unknown_defaults_warning(&found) {
            tracing::warn!("{warning}");
        }
        anyhow::Ok(())
    };
    let look = move || {
        if let Err(error) = look() {
            tracing::debug!(
                "default versions of applications were not looked at: {:#}",
                error
            );
        }
    };
    // Without a thread there is no warning.
    let _ = std::thread::Builder::new()
        .name("default-versions".to_owned())
        .spawn(look);
}

/// Opens the store of applications, having made sure that the master key is the one that its keys are sealed under.
///
/// # Errors
///
/// The database or the master key cannot be opened, or is not the one that seals what is stored.
pub async fn open_store(
    config: &Config,
    multi: &MultiApplications,
) -> anyhow::Result<(Store, Arc<dyn AppStore>)> {
    let database = Store::open(&config.store).await?;
    let store: Arc<dyn AppStore> = match database.clone() {
        Store::Sqlite(sqlite) => {
            let newest =
                sqlite.call_now(|connection| SqliteAppStore::newest_sealed_key(connection))?;
            let (sealer, format) = sealer(multi, newest)?;
            let store = SqliteAppStore::new(sqlite, sealer);
            if format == Format::Unbound {
                tell_of_resealed(store.reseal().await?);
            }
            Arc::new(store)
        }
        Store::Postgres(postgres) => {
            let newest = PostgresAppStore::newest_sealed_key(&postgres).await?;
            let (sealer, format) = sealer(multi, newest)?;
            let store = PostgresAppStore::new(postgres, sealer);
            if format == Format::Unbound {
                let mut patient = config.store.clone();
                allow_bulk(&mut patient);
                if let Store::Postgres(patient) = Store::open(&patient).await? {
                    tell_of_resealed(store.through(patient).reseal().await?);
                }
            }
            Arc::new(store)
        }
    };
    Ok((database, store))
}

fn since_epoch() -> Duration {
    SystemClock.now().since_epoch()
}

/// Lets statements run long enough to write many applications at once.
pub(crate) fn allow_bulk(store: &mut StoreSettings) {
    let statement = &mut store.postgres.statement;
    *statement = (*statement).max(BULK_STATEMENT_TIMEOUT);
}

/// The sealer, and the format of the newest record: that of all, unless somebody other than Signpost wrote them.
fn sealer(
    multi: &MultiApplications,
    newest: Option<(AppIdent, Vec<u8>)>,
) -> anyhow::Result<(Sealer, Format)> {
    let sealer = Sealer::from_config(&multi.master_key, newest.is_some())?;
    let format = match newest {
        Some((ident, key)) => format_of(&sealer, ident, &key).context(OTHER_MASTER_KEY)?,
        None => Format::Bound,
    };
    Ok((sealer, format))
}

/// What to do about a master key that does not open what is stored.
pub(super) const OTHER_MASTER_KEY: &str = "the master key is not the one that the store's applications are sealed under: restore that one";

fn tell_of_resealed(records: Option<usize>) {
    match records {
        Some(records) => tracing::info!(
            records,
            "sealed the keys of {records} applications anew: they are bound to their slots now, and older releases \
             do not open them any more"
        ),
        None => tracing::error!(
            "the newest application's key is sealed as only releases did that this store has outgrown: an old key was \
             put back, an older release writes to the store, or a record is damaged and must be deleted; such applications are refused"
        ),
    }
}

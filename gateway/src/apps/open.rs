//! Opening the applications that a configuration names, for the gateway and for its commands.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use gateway_protocol::app::AppIdent;
use signpost_store::{Store, changes::Watch};

use super::{
    directory::{AppDirectory, CachedApps},
    postgres::PostgresAppStore,
    seal::Sealer,
    sqlite::SqliteAppStore,
    store::AppStore,
};
use crate::{
    clock::{Clock, SystemClock},
    config::{Applications, Config, MultiApplications},
};

/// What a running gateway has of its applications.
pub struct OpenApps {
    /// Where requests find theirs.
    pub directory: AppDirectory,
    /// The store behind them; none in single-application mode.
    pub store: Option<Arc<dyn AppStore>>,
    /// The watch over the store's changes, which lasts as long as this does.
    pub watch: Option<Watch>,
}

/// Opens the applications of a gateway that is about to run. Blocks meanwhile.
///
/// # Errors
///
/// As [`open_store`]; or the store cannot be watched.
pub fn open_apps(config: &Config) -> anyhow::Result<OpenApps> {
    let multi = match &config.applications {
        Applications::Single(key) => {
            return Ok(OpenApps {
                directory: AppDirectory::single(key.clone(), config.sign.profile.clone()),
                store: None,
                watch: None,
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
    let apps = Arc::new(CachedApps::new(Arc::clone(&store), multi.cache_entries));
    let told = Arc::clone(&apps);
    let watch = database
        .watch(since_epoch, move |change| told.on_change(&change))
        .context("cannot watch the store for changes")?;
    Ok(OpenApps {
        directory: AppDirectory::Multi(apps),
        store: Some(store),
        watch: Some(watch),
    })
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
    let profile = config.sign.profile.clone();
    let store: Arc<dyn AppStore> = match database.clone() {
        Store::Sqlite(sqlite) => {
            let sealer = sealer(multi, SqliteAppStore::any_sealed_key(&sqlite)?)?;
            Arc::new(SqliteAppStore::new(sqlite, sealer, profile))
        }
        Store::Postgres(postgres) => {
            let sealer = sealer(multi, PostgresAppStore::any_sealed_key(&postgres).await?)?;
            Arc::new(PostgresAppStore::new(postgres, sealer, profile))
        }
    };
    Ok((database, store))
}

fn since_epoch() -> Duration {
    Duration::from_millis(SystemClock.now().as_millis())
}

fn sealer(
    multi: &MultiApplications,
    sealed: Option<(AppIdent, Vec<u8>)>,
) -> anyhow::Result<Sealer> {
    let sealer = Sealer::from_config(&multi.master_key, sealed.is_some())?;
    if let Some((ident, key)) = sealed {
        sealer.open(&key, ident).context(
            "the master key is not the one that the store's applications are sealed under: restore that one",
        )?;
    }
    Ok(sealer)
}

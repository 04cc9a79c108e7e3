//! Taking on a changed configuration: the gateway of the moment is replaced by one that knows all that it knew.

use std::{net::SocketAddr, path::Path, sync::Arc};

use anyhow::bail;
use arc_swap::ArcSwap;
use signpost_kit::{
    config::{ConfigError, Loaded},
    logging::{Logging, log_warnings},
    reload::Reload,
};
use signpost_store::{Store, StoreSettings};
use tokio::sync::Mutex;

use crate::{
    apps::{directory::AppDirectory, open::warn_of_unknown_defaults},
    config::{Applications, Config},
    gateway::Gateway,
    routing::watching::{Monitor, look_up},
};

/// Keys that only a restart can change: listeners, threads and the store. A dot at the end stands for all keys below.
const NEED_RESTART: [&str; 7] = [
    "listen",
    "management.",
    "threads",
    "store",
    "postgres.",
    "applications",
    "applications.master_key",
];

/// What a gateway reloads.
pub(crate) struct GatewayReload {
    /// The gateway of the moment.
    pub(crate) current: Arc<ArcSwap<Gateway>>,
    /// Watches over the addresses of its versions.
    pub(crate) monitor: Mutex<Monitor>,
    /// The process' log.
    pub(crate) log: Logging,
    /// Where clients are served, until the process ends.
    pub(crate) listen: SocketAddr,
    /// Where management is served, until the process ends.
    pub(crate) management: SocketAddr,
    /// The store of applications, if there is one.
    pub(crate) store: Option<(StoreSettings, Store)>,
}

impl Reload for GatewayReload {
    type Config = Config;

    fn load(&self, file: &Path) -> Result<Loaded<Config>, ConfigError> {
        Config::load_settings(file)
    }

    fn needs_restart(&self, key: &str, changed: &[&str]) -> bool {
        let is_below = |section: &str| section.ends_with('.') && key.starts_with(section);
        // From one application to many, or back: the store is opened at the start.
        let is_of_mode = key.starts_with("application") && changed.contains(&"applications");
        is_of_mode
            || NEED_RESTART
                .iter()
                .any(|known| *known == key || is_below(known))
    }

    async fn apply(&self, config: Config) -> anyhow::Result<()> {
        self.refuse_own_addresses(&config)?;
        let before = self.current.load_full();
        let apps = apps(&before.apps, &config.applications).await?;
        let log = config.log.clone();
        log_warnings(&config.warnings());
        let gateway = Arc::new(before.succeeded_by(config, apps)?);
        let is_new = |one: &Arc<_>| !before.balancers().any(|known| Arc::ptr_eq(&known, one));
        let new: Vec<_> = gateway.balancers().filter(is_new).collect();
        // Before the first request asks for an address.
        look_up(&new).await;
        self.log.apply(&log);
        self.monitor.lock().await.follow(gateway.balancers());
        self.current.store(Arc::clone(&gateway));
        before.apps.retire(&gateway.apps);
        if let Some((settings, store)) = &self.store {
            warn_of_unknown_defaults(settings, &gateway.versions, store);
        }
        Ok(())
    }

    fn health_address(&self) -> SocketAddr {
        self.management
    }
}

impl GatewayReload {
    /// The file was checked against the addresses that it names itself, which may wait for a restart.
    fn refuse_own_addresses(&self, config: &Config) -> anyhow::Result<()> {
        let own = [self.listen, self.management];
        match config.versions.iter().find(|one| one.upstream.is_at(&own)) {
            Some(backend) => bail!(
                "versions.{}: the gateway itself listens at its backend's address, until a restart",
                backend.version
            ),
            None => Ok(()),
        }
    }
}

/// The applications that `config` means: a key of its own, or those of the store, which stays open.
async fn apps(before: &AppDirectory, config: &Applications) -> anyhow::Result<AppDirectory> {
    Ok(match (before, config) {
        (AppDirectory::Single(_), Applications::Single(key)) => AppDirectory::single(key.clone()),
        (AppDirectory::Multi(apps), Applications::Multi(multi)) => {
            let (apps, entries) = (Arc::clone(apps), multi.cache_entries);
            let sized = tokio::task::spawn_blocking(move || apps.of_size(entries));
            AppDirectory::Multi(sized.await?)
        }
        (before, _) => before.clone(),
    })
}

#[cfg(test)]
mod tests;

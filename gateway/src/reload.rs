//! Taking on a changed configuration: the gateway of the moment is replaced by one that knows all that it knew.

use std::{path::PathBuf, sync::Arc};

use arc_swap::ArcSwap;
use signpost_kit::{
    config::{ConfigError, Loaded},
    logging::Logging,
    reload::Reload,
};
use tokio::sync::Mutex;

use crate::{
    apps::directory::AppDirectory,
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
    /// The configuration file.
    pub file: PathBuf,
    /// The gateway of the moment.
    pub current: Arc<ArcSwap<Gateway>>,
    /// Watches over the addresses of its versions.
    pub monitor: Mutex<Monitor>,
    /// The process' log.
    pub log: Logging,
}

impl Reload for GatewayReload {
    type Config = Config;

    fn load(&self) -> Result<Loaded<Config>, ConfigError> {
        Config::load_settings(&self.file)
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
        let before = self.current.load_full();
        let apps = apps(&before.apps, &config.applications);
        let log = config.log.clone();
        let warnings = config.warnings();
        let gateway = before.succeeded_by(config, apps)?;
        let is_new = |one: &Arc<_>| !before.balancers().any(|known| Arc::ptr_eq(&known, one));
        let new: Vec<_> = gateway.balancers().filter(is_new).collect();
        // Before the first request asks for an address.
        look_up(&new).await;
        self.log.apply(&log);
        self.monitor.lock().await.follow(gateway.balancers());
        self.current.store(Arc::new(gateway));
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        Ok(())
    }
}

/// The applications that `config` means: a key of its own, or those of the store, which stays open.
fn apps(before: &AppDirectory, config: &Applications) -> AppDirectory {
    match (before, config) {
        (AppDirectory::Single(_), Applications::Single(key)) => AppDirectory::single(key.clone()),
        (AppDirectory::Multi(apps), Applications::Multi(multi)) => {
            AppDirectory::Multi(apps.of_size(multi.cache_entries))
        }
        (before, _) => before.clone(),
    }
}

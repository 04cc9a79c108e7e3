//! Reloading the configuration: a new gateway replaces the current one, and takes over its state.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::{anyhow, bail};
use arc_swap::ArcSwap;
use sd_notify::NotifyState;
use signpost_kit::{
    config::{ConfigError, Loaded},
    log::{Logging, log_warnings},
    reload::{Reload, Report, Trigger},
    server::{health::HealthAddress, notify_service_manager, shutdown::Phase},
};
use signpost_management::{
    administration::audit::{changes_of, of_reload, user_name},
    reports::{gateways::host_name, inspect::inspect},
};
use signpost_proxy::{
    AppDirectory, Beginning, Config, Gateway,
    program::{
        Applications, BackendMonitor, GatewayStatus, open_accounts, resolve_all,
        warn_of_unusable_defaults,
    },
};
use signpost_store::{
    Store, StoreSettings,
    tables::audit::{Author, add},
};
use tokio::{
    sync::{Mutex, Notify, watch},
    time::timeout,
};

use crate::process::{
    listeners::{BoundListener, Listeners},
    upgrade::{NewProcess, terminate},
};

/// Keys that need a new process: management, threads and the store. A dot at the end means all keys of the table.
const NEED_RESTART: [&str; 8] = [
    "management.",
    "threads",
    "store",
    "postgres.",
    "applications",
    "applications.master_key",
    "applications.previous_master_key",
    "applications.snapshot",
];

/// Limit of the wait for what the store says of a new configuration.
const WARNINGS_TIMEOUT: Duration = Duration::from_secs(10);

/// The parts of a running gateway that a reload replaces or needs.
pub(crate) struct GatewayReload {
    /// The gateway with the current configuration.
    pub(crate) current: Arc<ArcSwap<Gateway>>,
    /// Monitors the addresses of its versions.
    pub(crate) monitor: Mutex<BackendMonitor>,
    /// The process' log.
    pub(crate) log: Logging,
    /// The listeners.
    pub(crate) listeners: Arc<Listeners>,
    /// The store of applications; `None` in single-application mode.
    pub(crate) store: Option<Store>,
    /// The settings of the store, fixed until an upgrade.
    pub(crate) store_settings: StoreSettings,
    /// What an upgrade hands over.
    pub(crate) upgrade: Upgrade,
}

/// What an upgrade hands over, and whom it tells.
pub(crate) struct Upgrade {
    /// Starts the program's new file.
    pub(crate) new_process: NewProcess,
    /// The phase of the management listener.
    pub(crate) management: watch::Sender<Phase>,
    /// Begins the stop of this process.
    pub(crate) handed_over: Arc<Notify>,
    /// From then on this process does not end before the command's reply is sent: then the reload is dropped.
    pub(crate) replying: OnceLock<Beginning>,
}

impl Reload for GatewayReload {
    type Config = Config;

    fn load(&self, file: &Path) -> Result<Loaded<Config>, ConfigError> {
        let loaded = Config::load_settings(file)?;
        let (log, settings) = (&loaded.config.log, &loaded.settings);
        self.log.check_changed_output(log, file, settings)?;
        Ok(loaded)
    }

    fn needs_restart(&self, key: &str, changed: &[&str]) -> bool {
        needs_restart(key, changed)
    }

    async fn warnings(&self, config: &Config) -> Vec<String> {
        let mut warnings = config.warnings();
        if let Applications::Multi(multi) = &config.applications {
            let current = self.current.load_full();
            let before = Some(&current.policy.backends.versions);
            let of_store = timeout(WARNINGS_TIMEOUT, inspect(config, multi, before)).await;
            let of_store =
                of_store.unwrap_or_else(|_| Err(anyhow!("no answer within {WARNINGS_TIMEOUT:?}")));
            warnings.extend(of_store.unwrap_or_else(|error| vec![format!("the store: {error:#}")]));
        }
        warnings
    }

    fn new_process(&self, file: &Path) -> String {
        let file = file.display();
        format!("signpost upgrade --config {file} applies these, and loses nothing")
    }

    async fn apply(&self, config: Config) -> anyhow::Result<()> {
        // All that can fail comes first: a failed reload must leave the old configuration as it was. What was opened by
        // then is closed when it is dropped.
        self.reject_management_address(&config)?;
        let before = self.current.load_full();
        let apps = reloaded_apps(&before.policy.apps, &config.applications).await?;
        if config.requests_need_store() {
            self.open_accounts(&before).await?;
        }
        let (log, stale) = (self.log.prepare(&config.log).await?, config.stale);
        log_warnings(&config.warnings());
        let bound = self.listeners.bind(&config.listeners, None)?;
        bound.iter().try_for_each(BoundListener::listen)?;
        let gateway = Arc::new(before.with_config(config, apps)?);
        let backends = &gateway.policy.backends;
        let is_new = |balancer: &Arc<_>| {
            let mut known = before.policy.backends.balancers();
            !known.any(|known| Arc::ptr_eq(&known, balancer))
        };
        let new: Vec<_> = backends.balancers().filter(is_new).collect();
        // Resolves names before the first request needs them.
        resolve_all(&new).await;
        // From here on nothing fails.
        log.apply();
        // Checks begin before the first request can choose among the new addresses.
        self.monitor.lock().await.follow(backends.balancers());
        gateway.set_stale(stale);
        self.current.store(Arc::clone(&gateway));
        // After the swap: a connection whose listener is not in the current configuration ends with its first response.
        self.follow_listeners(bound, &gateway);
        // Long requests keep the old configuration alive. A cache that was replaced is emptied now, so that memory
        // holds one.
        before.policy.apps.retire(&gateway.policy.apps);
        if self.store.is_some() {
            warn_of_unusable_defaults(&self.store_settings, &backends.versions);
        }
        Ok(())
    }

    /// Writes a row of the audit, if there is a store and it answers.
    async fn reloaded(&self, by: Trigger, report: &Report) {
        let Some(store) = &self.store else {
            return;
        };
        let (actor, origin) = match by {
            Trigger::Command { user } => (user_name(user), "cli"),
            Trigger::Signal => ("signal".to_owned(), "gateway"),
            Trigger::Watch => ("watch".to_owned(), "gateway"),
        };
        let author = Author {
            actor,
            origin: format!("{origin} {}", host_name()),
            reason: None,
        };
        let gateway = self.current.load_full();
        let (number, at) = (gateway.policy.generation, gateway.state.clock.now());
        let audit = of_reload(&changes_of(&report.changed), number, author, at);
        // The new configuration is in force already, and a store that does not answer must not undo it.
        if let Err(error) = add(store, audit).await {
            tracing::warn!(cause = %error.in_short(), "a reload is missing in the audit");
        }
    }

    async fn upgrade(&self) -> anyhow::Result<String> {
        let state = Arc::clone(&self.current.load().state);
        if state.drain.is_draining() {
            bail!("the gateway is stopping");
        }
        let upgrade = &self.upgrade;
        let (new_process, sockets) = (upgrade.new_process.clone(), self.listeners.sockets());
        // It blocks for up to 30 s, in which the control thread must go on checking backends.
        let started = tokio::task::spawn_blocking(move || new_process.start(&sockets));
        let (new, release) = started.await?.inspect_err(|error| {
            tracing::error!(
                cause = %format_args!("{error:#}"),
                "not upgraded, this process goes on"
            );
        })?;
        if state.drain.is_draining() {
            // A stop began while the new process started: that process would go on serving after it.
            terminate(new);
            bail!("the gateway is stopping");
        }
        // Before this process ends: systemd takes the end of the main process for the end of the service.
        notify_service_manager(&[NotifyState::MainPid(new)]);
        // Two processes must not answer on it: one is ready, the other is stopping.
        upgrade.management.send_replace(Phase::Closing);
        upgrade
            .replying
            .get_or_init(|| state.drain.begin_connection());
        upgrade.handed_over.notify_one();
        Ok(format!(
            "process {new} serves, signpost {release}; process {} finishes its requests, then it ends",
            std::process::id()
        ))
    }

    fn status(&self, differs: bool) -> anyhow::Result<String> {
        let status = GatewayStatus {
            differs,
            backends: self.current.load().policy.backends.status(),
        };
        Ok(serde_json::to_string(&status)?)
    }

    fn health_address(&self) -> HealthAddress {
        HealthAddress {
            listen: self.listeners.management,
            is_tls: self.current.load().state.management_tls.is_some(),
        }
    }
}

impl GatewayReload {
    /// Opens the store that requests need if this is the first configuration that needs it.
    async fn open_accounts(&self, gateway: &Gateway) -> anyhow::Result<()> {
        if gateway.state.accounts.get().is_none() {
            let settings = self.store_settings.clone();
            let opened = tokio::task::spawn_blocking(move || open_accounts(&settings)).await??;
            // Reloads run one after the other, so nothing else has set it.
            let _ = gateway.state.accounts.set(opened);
        }
        Ok(())
    }

    /// Begins to accept connections at new addresses, then closes the listeners that the configuration no longer has.
    fn follow_listeners(&self, bound: Vec<BoundListener>, gateway: &Gateway) {
        let addresses: Vec<_> = bound.iter().map(BoundListener::address).collect();
        self.listeners.serve(bound, &gateway.policy);
        for address in addresses {
            tracing::info!(listen = %address, "listener opened");
        }
        for address in self.listeners.close_others(&gateway.policy) {
            tracing::info!(listen = %address, "listener closed");
        }
    }

    /// Refuses a backend at the address of the management listener. The file was only checked against its own
    /// `management.listen`, which takes effect after an upgrade.
    fn reject_management_address(&self, config: &Config) -> anyhow::Result<()> {
        let management = [self.listeners.management];
        let mut backends = config.versions.backends();
        match backends.find(|backend| backend.upstream.is_at(&management)) {
            Some(backend) => bail!(
                "versions.{}: until an upgrade, the gateway's management listens on this backend's address",
                backend.name
            ),
            None => Ok(()),
        }
    }
}

/// Whether a changed key needs a new process; `changed` has all changed keys.
pub(crate) fn needs_restart(key: &str, changed: &[&str]) -> bool {
    let is_below = |section: &str| section.ends_with('.') && key.starts_with(section);
    // A change between one application and many: the store is only opened at start.
    let is_of_mode = key.starts_with("application") && changed.contains(&"applications");
    is_of_mode
        || NEED_RESTART
            .iter()
            .any(|known| *known == key || is_below(known))
}

/// The applications of the new configuration: its single key, or the applications of the store, which stays open.
async fn reloaded_apps(
    before: &AppDirectory,
    config: &Applications,
) -> anyhow::Result<AppDirectory> {
    Ok(match (before, config) {
        (AppDirectory::Single(_), Applications::Single(key)) => AppDirectory::single(key.clone()),
        (AppDirectory::Multi(apps), Applications::Multi(multi)) => {
            let (apps, entries) = (Arc::clone(apps), multi.cache_entries);
            // The control thread also checks the health of backends: it must not copy a large cache meanwhile.
            let sized = tokio::task::spawn_blocking(move || apps.resized(entries));
            AppDirectory::Multi(sized.await?)
        }
        (before, _) => before.clone(),
    })
}

#[cfg(test)]
mod both_stores;
#[cfg(test)]
mod tests;

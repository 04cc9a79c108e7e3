//! The running program: the snapshot that serves new requests, and its replacement at a reload.

use std::{path::Path, sync::Arc};

use arc_swap::ArcSwap;
use signpost_kit::{
    config::{ConfigError, Loaded},
    log::{Logging, log_warnings},
    reload::Reload,
    server::{health::HealthAddress, listener::HttpSettings, shutdown::SETTLE_TIME},
};

use super::{Program, load};
use crate::{
    config::Config,
    http::{Configured, Routes, Versions},
    service::{Service, State},
};

/// The running program; clones share it.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) program: Program,
    versions: Versions,
    log: Logging,
    snapshot: Arc<ArcSwap<Snapshot>>,
}

/// A service and its routes.
pub(super) struct Snapshot {
    service: Arc<Service>,
    routes: Routes,
}

impl Running {
    pub(super) fn new(
        program: Program,
        versions: Versions,
        snapshot: Snapshot,
        log: Logging,
    ) -> Self {
        let running = Self {
            program,
            versions,
            log,
            snapshot: Arc::new(ArcSwap::from_pointee(snapshot)),
        };
        running.warn_of_descriptors();
        running
    }

    /// The service of the current snapshot.
    pub(super) fn service(&self) -> Arc<Service> {
        Arc::clone(&self.snapshot.load().service)
    }

    /// The state, which all snapshots share.
    pub(super) fn state(&self) -> Arc<State> {
        Arc::clone(&self.snapshot.load().service.state)
    }

    /// The routes of the current snapshot. A request uses the same snapshot to its end.
    pub(super) fn routes(&self) -> Routes {
        self.snapshot.load().routes.clone()
    }

    /// The settings of new connections.
    pub(super) fn http_settings(&self) -> HttpSettings {
        let snapshot = self.snapshot.load();
        let service = &snapshot.service;
        HttpSettings {
            name: self.program.name,
            max_connections: service.connection_limit(),
            // All can be of one gateway.
            max_of_network: service.connection_limit(),
            timeouts: service.config().timeouts.connection,
            settle: SETTLE_TIME,
        }
    }

    fn warn_of_descriptors(&self) {
        let service = self.service();
        let wanted = service.config().limits.connections;
        let possible = service.connection_limit();
        if possible < wanted {
            tracing::warn!(
                wanted,
                descriptors = service.state.descriptors.limit,
                possible,
                "the limit of file descriptors allows fewer connections than limits.connections"
            );
        }
    }
}

impl Snapshot {
    /// The routes of the versions under a configuration.
    ///
    /// # Errors
    ///
    /// As [`Configured::routes`].
    pub(super) async fn new(service: Arc<Service>, versions: Configured) -> anyhow::Result<Self> {
        let routes = versions.routes(&service).await?;
        Ok(Self { service, routes })
    }
}

impl Reload for Running {
    type Config = (Config, Configured);

    fn load(&self, file: &Path) -> Result<Loaded<Self::Config>, ConfigError> {
        let loaded = load(file, &self.versions)?;
        let (log, settings) = (&loaded.config.0.log, &loaded.settings);
        self.log.check_changed_output(log, file, settings)?;
        Ok(loaded)
    }

    fn needs_restart(&self, key: &str, changed: &[&str]) -> bool {
        Config::needs_restart(key, changed)
    }

    async fn warnings(&self, (config, _): &Self::Config) -> Vec<String> {
        config.warnings()
    }

    fn new_process(&self, _: &Path) -> String {
        "a restart applies these; of several processes, one after the other, it loses nothing"
            .to_owned()
    }

    /// Applies a configuration to new requests. Those in flight keep the old one.
    async fn apply(&self, (config, versions): Self::Config) -> anyhow::Result<()> {
        // What can fail comes first: the log's new file is opened here, and used only at the end.
        let log = self.log.prepare(&config.log).await?;
        // The routes are the same as at the start, so this succeeds as the start did.
        let snapshot = Snapshot::new(self.service().reloaded(config)?, versions).await?;
        self.snapshot.store(Arc::new(snapshot));
        log_warnings(&self.service().config.warnings());
        self.warn_of_descriptors();
        log.apply();
        Ok(())
    }

    /// A reload does not change the address.
    fn health_address(&self) -> HealthAddress {
        self.service().config.listen.into()
    }
}

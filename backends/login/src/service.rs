//! A snapshot of the service: one configuration with its limits and providers, and the state, which outlives it.
//!
//! A reload creates a new snapshot ([`Service::reloaded`]). A request uses the snapshot that it began with.

mod state;

use std::sync::Arc;

use signpost_kit::{
    clock::{Clock, Timestamp},
    trace::Tracer,
};
use signpost_protocol::app::AppId;
use signpost_store::Store;

pub(crate) use self::state::State;
use crate::{
    config::Config,
    error::LoginError,
    limits::Limits,
    provider::{HttpClient, ProviderClients},
    records::{applications::Application, own::OwnStore},
    trace,
};

/// The login service under one configuration, for all versions that it serves.
pub struct Service {
    pub(crate) config: Config,
    pub(crate) limits: Limits,
    pub(crate) providers: ProviderClients,
    pub(crate) state: Arc<State>,
    /// Samples requests and exports their spans; `None` if no collector is configured.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// The application of single-application mode.
    single: Arc<Application>,
}

impl Service {
    /// Creates the service. A TLS crypto provider must be installed before.
    ///
    /// # Errors
    ///
    /// The HTTP client for the providers cannot be created.
    pub(crate) fn new(
        config: Config,
        store: &Store,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, reqwest::Error> {
        let state = Arc::new(State::new(store.clone(), clock));
        let limits = Limits::new(config.limits, config.lifetimes.login, state.clock.instant());
        let http = HttpClient::new(&config.outgoing)?;
        let counters = &state.metrics.providers;
        let (providers, public_url) = (&config.providers, &config.public_url);
        let providers = ProviderClients::new(http, providers, public_url, counters, None);
        Ok(Self::with(config, state, limits, providers, None))
    }

    /// Creates a snapshot of another configuration, with the same state. Keys that need a restart keep their values.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub(crate) fn reloaded(&self, config: Config) -> Result<Arc<Self>, reqwest::Error> {
        let config = config.with_restart_keys_of(&self.config);
        let limits = self.limits.reloaded(config.limits, config.lifetimes.login);
        let counters = &self.state.metrics.providers;
        let (providers, public_url) = (&config.providers, &config.public_url);
        // What providers have published was fetched by the client, and will be again.
        let before = (config.outgoing == self.config.outgoing).then_some(&self.providers);
        let http = match before {
            Some(before) => before.http.clone(),
            None => HttpClient::new(&config.outgoing)?,
        };
        let providers = ProviderClients::new(http, providers, public_url, counters, before);
        let state = Arc::clone(&self.state);
        let tracer = self.tracer.as_deref();
        Ok(Self::with(config, state, limits, providers, tracer))
    }

    fn with(
        config: Config,
        state: Arc<State>,
        limits: Limits,
        providers: ProviderClients,
        tracer_before: Option<&Tracer>,
    ) -> Arc<Self> {
        // The caches outlive a configuration, and their settings do not.
        state.set_stale(config.stale);
        let tracer = Tracer::new(&config.tracing, trace::SERVICE, &state.spans, tracer_before);
        Arc::new(Self {
            providers,
            single: Arc::new(Application::single(&config.application)),
            limits,
            state,
            tracer,
            config,
        })
    }

    /// The configuration. It has secrets, so versions do not get it.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The limit on open connections: the configured one, or what the process' open files allow.
    pub(crate) fn connection_limit(&self) -> usize {
        let wanted = self.config.limits.connections;
        self.state.descriptors.connection_limit(wanted)
    }

    /// The store, for a version's own tables.
    #[must_use]
    pub fn store(&self) -> &OwnStore {
        &self.state.own_tables
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.state.clock.now()
    }

    /// Returns the application with this id: the configured one for id 0, all others from the store.
    ///
    /// # Errors
    ///
    /// [`LoginError::AppDisabled`], or the store is unavailable.
    pub(crate) async fn active_application(
        &self,
        id: AppId,
    ) -> Result<Option<Arc<Application>>, LoginError> {
        let application = if id == AppId::SINGLE {
            Some(Arc::clone(&self.single))
        } else {
            self.state.applications.find(id).await?
        };
        match application {
            Some(application) if !application.is_active => Err(LoginError::AppDisabled),
            application => Ok(application),
        }
    }
}

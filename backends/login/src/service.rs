//! A snapshot of the service: one configuration and what follows from it, beside the state that outlives it.
//!
//! A reload makes a new snapshot ([`Service::reloaded`]). A request keeps the one that it began with.

use std::sync::Arc;

use gateway_protocol::{app::AppId, version::Version};
use signpost_kit::clock::{Clock, Timestamp};
use signpost_store::StoreError;

pub use crate::state::{State, Stores};
use crate::{applications::Application, config::Config, limits::Limits, oauth::ProviderClients};

/// The login service under one configuration, for all versions that it serves.
pub struct Service {
    pub(crate) config: Config,
    pub(crate) limits: Limits,
    pub(crate) providers: ProviderClients,
    pub(crate) state: Arc<State>,
    /// The application of single-application mode.
    single: Arc<Application>,
}

/// What handlers share: the service, and the version that their router serves.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) service: Arc<Service>,
    pub(crate) version: Version,
}

impl Service {
    /// Puts it together. Only after the process has its TLS provider.
    ///
    /// # Errors
    ///
    /// The HTTP client for the providers cannot be made.
    pub fn new(
        config: Config,
        stores: Stores,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, reqwest::Error> {
        let state = State::new(stores, clock);
        Ok(Arc::new(Self {
            limits: Limits::new(config.limits(), config.lifetimes().login, state.instant()),
            providers: ProviderClients::new(config.providers(), config.public_url())?,
            single: Arc::new(Application::single(config.application())),
            state: Arc::new(state),
            config,
        }))
    }

    /// A snapshot of another configuration, with the same state; what needs a restart stays as it is.
    #[must_use]
    pub fn reloaded(&self, config: Config) -> Arc<Self> {
        let config = config.in_place_of(&self.config);
        Arc::new(Self {
            limits: self
                .limits
                .reloaded(config.limits(), config.lifetimes().login),
            providers: self
                .providers
                .reloaded(config.providers(), config.public_url()),
            single: Arc::new(Application::single(config.application())),
            state: Arc::clone(&self.state),
            config,
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What outlives it.
    #[must_use]
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.state.now()
    }

    /// The application of this id: the configured one under id 0, all others from the store.
    pub(crate) async fn application(
        &self,
        id: AppId,
    ) -> Result<Option<Arc<Application>>, Arc<StoreError>> {
        if id == AppId::SINGLE {
            return Ok(Some(Arc::clone(&self.single)));
        }
        self.state.applications.find(id).await
    }
}

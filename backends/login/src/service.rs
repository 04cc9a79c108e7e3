//! A snapshot of the service: one configuration with its limits and providers, and the state, which outlives it.
//!
//! A reload creates a new snapshot ([`Service::reloaded`]). A request uses the snapshot that it began with.

mod state;

use std::sync::Arc;

use signpost_kit::{
    clock::{Clock, Timestamp},
    trace::Tracer,
};
use signpost_protocol::{app::AppId, version::Version};
use signpost_store::StoreError;

pub(crate) use crate::service::state::{State, Stores};
use crate::{
    config::Config,
    error::LoginError,
    http::request::AuthenticatedUser,
    limits::Limits,
    provider::ProviderClients,
    records::{
        applications::Application,
        events::{EventCursor, EventPage, EventQuery},
    },
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

/// The shared state of handlers: the service, and the version that the router serves.
///
/// Extractors read it ([`crate::http::request`]). A version's own handler gets the service as `State<Arc<Service>>`.
#[derive(Clone)]
pub struct HandlerContext {
    pub(crate) service: Arc<Service>,
    pub(crate) version: Version,
}

impl Service {
    /// Creates the service. A TLS crypto provider must be installed before.
    ///
    /// # Errors
    ///
    /// The HTTP client for the providers cannot be created.
    pub fn new(
        config: Config,
        stores: Stores,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, reqwest::Error> {
        let state = State::new(stores, clock);
        let tracer = Tracer::new(&config.tracing, trace::SERVICE, &state.spans, None);
        Ok(Arc::new(Self {
            limits: Limits::new(config.limits, config.lifetimes.login, state.instant()),
            providers: ProviderClients::new(
                &config.providers,
                &config.public_url,
                &state.metrics.providers,
            )?,
            single: Arc::new(Application::single(&config.application)),
            state: Arc::new(state),
            tracer,
            config,
        }))
    }

    /// Creates a snapshot of another configuration, with the same state. Keys that need a restart keep their values.
    #[must_use]
    pub fn reloaded(&self, config: Config) -> Arc<Self> {
        let config = config.with_restart_keys_of(&self.config);
        let (before, spans) = (self.tracer.as_deref(), &self.state.spans);
        let tracer = Tracer::new(&config.tracing, trace::SERVICE, spans, before);
        Arc::new(Self {
            limits: self.limits.reloaded(config.limits, config.lifetimes.login),
            providers: self.providers.reloaded(
                &config.providers,
                &config.public_url,
                &self.state.metrics.providers,
            ),
            single: Arc::new(Application::single(&config.application)),
            state: Arc::clone(&self.state),
            tracer,
            config,
        })
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The state that outlives the snapshot.
    #[must_use]
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The limit on open connections: the configured one, or what the process' open files allow.
    pub(crate) fn connection_limit(&self) -> usize {
        let wanted = self.config.limits.connections;
        self.state.descriptors.connection_limit(wanted)
    }

    /// Exports the spans that are queued; blocks for at most [`signpost_kit::trace::FLUSH_TIMEOUT`].
    pub(crate) fn flush_spans(&self) {
        if let Some(tracer) = &self.tracer {
            tracer.flush();
        }
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.state.now()
    }

    /// Returns a page of the events that the user's application has reported about the user, the newest first.
    ///
    /// `before` is [`EventPage::next`] of the page before, `limit` at most [`EventPage::MAX_EVENTS`].
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub async fn events_of(
        &self,
        user: &AuthenticatedUser,
        before: Option<EventCursor>,
        limit: u64,
    ) -> Result<EventPage, LoginError> {
        let query = EventQuery {
            account: user.account().id,
            application: user.application(),
            before,
            limit,
        };
        Ok(EventPage::read(&*self.state.events, query).await?)
    }

    /// Returns the application with this id: the configured one for id 0, all others from the store.
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

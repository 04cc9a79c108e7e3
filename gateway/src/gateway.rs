//! Serves a request, from its received head to its finished response: calls the phases in the contract's order.

mod build;
mod forward;
mod receive;
mod received;
mod record;
mod relay;
mod respond;

use std::sync::{Arc, OnceLock};

use signpost_kit::{
    clock::Clock,
    limits::NetworkLimiter,
    reload::ReloadCounts,
    server::shutdown::ShutdownSettings,
    trace::{SpanCounters, Tracer},
};

pub(crate) use self::respond::UnparsedHead;
use crate::{
    config::{Backend, ConnectionLimits, Limits, ListenerSettings, Timeouts, Versions},
    directory::{accounts::open::OpenAccounts, apps::directory::AppDirectory},
    limits::connections::OpenConnections,
    observe::{
        access_log::AccessLog,
        metrics::{RequestCells, RequestMetrics},
        usage::Usage,
    },
    phases::{
        admit::AdmissionRules,
        backend_headers::BackendHeaderRules,
        cors::{CorsRules, is_preflight},
        error_format::ErrorFormatRules,
        limit::RequestLimiter,
        origin::{Peer, client_address},
        redirect::came_by_https,
        verify::Verifier,
    },
    request::{Head, client::Client, drain::Drain, ids::RequestIds, quotas::LimitedRequests},
    upstream::{
        backend::upstream::BackendClient,
        routing::{
            Balancer,
            counts::BackendCounts,
            status::{AddressHealth, AddressStatus},
        },
        secret_rejections::SecretRejections,
    },
    wire::io::SendLimits,
};

/// Serves requests by one configuration. It is immutable: a reload creates another one, and a request uses to its end
/// the one that it began with. What outlives a configuration is in [`State`].
pub struct Gateway {
    /// Number of the configuration in this process, from 0.
    pub(crate) generation: u64,
    /// Rules for the format of errors.
    pub(crate) error_format: ErrorFormatRules,
    /// Rules for admission.
    pub(crate) admission: AdmissionRules,
    /// Rules for pages of other origins; `None` if none may call.
    pub(crate) cors: Option<CorsRules>,
    /// Counts unsigned requests by the client's network; `None` if the limit is off.
    pub limiter: Option<NetworkLimiter>,
    /// Counts requests by client address, application and path.
    pub(crate) rate_limits: RequestLimiter,
    /// The directory of applications.
    pub apps: AppDirectory,
    /// Verifies signatures.
    pub(crate) verifier: Verifier,
    /// The versions and their backends.
    pub(crate) versions: Versions,
    /// The balancers, by the backend's number; `None` if a backend has one fixed address.
    pub(crate) balancers: Vec<Option<Arc<Balancer>>>,
    /// What the metrics count of the backends, by the backend's number.
    pub(crate) backend_counts: Vec<Arc<BackendCounts>>,
    /// Rules for the headers to backends.
    pub backend_headers: BackendHeaderRules,
    /// Sends requests to backends.
    pub(crate) backends: BackendClient,
    /// The settings of the listeners, by their number. Their addresses are those of the start.
    pub(crate) listeners: Vec<Arc<ListenerSettings>>,
    /// Limits of clients' connections.
    pub(crate) connections: ConnectionLimits,
    /// The port of `public_url` if that is https, otherwise 443: where plain requests are redirected to.
    pub(crate) https_port: u16,
    /// Limits of requests.
    pub limits: Limits,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Durations of an orderly stop.
    pub(crate) shutdown: ShutdownSettings,
    /// Whether the access log is on.
    pub(crate) logs_access: bool,
    /// Of so many successes, one is in it.
    pub(crate) access_sample: u32,
    /// Where requests are counted for `/metrics`; `None` if that is off.
    pub(crate) metrics: Option<RequestCells>,
    /// Samples requests and exports their spans; `None` if no collector is configured.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// State that outlives the configuration.
    pub state: Arc<State>,
}

/// State that outlives a configuration. Parts of a [`Gateway`] carry over more: the replay memory, rate limits, cached
/// applications, and the state of addresses.
pub struct State {
    /// Backends that do not accept the gateway's secret.
    pub(crate) secret_rejections: SecretRejections,
    /// The accounts, from the first configuration on that needs their store. With many applications that is open, too.
    pub accounts: OnceLock<OpenAccounts>,
    /// Generates request ids.
    pub ids: RequestIds,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// The phase of a stop, and the requests in flight.
    pub drain: Arc<Drain>,
    /// Clients' open connections.
    pub(crate) open_connections: Arc<OpenConnections>,
    /// The requests that limits have rejected.
    pub(crate) limited: LimitedRequests,
    /// Reloads so far.
    pub(crate) reloads: Arc<ReloadCounts>,
    /// The access log. If it is `None`, a reload cannot switch it on.
    pub(crate) access_log: Option<AccessLog>,
    /// Counts requests by version and application; `None` in single-application mode.
    pub(crate) usage: Option<Arc<Usage>>,
    /// Counts requests for `/metrics`.
    pub(crate) metrics: Arc<RequestMetrics>,
    /// Counts spans.
    pub(crate) spans: Arc<SpanCounters>,
}

impl Gateway {
    /// Serves a request whose head was read. When this returns, the response was sent or aborted.
    pub(crate) async fn serve<C: Client>(&self, head: &Head, peer: &Peer, client: &mut C) {
        let mut request = self.begin_request(head.method(), head.target().path, head, peer);
        if peer.redirects_to_https && !came_by_https(head, peer) {
            // Boxed, as the preflight below: a connection has no room for what it rarely needs.
            return Box::pin(self.redirect_to_https(&request, client)).await;
        }
        if let Some(cors) = &self.cors
            && is_preflight(head.method(), head.body(), head)
        {
            return Box::pin(self.serve_preflight(cors, peer, &mut request, client)).await;
        }
        match self.receive(head, peer, &mut request, client).await {
            Ok(accepted) => self.forward(&request, accepted, client).await,
            Err(rejection) => {
                request.end_step();
                // Trusted proxies determine the client even if the request was not admitted.
                let trusted_proxies = &self.admission.trusted_proxies;
                request.client = client_address(peer, head, trusted_proxies);
                self.reject(&request, None, &rejection, client).await;
            }
        }
    }

    /// The limits of sending responses.
    #[must_use]
    pub const fn send_limits(&self) -> SendLimits {
        SendLimits {
            timeout: self.timeouts.send,
            min_rate: self.connections.min_rate,
        }
    }

    /// Whether a backend has a healthy address. One without health checks counts as healthy.
    pub(crate) fn is_available(&self, backend: &Backend) -> bool {
        let balancer = self.balancers[backend.number].as_ref();
        balancer.is_none_or(|balancer| balancer.is_available())
    }

    /// The state of a backend's addresses.
    #[must_use]
    pub(crate) fn address_status(&self, backend: &Backend) -> Vec<AddressStatus> {
        match (&self.balancers[backend.number], backend.upstream.fixed()) {
            (Some(balancer), _) => balancer.status(),
            (None, Some(endpoint)) => vec![AddressStatus {
                address: endpoint.address.to_string(),
                health: AddressHealth::Unchecked,
                in_flight: None,
            }],
            (None, None) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;

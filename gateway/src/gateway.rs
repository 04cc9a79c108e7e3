//! Serves a request, from its received head to its finished response: calls the phases in the contract's order.

mod build;
mod forward;
mod received;
mod record;
mod relay;
mod respond;

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use gateway_protocol::request_id::RequestId;
use signpost_kit::{
    clock::{Clock, Timestamp},
    rate_limit::{NetworkLimiter, RateExceeded},
    reload::ReloadCounts,
    shutdown::ShutdownSettings,
    spans::{SpanCounters, Tracer},
};

pub(crate) use self::{received::ReceivedRequest, respond::UnparsedHead};
use crate::{
    accounts::open::OpenAccounts,
    apps::directory::AppDirectory,
    backend::upstream::BackendClient,
    client::{BodyLimits, Client},
    config::{
        AccountCheck, Backend, ConnectionLimits, Limits, ListenerSettings, Timeouts, Versions,
    },
    drain::Drain,
    observe::{
        access_log::AccessLog,
        metrics::{RequestCells, RequestMetrics},
        spans::{RequestSpans, Step, samples},
    },
    open_connections::OpenConnections,
    phases::{
        admit::{AdmissionRules, Admitted, admit},
        backend_headers::{
            BackendHeaderRules, Identified, write_backend_headers, write_request_line,
        },
        callback::match_callback,
        cors::{CorsRules, is_preflight},
        error_format::ErrorFormatRules,
        identify_account::{RequestAccount, identify_account},
        identify_app::identify_app,
        limit::{RequestLimiter, is_unsigned},
        origin::{Peer, client_address},
        read_params::read_params,
        redirect::came_by_https,
        route::{RoutedRequest, Unrouted, Wanted, route},
        verify::{VerifiedRequest, Verifier},
    },
    rate_limits::{LimitedRequests, Quotas},
    rejection::Rejection,
    request::{BodyLength, Head, Headers},
    request_ids::RequestIds,
    routing::{
        Balancer,
        counts::BackendCounts,
        status::{AddressHealth, AddressStatus},
    },
    secret_rejections::SecretRejections,
    usage::Usage,
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

    /// Begins a request: assigns its id and start time.
    pub fn begin_request<'r, H: Headers>(
        &self,
        method: &'r [u8],
        path: &'r str,
        headers: &'r H,
        peer: &Peer,
    ) -> ReceivedRequest<'r, H> {
        ReceivedRequest {
            method,
            path,
            headers,
            id: self.state.ids.next(),
            received: Instant::now(),
            form_wait: Duration::ZERO,
            client: peer.address,
            named_app: None,
            is_signed: false,
            rejected_route: None,
            quotas: Quotas::default(),
            spans: None,
        }
    }

    /// Runs the phases up to the account, in the order of CONTRACT 7.
    ///
    /// # Errors
    ///
    /// The first rejection of a phase. Nothing of the request then reaches a backend.
    pub async fn receive<'h, C: Client>(
        &self,
        head: &'h Head,
        peer: &Peer,
        request: &mut ReceivedRequest<'h, Head>,
        client: &mut C,
    ) -> Result<Accepted<'h>, Rejection> {
        let target = head.target();
        let mut admitted = self.admit(head, peer)?;
        self.begin_spans(request, &mut admitted);
        request.client = admitted.origin.client;
        let method = admitted.method;
        let (verified, form, now) =
            match match_callback(method, head.body(), target, self.verifier.config()) {
                Some(callback) => (self.verifier.pass_callback(callback), Vec::new(), None),
                None => {
                    let paths = &self.verifier.config().browser_paths;
                    let names = &self.admission.names;
                    request.begin_step(Step::LookUpApplication);
                    let app = identify_app(admitted.app, target, paths, names, &self.apps).await?;
                    request.end_step();
                    request.named_app = Some(Arc::clone(&app));
                    let limits = BodyLimits {
                        bytes: self.limits.body,
                        timeout: self.timeouts.body,
                        min_rate: self.connections.min_rate,
                    };
                    let has_form = !matches!(head.body(), BodyLength::None);
                    let waiting_since = has_form.then(Instant::now);
                    let form = client.read_body(admitted.expects_continue, limits).await;
                    request.form_wait =
                        waiting_since.map_or(Duration::ZERO, |since| since.elapsed());
                    let form = form?;
                    request.begin_step(Step::Verify);
                    let now = self.state.clock.now();
                    let params = read_params(target, &form, &self.limits)?;
                    let (verifier, time) = (&self.verifier, now.into());
                    let verified = verifier.verify(app, method, target, &params, time)?;
                    drop(params);
                    request.end_step();
                    (verified, form, Some(now))
                }
            };
        request.is_signed = verified.signed_app().is_some();
        if let Some(app) = verified.signed_app()
            && self.rate_limits.counts(app)
        {
            let now = Instant::now();
            request.quotas = self.rate_limits.count_app(app, method, target.path, now)?;
        }
        let wanted = Wanted {
            version: admitted.version,
            path: target.path,
            client: admitted.origin.client,
        };
        let now = || now.unwrap_or_else(|| self.state.clock.now());
        let routed = self.route(verified, wanted, now, request)?;
        let accounts = self.state.accounts.get();
        let accounts = accounts.map(|accounts| &*accounts.directory);
        if routed.route().backend.account.check != AccountCheck::None {
            request.begin_step(Step::IdentifyAccount);
        }
        let account = identify_account(&routed, &mut admitted, head, accounts, now).await;
        request.end_step();
        // The answer to a request that was rejected here has the version's headers.
        let account = account
            .inspect_err(|_| request.rejected_route = Some(Box::new(routed.route().clone())))?;
        Ok(Accepted {
            head,
            routed,
            account,
            admitted,
            form,
        })
    }

    /// Chooses the backend. A request that is rejected although its version is known notes the route, for its answer.
    fn route(
        &self,
        verified: VerifiedRequest,
        wanted: Wanted<'_>,
        now: impl Fn() -> Timestamp,
        request: &mut ReceivedRequest<'_, Head>,
    ) -> Result<RoutedRequest, Rejection> {
        let is_available = |backend: &Backend| self.is_available(backend);
        let routed = route(verified, wanted, &self.versions, now, is_available);
        routed.map_err(|Unrouted { rejection, route }| {
            request.rejected_route = route;
            rejection
        })
    }

    /// Takes a trusted proxy's request id, and begins the spans of a sampled request. The gateway's own id decides about
    /// those, since no client can choose it.
    fn begin_spans(&self, request: &mut ReceivedRequest<'_, Head>, admitted: &mut Admitted<'_>) {
        let tracer = self.tracer.as_ref();
        let tracer = tracer.filter(|tracer| samples(tracer, &request.id, admitted));
        if let Some(theirs) = admitted.request_id {
            request.id = theirs;
        }
        if let Some(tracer) = tracer {
            let (ids, clock) = (&self.state.ids, &*self.state.clock);
            let spans = RequestSpans::begin(tracer, &request.id, admitted, ids, clock);
            request.spans = Some(spans);
        }
    }

    /// Checks the limits of client addresses, then admits the request. CONTRACT 7: the limits come after the method, and
    /// before every other check of the headers.
    fn admit<'h>(&self, head: &'h Head, peer: &Peer) -> Result<Admitted<'h>, Rejection> {
        let (method, rules) = (head.method(), &self.admission);
        if self.limiter.is_some() && is_unsigned(method, head.target(), self.verifier.config()) {
            self.count_unsigned(client_address(peer, head, &rules.trusted_proxies))?;
        }
        if self.rate_limits.counts_addresses() {
            let client = client_address(peer, head, &rules.trusted_proxies);
            let (path, now) = (head.target().path, Instant::now());
            self.rate_limits.count_address(method, path, client, now)?;
        }
        admit(method, head, head.body(), peer, rules)
    }

    /// Counts an unsigned request for its client's network, if the limit is on.
    fn count_unsigned(&self, client: IpAddr) -> Result<(), Rejection> {
        let Some(limiter) = &self.limiter else {
            return Ok(());
        };
        let counted = limiter.count(client, Instant::now());
        counted
            .map_err(|RateExceeded { retry_after }| Rejection::AddressRateLimited { retry_after })
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

/// A request that passed all phases and may be forwarded. Only [`Gateway::receive`] creates one, so a backend gets
/// exactly the bytes that were verified.
pub struct Accepted<'h> {
    head: &'h Head,
    routed: RoutedRequest,
    account: RequestAccount,
    admitted: Admitted<'h>,
    form: Vec<u8>,
}

impl Accepted<'_> {
    /// Writes the head for the backend.
    #[must_use]
    pub fn backend_head(
        &self,
        id: &RequestId,
        rules: &BackendHeaderRules,
        ids: &RequestIds,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        write_request_line(self.head, &self.form, &mut out);
        write_backend_headers(
            Identified {
                routed: &self.routed,
                account: &self.account,
            },
            self.head,
            &self.admitted,
            id,
            rules,
            ids,
            &mut out,
        );
        out.extend_from_slice(b"\r\n");
        out
    }
}

#[cfg(test)]
mod tests;

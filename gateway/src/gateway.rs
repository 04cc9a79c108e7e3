//! Serves a request, from its received head to its finished response: calls the phases in the contract's order.

mod build;
mod received;

use std::{
    net::IpAddr,
    pin::pin,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use gateway_protocol::{
    header::{REFUSED_SECRET, X_GATEWAY_PROBLEM, X_GATEWAY_REFUSED},
    request_id::RequestId,
};
use http::{
    StatusCode,
    header::{LOCATION, USER_AGENT},
};
use signpost_kit::{
    clock::{Clock, Timestamp},
    logging::is_sampled,
    rate_limit::{NetworkLimiter, QuotaExceeded, RateExceeded},
    reload::ReloadCounts,
    shutdown::ShutdownSettings,
    spans::{SpanCounters, Tracer},
};

use self::received::ForwardOutcome;
pub(crate) use self::received::ReceivedRequest;
use crate::{
    accounts::open::OpenAccounts,
    apps::directory::AppDirectory,
    backend::{
        answer_head::{AnswerBody, AnswerHead},
        exchange::BackendRequest,
        failure::Failure,
        upstream::{Answer, BackendClient},
    },
    client::{BodyLimits, Client, ResponseHead},
    config::{
        AccountCheck, Backend, ConnectionLimits, Limits, ListenerSettings, Timeouts, Versions,
    },
    drain::Drain,
    observe::{
        access_log::AccessLog,
        metrics::{RequestCells, RequestMetrics},
        outcome::Outcome,
        record,
        spans::{RequestSpans, Step, samples},
    },
    open_connections::OpenConnections,
    phases::{
        admit::{AdmissionRules, Admitted, admit},
        backend_headers::{
            BackendHeaderRules, Identified, write_backend_headers, write_request_line,
        },
        callback::match_callback,
        cors::{CorsRules, is_of_cors, is_preflight},
        error_format::{ErrorFormatRules, error_format},
        error_response::{error_response, reason},
        identify_account::{RequestAccount, identify_account},
        identify_app::identify_app,
        limit::{RequestLimiter, is_unsigned},
        origin::{Peer, client_address},
        read_params::read_params,
        redirect::{came_by_https, https_location},
        response::{own_fields, passes_to_client},
        route::{Route, RoutedRequest, Unrouted, Wanted, route},
        verify::{VerifiedRequest, Verifier},
    },
    rate_limits::{LimitedRequests, Quotas},
    rejection::Rejection,
    request::{BodyLength, Head, Headers, Method, RawHeaders, is_named},
    request_ids::RequestIds,
    routing::{
        Balancer,
        counts::BackendCounts,
        destination::Destination,
        status::{AddressHealth, AddressStatus},
    },
    secret_rejections::SecretRejections,
    syntax::field::{ConnectionOptions, NameAndValue},
    usage::Usage,
};

/// Limit of a problem code of a backend that is logged, in bytes.
const MAX_CODE_BYTES: usize = 64;

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

    /// Answers a request on a listener with `redirect_to_https`.
    async fn redirect_to_https<C: Client>(
        &self,
        request: &ReceivedRequest<'_, Head>,
        client: &mut C,
    ) {
        let location = https_location(request.headers, self.https_port);
        let response = ResponseHead {
            status: StatusCode::PERMANENT_REDIRECT.as_u16(),
            reason: reason(StatusCode::PERMANENT_REDIRECT),
            body: BodyLength::Known(0),
        };
        let quotas = request.quotas.to_fields();
        let own = own_fields(&request.id, None, &self.error_format.names, &quotas);
        let fields = [(LOCATION.as_str().as_bytes(), &location[..])];
        client.begin(response, own.chain(fields));
        self.finish_empty(request, response, client).await;
    }

    /// Answers a preflight, which reaches no backend. CONTRACT 2.
    async fn serve_preflight<C: Client>(
        &self,
        cors: &CorsRules,
        peer: &Peer,
        request: &mut ReceivedRequest<'_, Head>,
        client: &mut C,
    ) {
        let head = request.headers;
        request.client = client_address(peer, head, &self.admission.trusted_proxies);
        if let Err(rejection) = self.count_unsigned(request.client) {
            return self.reject(request, None, &rejection, client).await;
        }
        let response = ResponseHead {
            status: StatusCode::NO_CONTENT.as_u16(),
            reason: reason(StatusCode::NO_CONTENT),
            body: BodyLength::None,
        };
        let quotas = request.quotas.to_fields();
        let own = own_fields(&request.id, None, &self.error_format.names, &quotas);
        client.begin(response, own.chain(cors.preflight_fields(head)));
        self.finish_empty(request, response, client).await;
    }

    /// Finishes a response of the gateway's own without a body, and records it.
    async fn finish_empty<C: Client>(
        &self,
        request: &ReceivedRequest<'_, Head>,
        response: ResponseHead<'_>,
        client: &mut C,
    ) {
        let forwarded = ForwardOutcome {
            status: response.status,
            answered_at: request.step_time(),
            ..ForwardOutcome::default()
        };
        // Ignored: the request is recorded even if the client has disconnected.
        let _ = client.finish(b"").await;
        self.record(request, &request.outcome(None, &forwarded));
    }

    /// Rejects a request whose head is malformed or too large.
    pub(crate) async fn reject_bad_head<C: Client>(
        &self,
        unparsed: UnparsedHead<'_>,
        rejection: &Rejection,
        peer: &Peer,
        client: &mut C,
    ) {
        let headers = RawHeaders(unparsed.received);
        let mut request = self.begin_request(unparsed.method, unparsed.path, &headers, peer);
        request.client = client_address(peer, &headers, &self.admission.trusted_proxies);
        self.reject(&request, None, rejection, client).await;
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
            received: self.reads_times().then(Instant::now),
            has_timed_steps: self.metrics.is_some(),
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
                    let form = client.read_body(admitted.expects_continue, limits);
                    let form = request.wait_for_form(pin!(form)).await?;
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

    /// Forwards an accepted request to its backend and relays the answer.
    async fn forward<C: Client>(
        &self,
        request: &ReceivedRequest<'_, Head>,
        accepted: Accepted<'_>,
        client: &mut C,
    ) {
        let route = accepted.routed.route();
        let backend = &route.backend;
        let balancer = self.balancers[backend.number].as_deref();
        let app = accepted.routed.app().map(|app| &**app);
        let counts = &self.backend_counts[backend.number];
        let destination = Destination::new(backend, balancer, counts, app, request.client);
        let mut forwarded = ForwardOutcome {
            forwarded_at: request.step_time(),
            ..ForwardOutcome::default()
        };
        let sent = match destination {
            Ok(mut destination) => {
                let sent = self.send_to_backend(request, &accepted, &mut destination, client);
                let sent = match sent.await {
                    Ok(answer) => {
                        let relayed =
                            self.relay_answer(request, route, answer, client, &mut forwarded);
                        let relayed = relayed.await;
                        relayed.map_err(|failed| self.counted(&route.backend, failed))
                    }
                    Err(rejection) => Err(rejection),
                };
                forwarded.backend = destination.address();
                sent
            }
            Err(rejection) => Err(rejection),
        };
        match sent {
            Err(rejection) if !client.has_begun_response() => {
                let failed = FailedForward {
                    route,
                    forwarded: &forwarded,
                };
                self.reject(request, Some(failed), &rejection, client).await;
            }
            sent => {
                let outcome = Outcome {
                    app: accepted.routed.app(),
                    rejection: sent.as_ref().err(),
                    ..request.outcome(Some(route), &forwarded)
                };
                self.record(request, &outcome);
            }
        }
    }

    /// Sends the request and waits for the head of its answer.
    async fn send_to_backend<C: Client>(
        &self,
        request: &ReceivedRequest<'_, Head>,
        accepted: &Accepted<'_>,
        destination: &mut Destination<'_>,
        client: &mut C,
    ) -> Result<Answer, Rejection> {
        let head = accepted.backend_head(&request.id, &self.backend_headers, &self.state.ids);
        let backend_request = BackendRequest {
            head: &head,
            form: &accepted.form,
            is_get: accepted.admitted.method == Method::Get,
        };
        self.backends
            .send(backend_request, destination, client)
            .await
    }

    /// Relays an answer to the client.
    async fn relay_answer<C: Client>(
        &self,
        request: &ReceivedRequest<'_, Head>,
        route: &Route,
        answer: Answer,
        client: &mut C,
        forwarded: &mut ForwardOutcome,
    ) -> Result<(), FailedAnswer> {
        let quotas = request.quotas.to_fields();
        forwarded.answered_at = request.step_time();
        let (head, bytes) = answer.head();
        self.note_secret_rejected(route, &answer)?;
        forwarded.problem = backend_problem(head, bytes);
        let names = &self.backend_headers.names;
        let life_cycle = route.backend.life_cycle.as_deref();
        let nominated = ConnectionOptions::from_fields(head.fields(bytes));
        if nominated.is_too_many() {
            return Err(Failure::Malformed("too many names in its Connection").into());
        }
        let passed = head
            .fields(bytes)
            .filter(|(name, _)| passes_to_client(name, &nominated, names))
            .filter(|(name, _)| self.cors.is_none() || !is_of_cors(name))
            .filter(|(name, _)| life_cycle.is_none_or(|one| !one.replaces(name)));
        let response = ResponseHead {
            status: head.status,
            reason: head.reason(bytes),
            body: match head.body {
                AnswerBody::None => BodyLength::None,
                AnswerBody::Length(length) => BodyLength::Known(length),
                AnswerBody::Chunked | AnswerBody::UntilClose => BodyLength::Unknown,
            },
        };
        let own = own_fields(&request.id, Some(route), names, &quotas);
        let cors = self.cors_fields(request.headers);
        forwarded.status = head.status;
        client.begin(response, own.chain(cors).chain(passed));
        drop((nominated, quotas));
        let relayed = answer.relay(client, &mut forwarded.size).await;
        relayed.map_err(FailedAnswer::from)
    }

    /// Counts the failure of an answer whose head was read. Others are counted where they are retried.
    fn counted(&self, backend: &Backend, failed: FailedAnswer) -> Rejection {
        match failed {
            FailedAnswer::Rejected(rejection) => rejection,
            FailedAnswer::Failed(failure) => {
                if let Some(cause) = failure.cause() {
                    self.backend_counts[backend.number].count_failure(cause);
                }
                failure.into()
            }
        }
    }

    /// The fields that let a page of another origin read an answer; none if CORS is off.
    fn cors_fields<'a>(
        &'a self,
        headers: &'a impl Headers,
    ) -> impl Iterator<Item = NameAndValue<'a>> {
        let fields = self.cors.as_ref().map(|cors| cors.answer_fields(headers));
        fields.into_iter().flatten()
    }

    /// Whether anything reads how long requests take.
    fn reads_times(&self) -> bool {
        self.metrics.is_some() || self.logs_access || self.tracer.is_some()
    }

    /// The access log, if it gets the line of this request.
    fn access_log(&self, outcome: &Outcome<'_>) -> Option<&AccessLog> {
        let log = self.state.access_log.as_ref();
        log.filter(|_| self.logs_access && (outcome.is_failure() || is_sampled(self.access_sample)))
    }

    /// Turns a backend's rejection of the gateway's secret into one of the request: the client did nothing wrong. CONTRACT 9.
    fn note_secret_rejected(&self, route: &Route, answer: &Answer) -> Result<(), Rejection> {
        let (head, bytes) = answer.head();
        let is_rejected = head.status == 403
            && head
                .value(bytes, X_GATEWAY_REFUSED.as_str())
                .is_some_and(|why| why == REFUSED_SECRET.as_bytes());
        let (secret_rejections, backend) = (&self.state.secret_rejections, &route.backend.name);
        if is_rejected {
            secret_rejections.note(backend, answer.address(), Instant::now());
            return Err(Rejection::GatewaySecretRejected);
        }
        if !secret_rejections.is_empty() {
            secret_rejections.remove(backend, answer.address());
        }
        Ok(())
    }

    /// Rejects a request that is not forwarded, or whose backend failed.
    async fn reject<H: Headers, C: Client>(
        &self,
        request: &ReceivedRequest<'_, H>,
        failed: Option<FailedForward<'_>>,
        rejection: &Rejection,
        client: &mut C,
    ) {
        if let Some(limit) = rejection.limit() {
            self.state.limited.count(limit);
        }
        let failed_route = failed.map(|failed| failed.route);
        let route = failed_route.or(request.rejected_route.as_deref());
        let mut forwarded = failed.map_or_else(ForwardOutcome::default, |failed| ForwardOutcome {
            problem: None,
            ..*failed.forwarded
        });
        if !matches!(rejection, Rejection::ClientDisconnected) {
            let format = error_format(
                request.method,
                request.path,
                request.headers,
                &self.error_format,
            );
            let response = error_response(rejection, format, &request.id);
            let head = ResponseHead {
                status: response.status.as_u16(),
                reason: reason(response.status),
                body: BodyLength::Known(response.body.len() as u64),
            };
            let quotas = match rejection {
                Rejection::QuotaExceeded {
                    policy,
                    exceeded: QuotaExceeded { quota, .. },
                } => Quotas::one(*policy, *quota),
                _ => request.quotas,
            };
            let quotas = quotas.to_fields();
            // A request that is not HTTP gets a bare 400.
            let own = rejection.code().map(|_| {
                let own = own_fields(&request.id, route, &self.error_format.names, &quotas);
                own.chain(self.cors_fields(request.headers))
            });
            client.begin(head, own.into_iter().flatten().chain(response.fields()));
            drop(quotas);
            if forwarded.forwarded_at.is_none() {
                forwarded.answered_at = request.step_time();
            }
            // Ignored: the request is recorded even if the client has disconnected.
            let _ = client.finish(&response.body).await;
            (forwarded.status, forwarded.size) = (head.status, response.body.len() as u64);
        }
        let outcome = Outcome {
            rejection: Some(rejection),
            ..request.outcome(route, &forwarded)
        };
        self.record(request, &outcome);
    }

    /// Hands a request's outcome to all that read it.
    fn record<H: Headers>(&self, request: &ReceivedRequest<'_, H>, outcome: &Outcome<'_>) {
        record(outcome, self.access_log(outcome));
        if let Some(metrics) = &self.metrics {
            metrics.count(outcome);
        }
        if let Some(spans) = &request.spans {
            spans.record(outcome, self.logs_access);
        }
        if let Some(usage) = &self.state.usage {
            let is_user_agent = |(name, _): &NameAndValue<'_>| is_named(name, &USER_AGENT);
            usage.count(outcome, || {
                let field = request.headers.each().find(is_user_agent);
                field.map(|(_, value)| value)
            });
        }
    }
}

/// A head that is malformed or too large.
#[derive(Clone, Copy)]
pub(crate) struct UnparsedHead<'r> {
    /// The method; `-` if the request line cannot be parsed.
    pub method: &'r [u8],
    /// The path; `-` if the request line cannot be parsed.
    pub path: &'r str,
    /// The bytes that arrived of the head.
    pub received: &'r [u8],
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

/// Why an answer whose head was read is not relayed, or not to its end.
#[derive(Debug)]
enum FailedAnswer {
    /// It rejects the gateway.
    Rejected(Rejection),
    /// It is malformed or incomplete, or the client disconnected.
    Failed(Failure),
}

impl From<Rejection> for FailedAnswer {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<Failure> for FailedAnswer {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A request that failed after it was routed.
#[derive(Clone, Copy)]
struct FailedForward<'f> {
    route: &'f Route,
    forwarded: &'f ForwardOutcome,
}

/// The problem code in a backend's answer: a word of `[a-z0-9_]`, at most [`MAX_CODE_BYTES`] long.
fn backend_problem(head: &AnswerHead, bytes: &[u8]) -> Option<String> {
    let is_of_code = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let code = head.value(bytes, X_GATEWAY_PROBLEM.as_str())?;
    let is_code = code.len() <= MAX_CODE_BYTES && code.iter().all(is_of_code);
    is_code
        .then(|| String::from_utf8(code.to_vec()).ok())
        .flatten()
}

#[cfg(test)]
mod tests;

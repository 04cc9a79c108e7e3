//! A request's way, from its received head to its finished answer: the phases in the contract's order, each a call into
//! its file.

mod build;

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use gateway_protocol::{
    header::{REFUSED_SECRET, X_GATEWAY_PROBLEM, X_GATEWAY_REFUSED},
    request_id::RequestId,
};
use signpost_kit::{
    clock::Clock,
    rate_limit::{NetworkLimiter, TooMany},
    shutdown::ShutdownSettings,
};

use crate::{
    apps::{App, directory::AppDirectory},
    backend::{
        answer_head::{AnswerBody, AnswerHead},
        exchange::BackendRequest,
        failure::Failure,
        upstream::{Answer, BackendClient},
    },
    client::{BodyLimits, Client, ResponseHead},
    config::{Limits, Timeouts, Versions},
    drain::Drain,
    observe::{access_log::AccessLog, outcome::Outcome, record},
    phases::{
        admit::{Admission, Admitted, admit},
        backend_headers::{BackendHeaderRules, write_backend_headers, write_request_line},
        error_format::{ErrorFormatRules, error_format},
        error_response::{error_response, reason},
        identify_app::identify_app,
        limit::is_unsigned,
        origin::{Peer, client as client_of},
        read_params::read_params,
        response::{own_fields, passes_to_client},
        route::{Route, RoutedRequest, route},
        verify::Verifier,
        way_in::callback,
    },
    rejection::Rejection,
    request::{BodyLength, Head, Headers, Method, RawHeaders},
    request_ids::RequestIds,
    routing::{Balancer, destination::Destination},
    secret_refusals::SecretRefusals,
    syntax::field::Nominated,
};

/// Limit of the code of a backend's problem that is logged, in bytes.
const MAX_CODE_BYTES: usize = 64;

/// What one configuration makes of requests. It is immutable: a reload makes another one, and a request keeps the one that
/// it began with. What outlives a configuration is in [`State`].
pub struct Gateway {
    /// Counts the configurations of this process, from 0.
    pub(crate) generation: u64,
    /// Rules for the language and the form of errors.
    pub(crate) error_format: ErrorFormatRules,
    /// Rules for admission.
    pub(crate) admission: Admission,
    /// Counts unsigned requests by the client's network, unless that is switched off.
    pub limiter: Option<NetworkLimiter>,
    /// Where applications are looked up.
    pub apps: AppDirectory,
    /// Verifies signs.
    pub(crate) verifier: Verifier,
    /// The versions and their backends.
    pub(crate) versions: Versions,
    /// The balancers of the versions, by the version's number; `None` if a version has one fixed address.
    pub(crate) balancers: Vec<Option<Arc<Balancer>>>,
    /// Rules for the headers that backends get.
    pub backend_headers: BackendHeaderRules,
    /// Sends requests to backends.
    pub(crate) backends: BackendClient,
    /// How large requests may be.
    pub limits: Limits,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// How long an orderly stop takes.
    pub(crate) shutdown: ShutdownSettings,
    /// Whether requests are logged.
    pub(crate) logs_access: bool,
    /// What outlives the configuration.
    pub state: Arc<State>,
}

/// What outlives a configuration, beside what the parts of a [`Gateway`] hand on to the next one: live signs, debts of rate
/// limits, cached applications, and what is known of addresses.
pub struct State {
    /// Backends that do not accept the gateway's secret.
    pub(crate) refusals: SecretRefusals,
    /// Makes request ids.
    pub ids: RequestIds,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// How far a stop has come, and what is in flight.
    pub drain: Arc<Drain>,
    /// The access log. Without one, no configuration can switch it on.
    pub(crate) access_log: Option<AccessLog>,
}

impl Gateway {
    /// Serves a request whose head was read: it is answered, or broken off, when this returns.
    pub(crate) async fn serve<C: Client>(&self, head: &Head, peer: &Peer, client: &mut C) {
        let mut request = self.received(head.method(), head.target().path, head, peer);
        match self.receive(head, peer, &mut request, client).await {
            Ok(accepted) => self.forward(&request, accepted, client).await,
            Err(rejection) => {
                // Of one that was not admitted, too, the client is whom trusted proxies name.
                let trusted_proxies = &self.admission.trusted_proxies;
                request.client = client_of(peer, head, trusted_proxies);
                self.reject(&request, None, &rejection, client).await;
            }
        }
    }

    /// Answers a head that was not accepted.
    pub(crate) async fn refuse<C: Client>(
        &self,
        unread: Unread<'_>,
        rejection: &Rejection,
        peer: &Peer,
        client: &mut C,
    ) {
        let headers = RawHeaders(unread.received);
        let mut request = self.received(unread.method, unread.path, &headers, peer);
        request.client = client_of(peer, &headers, &self.admission.trusted_proxies);
        self.reject(&request, None, rejection, client).await;
    }

    /// The beginning of a request: what is known of it before any phase.
    pub fn received<'r, H: Headers>(
        &self,
        method: &'r [u8],
        path: &'r str,
        headers: &'r H,
        peer: &Peer,
    ) -> Received<'r, H> {
        Received {
            method,
            path,
            headers,
            id: self.state.ids.next(),
            started: self.access_log().map(|_| Instant::now()),
            client: peer.address,
            named_app: None,
        }
    }

    /// Takes a request to its route, or finds out why it has none. CONTRACT 2 has the order.
    ///
    /// # Errors
    ///
    /// The first rejection of a phase. Then nothing of the request reaches a backend.
    pub async fn receive<'h, C: Client>(
        &self,
        head: &'h Head,
        peer: &Peer,
        request: &mut Received<'h, Head>,
        client: &mut C,
    ) -> Result<Accepted<'h>, Rejection> {
        let target = head.target();
        let admitted = self.admit(head, peer)?;
        if let Some(theirs) = admitted.request_id {
            request.id = theirs;
        }
        request.client = admitted.origin.client;
        let method = admitted.method;
        let (verified, form) = match callback(method, head.body(), target, self.verifier.config()) {
            Some(callback) => (self.verifier.pass_callback(callback), Vec::new()),
            None => {
                let paths = &self.verifier.config().browser_paths;
                let names = &self.admission.names;
                let app = identify_app(admitted.app, target, paths, names, &self.apps).await?;
                request.named_app = Some(Arc::clone(&app));
                let limits = BodyLimits {
                    bytes: self.limits.body,
                    timeout: self.timeouts.body,
                };
                let form = client.read_body(admitted.expects_continue, limits).await?;
                let params = read_params(target, &form, &self.limits)?;
                let now = self.state.clock.now().into();
                let verified = self.verifier.verify(app, method, target, &params, now)?;
                drop(params);
                (verified, form)
            }
        };
        let routed = route(verified, admitted.version, &self.versions)?;
        Ok(Accepted {
            head,
            routed,
            admitted,
            form,
        })
    }

    /// Admits a request that its client's network may still make. CONTRACT 7: the address' rate comes behind the method,
    /// and before anything else that the headers could be refused for.
    fn admit<'h>(&self, head: &'h Head, peer: &Peer) -> Result<Admitted<'h>, Rejection> {
        let (method, rules) = (head.method(), &self.admission);
        if let Some(limiter) = &self.limiter
            && is_unsigned(method, head.target(), self.verifier.config())
        {
            let client = client_of(peer, head, &rules.trusted_proxies);
            let counted = limiter.count(client, Instant::now());
            counted
                .map_err(|TooMany { retry_after }| Rejection::AddressRateLimited { retry_after })?;
        }
        admit(method, head, head.body(), peer, rules)
    }

    /// Forwards an accepted request to its backend, and relays the answer.
    async fn forward<C: Client>(
        &self,
        request: &Received<'_, Head>,
        accepted: Accepted<'_>,
        client: &mut C,
    ) {
        let route = accepted.routed.route();
        let backend = &route.backend;
        let balancer = self.balancers[backend.number].as_deref();
        let app = accepted.routed.app().map(|app| &**app);
        let destination = Destination::new(backend, balancer, app, request.client);
        let mut forwarded = Forwarded::default();
        let sent = match destination {
            Ok(mut destination) => {
                let sent = self.exchange(request, &accepted, &mut destination, client);
                let sent = match sent.await {
                    Ok(answer) => {
                        self.pass_on(request, route, answer, client, &mut forwarded)
                            .await
                    }
                    Err(rejection) => Err(rejection),
                };
                forwarded.backend = destination.address();
                sent
            }
            Err(rejection) => Err(rejection),
        };
        match sent {
            Err(rejection) if !client.is_answered() => {
                let failed = Failed {
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
                record(&outcome, self.access_log());
            }
        }
    }

    /// Writes the request, and waits for the head of its answer.
    async fn exchange<C: Client>(
        &self,
        request: &Received<'_, Head>,
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

    /// Passes an answer on to the client.
    async fn pass_on<C: Client>(
        &self,
        request: &Received<'_, Head>,
        route: &Route,
        answer: Answer,
        client: &mut C,
        forwarded: &mut Forwarded,
    ) -> Result<(), Rejection> {
        let (head, bytes) = answer.head();
        self.note_secret_refused(route, &answer)?;
        forwarded.problem = backend_problem(head, bytes);
        let names = &self.backend_headers.names;
        let nominated = Nominated::from_fields(head.fields(bytes));
        if nominated.is_too_many() {
            return Err(Failure::Malformed("too many names in its Connection").into());
        }
        let passing = head
            .fields(bytes)
            .filter(|(name, _)| passes_to_client(name, &nominated, names));
        let response = ResponseHead {
            status: head.status,
            reason: head.reason(bytes),
            body: match head.body {
                AnswerBody::None => BodyLength::None,
                AnswerBody::Length(length) => BodyLength::Known(length),
                AnswerBody::Chunked | AnswerBody::UntilClose => BodyLength::Unknown,
            },
        };
        let own = own_fields(&request.id, Some(route), names);
        forwarded.status = head.status;
        client.begin(response, own.chain(passing));
        drop(nominated);
        let relayed = answer.relay(client, &mut forwarded.size).await;
        relayed.map_err(Rejection::from)
    }

    fn access_log(&self) -> Option<&AccessLog> {
        let log = self.state.access_log.as_ref();
        log.filter(|_| self.logs_access)
    }

    /// A backend that refuses the gateway's secret refuses the gateway, not its client. CONTRACT 9.
    fn note_secret_refused(&self, route: &Route, answer: &Answer) -> Result<(), Rejection> {
        let (head, bytes) = answer.head();
        let is_refused = head.status == 403
            && head
                .value(bytes, X_GATEWAY_REFUSED.as_str())
                .is_some_and(|why| why == REFUSED_SECRET.as_bytes());
        let (refusals, version) = (&self.state.refusals, &route.backend.version);
        if is_refused {
            refusals.note(version, answer.address(), Instant::now());
            return Err(Rejection::SecretRefused);
        }
        if !refusals.is_empty() {
            refusals.forget(version, answer.address());
        }
        Ok(())
    }

    /// Answers a request that is not forwarded, or that failed.
    async fn reject<H: Headers, C: Client>(
        &self,
        request: &Received<'_, H>,
        failed: Option<Failed<'_>>,
        rejection: &Rejection,
        client: &mut C,
    ) {
        let route = failed.map(|failed| failed.route);
        let mut forwarded = Forwarded {
            backend: failed.and_then(|failed| failed.forwarded.backend),
            ..Forwarded::default()
        };
        if !matches!(rejection, Rejection::ClientGone) {
            let format = error_format(
                request.method,
                request.path,
                request.headers,
                &self.error_format,
            );
            let answer = error_response(rejection, format, &request.id);
            let head = ResponseHead {
                status: answer.status.as_u16(),
                reason: reason(answer.status),
                body: BodyLength::Known(answer.body.len() as u64),
            };
            // What is not HTTP gets a bare 400.
            let own = rejection
                .code()
                .map(|_| own_fields(&request.id, route, &self.error_format.names));
            client.begin(head, own.into_iter().flatten().chain(answer.fields()));
            // A client that does not take it is recorded all the same.
            let _ = client.finish(&answer.body).await;
            (forwarded.status, forwarded.size) = (head.status, answer.body.len() as u64);
        }
        let outcome = Outcome {
            rejection: Some(rejection),
            ..request.outcome(route, &forwarded)
        };
        record(&outcome, self.access_log());
    }
}

/// What is known of a request whatever becomes of it.
pub struct Received<'r, H> {
    method: &'r [u8],
    path: &'r str,
    headers: &'r H,
    /// The gateway's id, or a trusted proxy's.
    id: RequestId,
    /// When the head had arrived; known if there is an access log.
    started: Option<Instant>,
    client: IpAddr,
    /// The application that it names. It may be another's: the verified one is in [`RoutedRequest`].
    named_app: Option<Arc<App>>,
}

impl<H> Received<'_, H> {
    /// Its id: the gateway's, or a trusted proxy's.
    #[must_use]
    pub const fn id(&self) -> &RequestId {
        &self.id
    }

    fn outcome<'o>(&'o self, route: Option<&'o Route>, forwarded: &'o Forwarded) -> Outcome<'o> {
        Outcome {
            request_id: &self.id,
            client: self.client,
            method: self.method,
            path: self.path,
            app: self.named_app.as_ref(),
            route,
            backend: forwarded.backend,
            status: forwarded.status,
            size: forwarded.size,
            duration: self
                .started
                .map_or(Duration::ZERO, |started| started.elapsed()),
            rejection: None,
            backend_problem: forwarded.problem.as_deref(),
        }
    }
}

/// A head that was not accepted.
#[derive(Clone, Copy)]
pub(crate) struct Unread<'r> {
    /// The method, if the request line can be read; else `-`.
    pub method: &'r [u8],
    /// The path, if the request line can be read; else `-`.
    pub path: &'r str,
    /// What arrived of the head.
    pub received: &'r [u8],
}

/// A request that came through the phases: it may go to its backend. Only [`Gateway::receive`] makes one, so that the bytes
/// that a backend gets are those that were verified.
pub struct Accepted<'h> {
    head: &'h Head,
    routed: RoutedRequest,
    admitted: Admitted<'h>,
    form: Vec<u8>,
}

impl Accepted<'_> {
    /// The head that the backend gets.
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
            &self.routed,
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

/// What came of forwarding a request.
#[derive(Debug, Default)]
struct Forwarded {
    backend: Option<std::net::SocketAddr>,
    status: u16,
    size: u64,
    problem: Option<String>,
}

/// A request that failed behind its route.
#[derive(Clone, Copy)]
struct Failed<'f> {
    route: &'f Route,
    forwarded: &'f Forwarded,
}

/// The code of the problem in a backend's answer: a word of `[a-z0-9_]`, [`MAX_CODE_BYTES`] at most.
fn backend_problem(head: &AnswerHead, bytes: &[u8]) -> Option<String> {
    let is_of_code = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let code = head.value(bytes, X_GATEWAY_PROBLEM.as_str())?;
    let is_code = code.len() <= MAX_CODE_BYTES && code.iter().all(is_of_code);
    is_code
        .then(|| String::from_utf8(code.to_vec()).ok())
        .flatten()
}

//! Receives a request: runs the phases from the limits to the bridge.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use signpost_kit::clock::Timestamp;
use signpost_protocol::{param::Params, sign::BodyHash};

use super::{
    Gateway,
    accepted::{Accepted, Outgoing},
    request::Received,
};
use crate::{
    config::{AccountCheck, Backend, Bodies},
    directory::apps::App,
    limits::spool::Body,
    observe::{
        outcome::Learnt,
        spans::{RequestSpans, Step, samples},
    },
    phases::{
        admit::{Admitted, AppHeader, BodyKind, admit, check_body, refused_body},
        callback::match_callback,
        identify_account::{RequestAccount, identify_account},
        identify_app::identify_app,
        limit::is_unsigned,
        origin::{Peer, client_address},
        read_params::read_params,
        route::{Route, RoutedRequest, Unrouted, Wanted, route, rules_of},
        verify::{HeaderSign, SignedBody, VerifiedRequest},
    },
    request::{
        BodyLength, Head, Method,
        client::{BodyLimits, Client, PIECE},
        quotas::Quotas,
        rejection::Rejection,
    },
};

/// Runs the phases from the limits to the bridge, in the order of CONTRACT 7.
///
/// # Errors
///
/// The first rejection of a phase. Nothing of the request then reaches a backend.
pub async fn receive<'h, C: Client>(
    gateway: &Gateway,
    peer: &Peer,
    request: &mut Received<'h, Head>,
    client: &mut C,
) -> Result<Accepted<'h>, Box<Rejected>> {
    let (verifier, clock) = (&gateway.policy.verifier, &gateway.state.clock);
    let (head, target) = (request.headers, request.target);
    let mut admitted = check_limits_and_admit(gateway, request, peer)?;
    begin_spans(gateway, request, &mut admitted);
    request.client = admitted.origin.client;
    refuse_upgrade(&admitted, request.protocol)?;
    // Here, not with the form below: CONTRACT 7 judges such a body in step 5, before the application.
    if admitted.body.must_be_empty() {
        // Boxed: a connection has no room for what it rarely needs.
        Box::pin(read_form(gateway, &admitted, request, client)).await?;
    }
    let sign = verifier.config();
    let callback = match_callback(admitted.method, head.body(), target, head, sign)?;
    let (verified, body, now) = match callback {
        Some(callback) => (verifier.pass_callback(callback), Body::default(), None),
        None => {
            let (verified, body, now) =
                find_and_verify(gateway, &mut admitted, request, client).await?;
            (verified, body, Some(now))
        }
    };
    // Not before the signature is verified: anyone could otherwise use up an application's limit.
    let quotas = count_app(gateway, &verified, target.compared(), &admitted);
    let quotas = quotas.map_err(|rejection| Rejected::verified(&verified, rejection))?;
    // A callback has read no clock so far, and needs one only if its version has a life cycle.
    let now = || now.unwrap_or_else(|| clock.now());
    let wanted = wanted(&admitted, request);
    let routed = choose_route(gateway, verified, wanted, now);
    let routed = routed.map_err(|rejected| rejected.with(quotas))?;
    let account = find_account(gateway, &routed, &admitted, now, request).await;
    let account = account.map_err(|rejection| Rejected::routed(&routed, rejection).with(quotas))?;
    // Changes come last: signature, route and account are about the request as the client sent it.
    let outgoing = Outgoing::new(&routed, admitted.method, target, body, sign);
    let outgoing =
        outgoing.map_err(|rejection| Rejected::routed(&routed, rejection).with(quotas))?;
    Ok(Accepted {
        head,
        routed,
        account,
        admitted,
        outgoing,
        quotas,
    })
}

/// Finds the application, reads the body and verifies the request. Also returns when it was verified.
async fn find_and_verify<'h, C: Client>(
    gateway: &Gateway,
    admitted: &mut Admitted<'h>,
    request: &mut Received<'h, Head>,
    client: &mut C,
) -> Result<(VerifiedRequest, Body, Timestamp), Box<Rejected>> {
    let app = find_app(gateway, admitted.app, request).await?;
    let claimed = |rejection| Rejected::by_claimed(&app, rejection);
    // Was read in step 5.
    let is_read = admitted.body.must_be_empty();
    judge(gateway, &app, admitted, request).map_err(claimed)?;
    let (body, hash, arrived) = match admitted.body {
        BodyKind::Other(limit) => {
            // Boxed, as above.
            let body = read_other(gateway, &app, admitted, limit, request, client);
            Box::pin(body).await.map_err(claimed)?
        }
        BodyKind::Empty if is_read => (Body::default(), None, None),
        // Also if the head announces no body: over HTTP/2, one may follow nevertheless, and is rejected.
        BodyKind::None | BodyKind::Empty | BodyKind::Form | BodyKind::Unjudged(_) => {
            let form = read_form(gateway, admitted, request, client).await;
            (Body::Form(form.map_err(claimed)?), None, None)
        }
    };
    // Read once: what verifies, routes and checks the account must not disagree about an edge.
    let now = gateway.state.clock.now();
    // An upload takes its time: the time of its signature is judged by when its head arrived.
    let signed_at = arrived.unwrap_or(now);
    let content = (&body, hash.as_ref());
    let mut verified = verify(gateway, admitted, &app, content, signed_at, request);
    if let Ok(unshared) = &mut verified
        && unshared.is_unshared()
    {
        let store = gateway.state.accounts.get().map(|accounts| &accounts.store);
        let verifier = &gateway.policy.verifier;
        // Boxed, as above.
        let shared = Box::pin(verifier.share(unshared, admitted.origin.client, store)).await;
        verified = shared.and(verified);
    }
    match verified {
        Ok(verified) => Ok((verified, body, now)),
        Err(rejection) => {
            let mut rejected = claimed(rejection);
            if let Body::Form(form) = body {
                rejected.form = form;
            }
            Err(rejected)
        }
    }
}

/// Judges method and body by what the version and the path take, if these differ.
///
/// # Errors
///
/// They take another method, or another kind of body, or a smaller one.
pub(super) fn judge<'h>(
    gateway: &Gateway,
    app: &Arc<App>,
    admitted: &mut Admitted<'h>,
    request: &Received<'h, Head>,
) -> Result<(), Rejection> {
    let policy = &gateway.policy;
    if !policy.rules.admission.varies {
        return Ok(());
    }
    let now = || gateway.state.clock.now();
    let versions = &policy.backends.versions;
    let rules = rules_of(app, wanted(admitted, request), versions, now);
    if !rules.methods.has(admitted.method) {
        return Err(Rejection::MethodNotAllowed {
            allowed: rules.methods,
            is_of_path: true,
        });
    }
    if let BodyKind::Unjudged(body_type) = admitted.body {
        let declared = (request.headers.body(), admitted.expects_continue);
        let limits = (rules, policy.bounds.requests.body);
        admitted.body = check_body(admitted.method, declared, body_type, limits)?;
    }
    Ok(())
}

/// What the route of a request depends on.
pub(super) fn wanted<'r>(admitted: &Admitted<'r>, request: &Received<'r, Head>) -> Wanted<'r> {
    Wanted {
        version: admitted.version,
        placed: request.placed,
        method: admitted.method,
        target: request.target,
        client: admitted.origin.client,
        headers: Some(request.headers),
    }
}

/// The rate that a large body needs on average, in bytes per second, beside the timeout of small ones.
const UPLOAD_RATE: u64 = 32 * 1024;

/// Reads a body that is no form. Also returns when its head arrived.
async fn read_other<C: Client>(
    gateway: &Gateway,
    app: &App,
    admitted: &Admitted<'_>,
    limit: u64,
    request: &mut Received<'_, Head>,
    client: &mut C,
) -> Result<(Body, Option<BodyHash>, Option<Timestamp>), Rejection> {
    let policy = &gateway.policy;
    let arrived = gateway.state.clock.now();
    let left = policy
        .verifier
        .check_before_body(app, admitted.signed(), arrived.into())?;
    let most = match request.headers.body() {
        BodyLength::Known(length) => length,
        BodyLength::None | BodyLength::Unknown => limit,
    };
    let timeout = policy.bounds.timeouts.body;
    let limits = BodyLimits {
        bytes: usize::try_from(limit).unwrap_or(usize::MAX),
        timeout: match most <= PIECE as u64 {
            true => timeout,
            false => left.unwrap_or(timeout + Duration::from_secs(most / UPLOAD_RATE)),
        },
        min_rate: policy.bounds.connections.min_rate,
    };
    let body = async {
        let mut receiving = policy.spool.begin(admitted.origin.client, true);
        let expects_continue = admitted.expects_continue;
        client
            .read_pieces(expects_continue, limits, &mut receiving)
            .await?;
        let (body, hash) = receiving.finish().await?;
        Ok((body, hash, Some(arrived)))
    };
    // As for a form.
    let body = pin!(body);
    let body = pin!(gateway.state.drain.cut_off(body));
    request.timing.wait_for_form(body).await
}

/// Checks the limits of client addresses, then admits the request. CONTRACT 7: the limits come after the method, and before
/// every other check of the headers.
fn check_limits_and_admit<'h>(
    gateway: &Gateway,
    request: &Received<'h, Head>,
    peer: &Peer,
) -> Result<Admitted<'h>, Rejection> {
    let policy = &gateway.policy;
    let (method, target, head) = (request.method, request.target, request.headers);
    let rules = &policy.rules.admission;
    if policy.rate_limits.counts_unsigned() && is_unsigned(method, target, policy.verifier.config())
    {
        let client = client_address(peer, head, &rules.trusted_proxies);
        policy.rate_limits.count_unsigned(client, Instant::now())?;
    }
    if policy.rate_limits.counts_addresses()
        // One that no version accepts is rejected anyway.
        && let Some(method) = Method::from_bytes(method)
        && rules.methods.has(method)
    {
        let client = client_address(peer, head, &rules.trusted_proxies);
        let limits = &policy.rate_limits;
        limits.count_address(method, target.compared(), client, Instant::now())?;
    }
    admit(method, head, head.body(), peer, rules)
}

/// Takes a trusted proxy's request id, and begins the spans of a sampled request. The gateway's own id decides about those,
/// since no client can choose it.
fn begin_spans(gateway: &Gateway, request: &mut Received<'_, Head>, admitted: &mut Admitted<'_>) {
    let tracer = gateway.policy.recording.tracer.as_ref();
    let tracer = tracer.filter(|tracer| samples(tracer, &request.id, admitted));
    if let Some(theirs) = admitted.request_id {
        request.id = theirs;
    }
    if let Some(tracer) = tracer {
        let (ids, clock) = (&gateway.state.ids, &*gateway.state.clock);
        let spans = RequestSpans::begin(tracer, &request.id, admitted, ids, clock);
        request.timing.spans = Some(spans);
    }
}

/// Rejects an upgrade. RFC 9110 section 7.8: HTTP/1.0 has none.
pub(super) fn refuse_upgrade(admitted: &Admitted<'_>, protocol: &str) -> Result<(), Rejection> {
    match admitted.asks_upgrade && protocol != "HTTP/1.0" {
        true => Err(Rejection::UpgradeNotSupported),
        false => Ok(()),
    }
}

/// Finds the application that the request names.
pub(super) async fn find_app(
    gateway: &Gateway,
    header: AppHeader<'_>,
    request: &mut Received<'_, Head>,
) -> Result<Arc<App>, Rejection> {
    let policy = &gateway.policy;
    let paths = &policy.verifier.config().browser_paths;
    let names = &policy.rules.admission.names;
    request.timing.begin_step(Step::LookUpApplication);
    let app = identify_app(header, request.target, paths, names, &policy.apps).await?;
    request.timing.end_step();
    Ok(app)
}

/// Reads the form, if the request has one. If the body is none, its first byte decides.
pub(super) async fn read_form<C: Client>(
    gateway: &Gateway,
    admitted: &Admitted<'_>,
    request: &mut Received<'_, Head>,
    client: &mut C,
) -> Result<Vec<u8>, Rejection> {
    let bounds = &gateway.policy.bounds;
    let limits = BodyLimits {
        bytes: if admitted.body.must_be_empty() {
            0
        } else {
            bounds.requests.body
        },
        timeout: bounds.timeouts.body,
        min_rate: bounds.connections.min_rate,
    };
    let form = pin!(client.read_body(admitted.expects_continue, limits));
    // A stop does not wait for a form that arrives slowly: nothing of the request was forwarded.
    let form = pin!(gateway.state.drain.cut_off(form));
    match request.timing.wait_for_form(form).await {
        Err(Rejection::BodyTooLarge { .. }) if admitted.body.must_be_empty() => {
            Err(refused_body(admitted.method, Bodies::Form))
        }
        form => form,
    }
}

/// Verifies the parameters of target and form, or headers and body.
fn verify(
    gateway: &Gateway,
    admitted: &Admitted<'_>,
    app: &Arc<App>,
    (body, hash): (&Body, Option<&BodyHash>),
    now: Timestamp,
    request: &mut Received<'_, Head>,
) -> Result<VerifiedRequest, Rejection> {
    let (policy, target) = (&gateway.policy, request.target);
    request.timing.begin_step(Step::Verify);
    let mut params = Params::default();
    let form = body.form();
    read_params(&mut params, target, form, &policy.bounds.requests)?;
    let (app, method, headers) = (Arc::clone(app), admitted.method, request.headers);
    let in_headers = HeaderSign {
        fields: admitted.signed(),
        body: hash.map_or(SignedBody::Bytes(form), SignedBody::Hashed),
    };
    let headers = (headers, in_headers);
    let verifier = &policy.verifier;
    let verified = verifier.verify(app, method, target, &params, headers, now.into())?;
    request.timing.end_step();
    Ok(verified)
}

/// Counts a signed request for its application, if it has a limit. Returns what the limits leave.
fn count_app(
    gateway: &Gateway,
    verified: &VerifiedRequest,
    path: &str,
    admitted: &Admitted<'_>,
) -> Result<Quotas, Rejection> {
    let limits = &gateway.policy.rate_limits;
    match verified.signed_app().filter(|app| limits.counts(app)) {
        Some(app) => limits.count_app(app, admitted.method, path, Instant::now()),
        None => Ok(Quotas::default()),
    }
}

/// Chooses the backend. A request that is rejected although its version is known has a route, for its response.
pub(super) fn choose_route(
    gateway: &Gateway,
    mut verified: VerifiedRequest,
    wanted: Wanted<'_>,
    now: impl Fn() -> Timestamp,
) -> Result<RoutedRequest, Box<Rejected>> {
    let backends = &gateway.policy.backends;
    if let Some(callback) = verified.callback_mut() {
        let ends = gateway.state.version_ends.load();
        let end = ends
            .iter()
            .find(|end| Some(end.version.as_str()) == callback.version());
        callback.extended = end.and_then(|end| end.extended);
    }
    let is_available = |backend: &Backend| backends.target(backend).is_available();
    let routed = route(verified, wanted, &backends.versions, now, is_available);
    routed.map_err(|unrouted| {
        let Unrouted {
            rejection,
            route,
            verified,
        } = unrouted;
        let mut rejected = Rejected::verified(&verified, rejection);
        rejected.route = route;
        rejected
    })
}

/// Identifies the account, if the route asks for one.
async fn find_account(
    gateway: &Gateway,
    routed: &RoutedRequest,
    admitted: &Admitted<'_>,
    now: impl FnOnce() -> Timestamp,
    request: &mut Received<'_, Head>,
) -> Result<RequestAccount, Rejection> {
    let accounts = gateway.state.accounts.get();
    let accounts = accounts.map(|accounts| &*accounts.directory);
    if routed.route().backend().account.check != AccountCheck::None {
        request.timing.begin_step(Step::IdentifyAccount);
    }
    let account = identify_account(routed, admitted, request.headers, accounts, now).await;
    request.timing.end_step();
    account
}

/// A request that a phase rejected, and what the phases before had learnt of it.
#[derive(Debug)]
pub struct Rejected {
    pub(super) rejection: Rejection,
    /// The application that it claims, or whose signature was verified.
    app: Option<Arc<App>>,
    is_signed: bool,
    /// Its route, if it has one: its version does not serve now, or its signature or account is missing. The response has
    /// the version's headers then.
    route: Option<Box<Route>>,
    /// Its form, if its parameters are why it was rejected.
    form: Vec<u8>,
    pub(super) quotas: Quotas,
}

impl Rejected {
    fn by_claimed(app: &Arc<App>, rejection: Rejection) -> Box<Self> {
        let mut rejected = Box::<Self>::from(rejection);
        rejected.app = Some(Arc::clone(app));
        rejected
    }

    fn verified(verified: &VerifiedRequest, rejection: Rejection) -> Box<Self> {
        let mut rejected = Box::<Self>::from(rejection);
        rejected.app = verified.app().cloned();
        rejected.is_signed = verified.signed_app().is_some();
        rejected
    }

    fn routed(routed: &RoutedRequest, rejection: Rejection) -> Box<Self> {
        let mut rejected = Self::verified(routed.verified(), rejection);
        rejected.route = Some(Box::new(routed.route().clone()));
        rejected
    }

    fn with(mut self: Box<Self>, quotas: Quotas) -> Box<Self> {
        self.quotas = quotas;
        self
    }

    /// What the phases had learnt.
    pub(super) fn learnt(&self) -> Learnt<'_> {
        Learnt {
            app: self.app.as_ref(),
            is_signed: self.is_signed,
            route: self.route.as_deref(),
            form: &self.form,
        }
    }
}

/// A rejection before anything was learnt.
impl From<Rejection> for Box<Rejected> {
    fn from(rejection: Rejection) -> Self {
        Self::new(Rejected {
            rejection,
            app: None,
            is_signed: false,
            route: None,
            form: Vec::new(),
            quotas: Quotas::default(),
        })
    }
}

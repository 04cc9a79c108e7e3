//! Responds without a backend: challenges, redirects to https, preflights, rejections.

use std::{path::Path, time::Instant};

use http::{
    StatusCode,
    header::{CONTENT_TYPE, LOCATION},
};

use super::{Gateway, policy::Rules, record::record, request::Received};
use crate::{
    observe::outcome::{Learnt, Sent},
    phases::{
        cors::CorsRules,
        error_format::error_format,
        error_response::{OwnResponse, error_response, reason},
        origin::{Peer, client_address},
        own_page::{OwnPage, own_page},
        redirect::{https_location, is_redirected},
        response::{FixedHeaders, own_fields},
        route::Route,
    },
    request::{
        BodyLength, Head, Headers, Method, Methods, RawHeaders, Target,
        client::{Client, ResponseHead},
        quotas::Quotas,
        rejection::Rejection,
    },
    wire::syntax::field::NameAndValue,
};

/// Serves an ACME challenge, or rejects what is none. It counts as an unsigned request.
pub(super) async fn serve_challenge<C: Client>(
    gateway: &Gateway,
    webroot: &Path,
    name: &str,
    peer: &Peer,
    request: &mut Received<'_, Head>,
    client: &mut C,
) {
    let content = async {
        count_unsigned(gateway, peer, request)?;
        if !matches!(request.method, b"GET" | b"HEAD") {
            return Err(Rejection::MethodNotAllowed {
                allowed: Methods::of(&[Method::Get, Method::Head]),
                is_of_path: true,
            });
        }
        gateway.state.challenge_reads.read(webroot, name).await
    };
    match content.await {
        Err(rejection) => reject(gateway, request, Failed::default(), &rejection, client).await,
        Ok(content) => {
            let fields = [(
                CONTENT_TYPE.as_str().as_bytes(),
                &b"application/octet-stream"[..],
            )];
            let response = (StatusCode::OK, BodyLength::Known(content.len() as u64));
            respond(gateway, request, response, &fields, &content, client).await;
        }
    }
}

/// Counts a request that the gateway answers by itself for the network of its client.
fn count_unsigned(
    gateway: &Gateway,
    peer: &Peer,
    request: &mut Received<'_, Head>,
) -> Result<(), Rejection> {
    let trusted_proxies = &gateway.policy.rules.admission.trusted_proxies;
    // Before the limit decides: the access line of a rejected request names the client, not its proxy.
    request.client = client_address(peer, request.headers, trusted_proxies);
    let limits = &gateway.policy.rate_limits;
    limits.count_unsigned(request.client, Instant::now())
}

/// Redirects a request on a listener with `redirect_to_https`, or rejects it.
pub(super) async fn redirect_to_https<C: Client>(
    gateway: &Gateway,
    peer: &Peer,
    request: &mut Received<'_, Head>,
    client: &mut C,
) {
    let rules = &gateway.policy.rules;
    request.client = client_address(peer, request.headers, &rules.admission.trusted_proxies);
    if !is_redirected(request.headers, &rules.admission.names) {
        let rejection = Rejection::HttpsRequired;
        return reject(gateway, request, Failed::default(), &rejection, client).await;
    }
    let location = https_location(request.headers, rules.https_port);
    let fields = [(LOCATION.as_str().as_bytes(), &location[..])];
    let response = (StatusCode::PERMANENT_REDIRECT, BodyLength::Known(0));
    respond(gateway, request, response, &fields, b"", client).await;
}

/// Responds to a preflight, which reaches no backend. CONTRACT 2.
pub(super) async fn serve_preflight<C: Client>(
    gateway: &Gateway,
    cors: &CorsRules,
    peer: &Peer,
    request: &mut Received<'_, Head>,
    client: &mut C,
) {
    if let Err(rejection) = count_unsigned(gateway, peer, request) {
        return reject(gateway, request, Failed::default(), &rejection, client).await;
    }
    let response = (StatusCode::NO_CONTENT, BodyLength::None);
    let fields = cors.preflight_fields(request.headers);
    respond(gateway, request, response, &fields, b"", client).await;
}

/// Serves a page of the gateway itself, which reaches no backend. CONTRACT 7.
pub(super) async fn serve_own_page<C: Client>(
    gateway: &Gateway,
    page: OwnPage,
    peer: &Peer,
    request: &mut Received<'_, Head>,
    client: &mut C,
) {
    if let Err(rejection) = count_unsigned(gateway, peer, request) {
        return reject(gateway, request, Failed::default(), &rejection, client).await;
    }
    let (rules, headers) = (&gateway.policy.rules, request.headers);
    let page = own_page(page, headers, &rules.error_format);
    let body = match page.body.len() {
        0 => BodyLength::None,
        length => BodyLength::Known(length as u64),
    };
    let fields: Vec<_> = cors_fields(rules, headers).chain(page.fields()).collect();
    respond(
        gateway,
        request,
        (page.status, body),
        &fields,
        &page.body,
        client,
    )
    .await;
}

/// Sends a whole response, and records the request.
async fn respond<C: Client>(
    gateway: &Gateway,
    request: &mut Received<'_, Head>,
    (status, body): (StatusCode, BodyLength),
    fields: &[NameAndValue<'_>],
    content: &[u8],
    client: &mut C,
) {
    let response = ResponseHead {
        status: status.as_u16(),
        reason: reason(status),
        body,
    };
    let quotas = Quotas::default().to_fields();
    let rules = &gateway.policy.rules;
    let own = own_fields(&request.id, None, &rules.error_format.names, &quotas);
    let fixed = FixedHeaders::new(&rules.response_headers, None, request.hsts);
    // What the response itself says prevails, for example that caches may store it.
    let is_said = |name: &[u8]| fields.iter().any(|(said, _)| *said == name);
    let fixed = fixed.fields().filter(|(name, _)| !is_said(name));
    client.begin(response, own.chain(fields.iter().copied()).chain(fixed));
    // Not needed while the response is sent: the future of each connection would have room for it.
    drop(quotas);
    request.timing.begin_own_response();
    // Ignored: the request is recorded even if the client has disconnected.
    let _ = client.finish(content).await;
    let sent = Sent {
        status: response.status,
        size: content.len() as u64,
        ..Sent::default()
    };
    let outcome = request.outcome(Learnt::default(), sent, None);
    record(gateway, request, &outcome);
}

/// Rejects a request whose head is malformed or too large.
pub(crate) async fn reject_bad_head<C: Client>(
    gateway: &Gateway,
    unparsed: UnparsedHead<'_>,
    rejection: &Rejection,
    peer: &Peer,
    client: &mut C,
) {
    let headers = RawHeaders(unparsed.received);
    let UnparsedHead { method, target, .. } = unparsed;
    let mut request = Received::new(gateway, method, target, &headers, peer, client.protocol());
    let trusted_proxies = &gateway.policy.rules.admission.trusted_proxies;
    request.client = client_address(peer, &headers, trusted_proxies);
    reject(gateway, &mut request, Failed::default(), rejection, client).await;
}

/// Rejects a request that is not forwarded, or whose backend failed.
pub(super) async fn reject<H: Headers, C: Client>(
    gateway: &Gateway,
    request: &mut Received<'_, H>,
    failed: Failed<'_>,
    rejection: &Rejection,
    client: &mut C,
) {
    if let Rejection::RateLimited { limit, .. } = rejection {
        gateway.state.records.limited.count(*limit);
    }
    let Failed {
        learnt,
        quotas,
        mut sent,
    } = failed;
    // The response is the gateway's from here on: a code that the backend sent is not part of it.
    sent.problem = None;
    // Nobody reads a response any more.
    if !matches!(rejection, Rejection::ClientDisconnected) {
        let error = begin_error(gateway, request, learnt.route, quotas, rejection, client);
        request.timing.begin_own_response();
        // Ignored: the request is recorded even if the client has disconnected.
        let _ = client.finish(&error.body).await;
        (sent.status, sent.size) = (error.status.as_u16(), error.body.len() as u64);
    }
    let outcome = request.outcome(learnt, sent, Some(rejection));
    record(gateway, request, &outcome);
}

/// Begins the response to a rejected request, and returns it.
fn begin_error<H: Headers, C: Client>(
    gateway: &Gateway,
    request: &Received<'_, H>,
    route: Option<&Route>,
    quotas: Quotas,
    rejection: &Rejection,
    client: &mut C,
) -> OwnResponse {
    let rules = &gateway.policy.rules;
    let (path, headers) = (request.target.compared(), request.headers);
    let format = error_format(request.method, path, headers, &rules.error_format);
    let names = &rules.error_format.names;
    let response = error_response(rejection, format, names, &request.id);
    let head = ResponseHead {
        status: response.status.as_u16(),
        reason: reason(response.status),
        body: BodyLength::Known(response.body.len() as u64),
    };
    // CONTRACT 8: a 429 names only the limit that was exceeded.
    let quotas = match rejection {
        Rejection::RateLimited {
            limit,
            quota: Some(quota),
            ..
        } => Quotas::one(*limit, *quota),
        _ => quotas,
    };
    let quotas = quotas.to_fields();
    // A request that is not HTTP gets a bare 400.
    let own = rejection.code().map(|_| {
        let own = own_fields(&request.id, route, names, &quotas);
        let fixed = FixedHeaders::new(&rules.response_headers, route, request.hsts);
        // What an error itself says prevails, for example that no cache stores it.
        let fixed = fixed.fields().filter(|(name, _)| !response.has(name));
        own.chain(cors_fields(rules, headers)).chain(fixed)
    });
    client.begin(head, own.into_iter().flatten().chain(response.fields()));
    response
}

/// The fields that let a page of another origin read a response; none if CORS is off.
pub(super) fn cors_fields<'a>(
    rules: &'a Rules,
    headers: &'a impl Headers,
) -> impl Iterator<Item = NameAndValue<'a>> {
    let fields = rules
        .cors
        .as_ref()
        .map(|cors| cors.response_fields(headers));
    fields.into_iter().flatten()
}

/// A head that is malformed or too large.
#[derive(Clone, Copy)]
pub(crate) struct UnparsedHead<'r> {
    /// The method; `-` if the request line cannot be parsed.
    pub method: &'r [u8],
    /// The path, `-` if the request line cannot be parsed; without the query.
    pub target: Target<'r>,
    /// The bytes that arrived of the head.
    pub received: &'r [u8],
}

/// What was learnt of a request until it failed.
#[derive(Default)]
pub(super) struct Failed<'f> {
    pub(super) learnt: Learnt<'f>,
    pub(super) quotas: Quotas,
    pub(super) sent: Sent,
}

//! Relays a backend's response to the client.

use std::time::Instant;

use signpost_protocol::header::{REFUSED_SECRET, X_GATEWAY_PROBLEM, X_GATEWAY_REFUSED};

use super::{Gateway, accepted::Accepted, request::Received, respond::cors_fields};
use crate::{
    observe::outcome::Sent,
    phases::{
        cors::is_of_cors,
        response::{FixedHeaders, own_fields, passes_to_client, sets_own_cookie},
        route::Route,
    },
    request::{
        Head,
        client::{Client, ResponseHead},
        rejection::Rejection,
    },
    upstream::{
        backend::{backend_head::BackendHead, failure::BackendFailure, upstream::Response},
        routing::destination::Destination,
        secret_rejections::SecretRejections,
    },
    wire::syntax::field::ConnectionOptions,
};

/// Limit of a problem code of a backend that is logged, in bytes.
const MAX_CODE_BYTES: usize = 64;

/// Relays a response to the client. A failure counts for its destination: those before are counted where they are retried.
pub(super) async fn relay_response<C: Client>(
    gateway: &Gateway,
    request: &mut Received<'_, Head>,
    accepted: &Accepted<'_>,
    (mut response, destination): (Response, &Destination<'_>),
    client: &mut C,
    sent: &mut Sent,
) -> Result<(), Rejection> {
    let failed = |failure: BackendFailure| {
        failure.cause().inspect(|cause| destination.count(*cause));
        Rejection::from(failure)
    };
    request.timing.begin_response();
    // Before the client gets a byte: the response of another request may hold another user's data.
    response.check_id(&request.id).map_err(failed)?;
    note_secret_rejected(
        &gateway.state.secret_rejections,
        accepted.route(),
        &response,
    )?;
    begin_response(gateway, request, accepted, &response, client, sent).map_err(failed)?;
    let route = accepted.route();
    let idle_seconds = route.backend().upstream.idle_seconds;
    let timeout = route.rules().stream.or(route.rules().response);
    let backends = &gateway.policy.backends.client;
    let relayed = backends.relay(response, (idle_seconds, timeout), client, &mut sent.size);
    relayed.await.map_err(failed)
}

/// Begins the client's response by the head of the backend's. Not async: what it needs would have room in the future of
/// every request.
fn begin_response<C: Client>(
    gateway: &Gateway,
    request: &Received<'_, Head>,
    accepted: &Accepted<'_>,
    response: &Response,
    client: &mut C,
    sent: &mut Sent,
) -> Result<(), BackendFailure> {
    let (rules, route) = (&gateway.policy.rules, accepted.route());
    let (head, bytes) = response.head();
    let quotas = accepted.quotas.to_fields();
    sent.problem = backend_problem(head, bytes);
    let names = &rules.admission.names;
    let life_cycle = route.life_cycle.as_deref();
    let nominated = ConnectionOptions::from_fields(head.fields(bytes));
    // Rejected, not cut: a hop-by-hop field that is named beyond the limit would otherwise pass to the client.
    if nominated.is_too_many() {
        return Err(BackendFailure::Malformed(
            "too many names in its Connection",
        ));
    }
    let kind = route.backend().name.kind();
    let fixed = FixedHeaders::new(&rules.response_headers, Some(route), request.hsts);
    let fixed = fixed.beside(head.fields(bytes));
    let passed = head
        .fields(bytes)
        .filter(|(name, _)| passes_to_client(name, &nominated, names))
        .filter(|field| !sets_own_cookie(kind, field))
        .filter(|(name, _)| rules.cors.is_none() || !is_of_cors(name))
        .filter(|(name, _)| life_cycle.is_none_or(|life_cycle| !life_cycle.replaces(name)))
        .filter(|(name, _)| !fixed.replaces(name));
    let own = own_fields(&request.id, Some(route), names, &quotas);
    let cors = cors_fields(rules, request.headers);
    let response_head = ResponseHead {
        status: head.status,
        reason: head.reason(bytes),
        body: head.body.into(),
    };
    sent.status = head.status;
    let fields = own.chain(cors).chain(passed).chain(fixed.fields());
    client.begin(response_head, fields);
    Ok(())
}

/// Turns a backend's rejection of the gateway's secret into one of the request: the client did nothing wrong. CONTRACT 9.
fn note_secret_rejected(
    rejections: &SecretRejections,
    route: &Route,
    response: &Response,
) -> Result<(), Rejection> {
    let (head, bytes) = response.head();
    let is_rejected = head.status == 403
        && head
            .value(bytes, X_GATEWAY_REFUSED.as_str())
            .is_some_and(|why| why == REFUSED_SECRET.as_bytes());
    let backend = &route.backend().name;
    if is_rejected {
        rejections.note(backend, response.address(), Instant::now());
        return Err(Rejection::GatewaySecretRejected);
    }
    // Every response passes here: the lock is taken only while some backend rejects the secret.
    if !rejections.is_empty() {
        rejections.remove(backend, response.address());
    }
    Ok(())
}

/// The problem code in a backend's response: a word of `[a-z0-9_]`, at most [`MAX_CODE_BYTES`] long.
fn backend_problem(head: &BackendHead, bytes: &[u8]) -> Option<Box<str>> {
    let is_of_code = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let code = head.value(bytes, X_GATEWAY_PROBLEM.as_str())?;
    let is_code = code.len() <= MAX_CODE_BYTES && code.iter().all(is_of_code);
    let code = std::str::from_utf8(code).ok().filter(|_| is_code)?;
    Some(code.into())
}

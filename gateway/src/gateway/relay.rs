//! Relays a backend's answer to the client.

use std::time::Instant;

use signpost_protocol::header::{REFUSED_SECRET, X_GATEWAY_PROBLEM, X_GATEWAY_REFUSED};

use super::{
    Gateway,
    received::{ForwardOutcome, ReceivedRequest},
};
use crate::{
    config::Backend,
    phases::{
        cors::is_of_cors,
        response::{is_of_login, own_fields, passes_to_client},
        route::Route,
    },
    request::{
        BodyLength, Head,
        client::{Client, ResponseHead},
        rejection::Rejection,
    },
    upstream::backend::{
        answer_head::{AnswerBody, AnswerHead},
        failure::Failure,
        upstream::Answer,
    },
    wire::syntax::field::ConnectionOptions,
};

/// Limit of a problem code of a backend that is logged, in bytes.
const MAX_CODE_BYTES: usize = 64;

impl Gateway {
    /// Relays an answer to the client.
    pub(super) async fn relay_answer<C: Client>(
        &self,
        request: &ReceivedRequest<'_, Head>,
        route: &Route,
        mut answer: Answer,
        client: &mut C,
        forwarded: &mut ForwardOutcome,
    ) -> Result<(), FailedAnswer> {
        let quotas = request.quotas.to_fields();
        forwarded.answered_at = request.step_time();
        answer.check_id(&request.id)?;
        let (head, bytes) = answer.head();
        self.note_secret_rejected(route, &answer)?;
        forwarded.problem = backend_problem(head, bytes);
        let names = &self.backend_headers.names;
        let life_cycle = route.backend.life_cycle.as_deref();
        let nominated = ConnectionOptions::from_fields(head.fields(bytes));
        if nominated.is_too_many() {
            return Err(Failure::Malformed("too many names in its Connection").into());
        }
        let is_of_route = route.backend.name.is_of_route();
        let passed = head
            .fields(bytes)
            .filter(|(name, _)| passes_to_client(name, &nominated, names))
            .filter(|field| !(is_of_route && is_of_login(field)))
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
    pub(super) fn counted(&self, backend: &Backend, failed: FailedAnswer) -> Rejection {
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
}

/// Why an answer whose head was read is not relayed, or not to its end.
#[derive(Debug)]
pub(super) enum FailedAnswer {
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

/// The problem code in a backend's answer: a word of `[a-z0-9_]`, at most [`MAX_CODE_BYTES`] long.
fn backend_problem(head: &AnswerHead, bytes: &[u8]) -> Option<String> {
    let is_of_code = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let code = head.value(bytes, X_GATEWAY_PROBLEM.as_str())?;
    let is_code = code.len() <= MAX_CODE_BYTES && code.iter().all(is_of_code);
    is_code
        .then(|| String::from_utf8(code.to_vec()).ok())
        .flatten()
}

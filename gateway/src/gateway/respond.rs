//! Responds without a backend: redirects to https, preflights, rejections.

use http::{StatusCode, header::LOCATION};
use signpost_kit::limits::QuotaExceeded;

use super::{
    Gateway,
    received::{ForwardOutcome, ReceivedRequest},
};
use crate::{
    observe::outcome::Outcome,
    phases::{
        cors::CorsRules,
        error_format::error_format,
        error_response::{error_response, reason},
        origin::{Peer, client_address},
        redirect::https_location,
        response::own_fields,
        route::Route,
    },
    request::{
        BodyLength, Head, Headers, RawHeaders,
        client::{Client, ResponseHead},
        quotas::Quotas,
        rejection::Rejection,
    },
    wire::syntax::field::NameAndValue,
};

impl Gateway {
    /// Answers a request on a listener with `redirect_to_https`.
    pub(super) async fn redirect_to_https<C: Client>(
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
    pub(super) async fn serve_preflight<C: Client>(
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
            responded_at: request.step_time(),
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

    /// Rejects a request that is not forwarded, or whose backend failed.
    pub(super) async fn reject<H: Headers, C: Client>(
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
                forwarded.responded_at = request.step_time();
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

    /// The fields that let a page of another origin read a response; none if CORS is off.
    pub(super) fn cors_fields<'a>(
        &'a self,
        headers: &'a impl Headers,
    ) -> impl Iterator<Item = NameAndValue<'a>> {
        let fields = self.cors.as_ref().map(|cors| cors.response_fields(headers));
        fields.into_iter().flatten()
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

/// A request that failed after it was routed.
#[derive(Clone, Copy)]
pub(super) struct FailedForward<'f> {
    pub(super) route: &'f Route,
    pub(super) forwarded: &'f ForwardOutcome,
}

//! Only the gateway may call. CONTRACT 9.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use gateway_protocol::header::{REFUSED_SECRET, X_GATEWAY_REFUSED, X_GATEWAY_SECRET};
use http::HeaderValue;

use super::take_body::closing;
use crate::{config::Gateway, error::LoginError, service::Serving};

/// Lets through what carries the gateway's secret; everything, if there is none, since then the address is
/// loopback.
///
/// What is refused is marked: a gateway that sees the mark knows that it is its own secret that is wrong, and not its
/// client's request.
pub(super) async fn require_gateway(
    State(serving): State<Serving>,
    request: Request,
    next: Next,
) -> Response {
    let is_trusted = match serving.service.config.gateway() {
        Gateway::Secret(secret) => secret.is(request.headers().get(X_GATEWAY_SECRET)),
        Gateway::Loopback | Gateway::Absent => true,
    };
    if is_trusted {
        next.run(request).await
    } else {
        // Nothing of the body was read, so the connection cannot go on.
        let mut refusal = closing(LoginError::GatewayRequired);
        let reason = HeaderValue::from_static(REFUSED_SECRET);
        refusal.headers_mut().insert(X_GATEWAY_REFUSED, reason);
        refusal
    }
}

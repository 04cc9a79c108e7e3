//! Rejects requests that do not come from the gateway. CONTRACT 9.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::HeaderValue;
use signpost_protocol::header::{REFUSED_SECRET, X_GATEWAY_REFUSED, X_GATEWAY_SECRET};

use super::buffer_body::closing_response;
use crate::{config::Gateway, error::LoginError, service::HandlerContext};

/// Passes on requests with the gateway's secret. Without a configured secret all pass, since `listen` is a loopback
/// address.
///
/// Rejections are marked with a header. It shows the gateway that its secret is wrong, and not the client's request.
pub(super) async fn require_gateway(
    State(context): State<HandlerContext>,
    request: Request,
    next: Next,
) -> Response {
    let is_trusted = match &context.service.config.gateway {
        Gateway::Secret(secret) => secret.matches(request.headers().get(X_GATEWAY_SECRET)),
        Gateway::Loopback | Gateway::Absent => true,
    };
    if is_trusted {
        next.run(request).await
    } else {
        // The body was not read, so the connection cannot be reused.
        let mut rejection = closing_response(LoginError::GatewayRequired);
        let reason = HeaderValue::from_static(REFUSED_SECRET);
        rejection.headers_mut().insert(X_GATEWAY_REFUSED, reason);
        rejection
    }
}

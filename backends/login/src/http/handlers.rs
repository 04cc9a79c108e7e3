//! The endpoints: read the parameters, call the flow, write the response.

pub(super) mod described;
mod health;
mod login;
mod results;
mod user;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Uri, header::CONTENT_TYPE};
use serde::Serialize;
use signpost_protocol::{
    header::{X_GATEWAY_BRIDGE, X_GATEWAY_VERSION_SOURCE},
    version::VersionSource,
};

pub(super) use self::{
    health::{healthz, hide_health, readyz},
    login::{begin_polling, login},
    results::{check, user_login},
    user::{event_send, user, user_logout, user_renew},
};
use super::Context;
use crate::error::{LoginError, PathSlip};

/// The response on a path that no endpoint has.
pub(super) async fn not_found(State(context): State<Context>, uri: Uri) -> LoginError {
    let slip = PathSlip::of(uri.path(), &context.version, &context.paths);
    LoginError::NotFound { slip }
}

/// `GET /openapi.json`: the version's document. Over a bridge it would be another version's.
pub(super) async fn openapi(
    State(context): State<Context>,
    headers: HeaderMap,
) -> Result<Response, LoginError> {
    if headers.contains_key(X_GATEWAY_BRIDGE) {
        return Err(LoginError::NotFound { slip: None });
    }
    let media_type = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let source = headers.get(X_GATEWAY_VERSION_SOURCE);
    let document = match source.is_some_and(|source| source == VersionSource::Header.as_str()) {
        true => context.document_by_name,
        false => context.document,
    };
    Ok((media_type, document).into_response())
}

/// A response of 200 with a version's JSON.
fn json(view: impl Serialize) -> Response {
    Json(view).into_response()
}

//! The endpoints: read the parameters, call the flow, write the response.

mod health;
mod login;
mod results;
mod user;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::Uri;
use serde::Serialize;

pub(super) use self::{
    health::{healthz, hide_health, readyz},
    login::{begin_polling, login},
    results::{check, user_login},
    user::{event_send, user, user_logout, user_renew},
};
use super::Context;
use crate::error::{LoginError, VersionInPath};

/// The response on a path that no endpoint has.
pub(super) async fn not_found(State(context): State<Context>, uri: Uri) -> LoginError {
    let version = VersionInPath::of(uri.path(), &context.version);
    LoginError::NotFound { version }
}

/// A response of 200 with a version's JSON.
fn json(view: impl Serialize) -> Response {
    Json(view).into_response()
}

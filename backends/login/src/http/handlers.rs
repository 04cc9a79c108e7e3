//! The endpoints: read the parameters, call the flow, write the response.

mod health;
mod login;
mod results;
mod user;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use serde::Serialize;

pub(super) use self::{
    health::{healthz, hide_health, readyz},
    login::{begin_polling, login},
    results::{check, user_login},
    user::{event_send, user, user_logout, user_renew},
};

/// A response of 200 with a version's JSON.
fn json(view: impl Serialize) -> Response {
    Json(view).into_response()
}

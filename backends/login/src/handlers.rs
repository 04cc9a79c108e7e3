//! One file per endpoint: each reads its parameters, takes a step of the flow, and writes the answer.

mod begin_polling;
mod begin_redirect;
mod callback;
mod check;
mod confirm;
mod event_send;
mod health;
mod login;
mod show_page;
mod user;
mod user_login;
mod user_logout;

use axum::response::{IntoResponse, Response};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{LOCATION, SET_COOKIE},
};
use url::Url;

pub(crate) use self::{
    begin_polling::begin_polling, check::check, event_send::event_send, health::healthz,
    health::readyz, login::login, user::user, user_login::user_login, user_logout::user_logout,
};
use crate::{error::LoginError, flow::SentOn};

/// 302 with a cookie.
fn sent_on(sent_on: SentOn) -> Result<Response, LoginError> {
    Ok((cookie(sent_on.set_cookie), found(&sent_on.url)?).into_response())
}

/// 302, as CONTRACT 8 has it: the browser goes on by GET.
fn found(url: &Url) -> Result<Response, LoginError> {
    let location = HeaderValue::from_str(url.as_str());
    let location = location.map_err(|_| LoginError::Internal {
        what: "a parsed address is no header value",
    })?;
    Ok((StatusCode::FOUND, [(LOCATION, location)]).into_response())
}

fn cookie(set_cookie: HeaderValue) -> [(HeaderName, HeaderValue); 1] {
    [(SET_COOKIE, set_cookie)]
}

//! The endpoints, one file each: read the parameters, call the flow, write the response.

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
use crate::{error::LoginError, flow::ProviderRedirect};

/// 302 to the provider, with the login's cookie.
fn redirect_to_provider(redirect: ProviderRedirect) -> Result<Response, LoginError> {
    Ok((cookie(redirect.set_cookie), redirect_to(&redirect.url)?).into_response())
}

/// 302, as CONTRACT 8 requires: the browser follows by GET.
fn redirect_to(url: &Url) -> Result<Response, LoginError> {
    let location = HeaderValue::from_str(url.as_str());
    let location = location.map_err(|_| LoginError::Internal {
        what: "a parsed URL is not a valid header value",
    })?;
    Ok((StatusCode::FOUND, [(LOCATION, location)]).into_response())
}

fn cookie(set_cookie: HeaderValue) -> [(HeaderName, HeaderValue); 1] {
    [(SET_COOKIE, set_cookie)]
}

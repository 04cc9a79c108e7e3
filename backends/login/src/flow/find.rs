//! Finds the login that a browser's request names by its `state`, and checks that the browser may continue it.

use std::sync::Arc;

use signpost_kit::clock::Timestamp;
use signpost_protocol::app::AppId;

use super::{
    BrowserOutcome, BrowserRequest,
    outcome::{CallbackLogin, outcome_again},
};
use crate::{
    error::LoginError,
    records::{
        applications::Application,
        logins::{BrowserCookie, Choice, Login, LoginCookie, LoginState, Mode, Status},
    },
    service::Service,
};

/// What a callback finds.
pub(super) enum Found {
    /// A login that it may finish.
    Login(Box<CallbackLogin>),
    /// This browser is finishing the login, or has finished it.
    Finished(BrowserOutcome),
}

/// Finds the stored polling login that a request names, and its application.
pub(super) async fn find_login(
    service: &Service,
    request: &BrowserRequest<'_>,
) -> Result<(Login, Arc<Application>), LoginError> {
    let state = parse_state(request)?;
    let found = service.state.logins.find(state.hash()).await?;
    let login = found.filter(|login| login.state == state);
    let login = login.ok_or(LoginError::LoginUnknown)?;
    let application = application_of(service, request, login.application).await?;
    Ok((login, application))
}

/// Finds the login of a callback: a redirect login in the browser's cookie, a polling login in the store.
pub(super) async fn find_callback_login(
    service: &Service,
    request: &BrowserRequest<'_>,
) -> Result<Found, LoginError> {
    match find_redirect_login(service, request).await? {
        Some(found) => Ok(found),
        None => find_polling_login(service, request).await,
    }
}

/// Finds the redirect login that a request names, in the browser's cookie; `None` if the `state` is a polling login's.
pub(super) async fn find_redirect_login(
    service: &Service,
    request: &BrowserRequest<'_>,
) -> Result<Option<Found>, LoginError> {
    let state = parse_state(request)?;
    match service.state.seal().await?.expiry_of(&state) {
        Some(expires_at) => open_redirect_login(service, request, state, expires_at)
            .await
            .map(Some),
        None => Ok(None),
    }
}

async fn open_redirect_login(
    service: &Service,
    request: &BrowserRequest<'_>,
    state: LoginState,
    expires_at: Timestamp,
) -> Result<Found, LoginError> {
    let sent = BrowserCookie::of(&state, &service.config.public_url);
    let now = service.now();
    let has_expired = now >= expires_at;
    let seal = service.state.seal().await?;
    let value = sent.value(request.headers);
    let Some(sealed) = value.and_then(|value| seal.open(&state, value)) else {
        // This browser has finished the login, or it is another browser.
        let Some(stored) = service.state.logins.find(state.hash()).await? else {
            return Err(match has_expired {
                true => LoginError::LoginExpired,
                false => LoginError::LoginMismatch,
            });
        };
        let application = application_of(service, request, stored.application).await?;
        let sent = value.and_then(LoginCookie::decode);
        let outcome = outcome_again(request, &stored, sent.as_ref(), &application, now);
        return outcome.map(Found::Finished).ok_or(LoginError::LoginUsed);
    };
    let application = application_of(service, request, sealed.application).await?;
    if has_expired {
        return Err(LoginError::LoginExpired);
    }
    let login = Login {
        state,
        application: sealed.application,
        mode: Mode::Redirect {
            return_to: sealed.return_to,
        },
        provider: sealed.provider.map_or(Choice::Users(None), Choice::Fixed),
        hints: sealed.hints,
        cookie: Some(sealed.cookie.hash()),
        expires_at,
        status: Status::Pending,
    };
    Ok(Found::Login(Box::new(CallbackLogin {
        login,
        application,
        challenge: sealed.challenge,
        cookie: sealed.cookie,
    })))
}

async fn find_polling_login(
    service: &Service,
    request: &BrowserRequest<'_>,
) -> Result<Found, LoginError> {
    let (login, application) = find_login(service, request).await?;
    let sent = sent_cookie(service, request, &login);
    let now = service.now();
    if let Some(outcome) = outcome_again(request, &login, sent.as_ref(), &application, now) {
        return Ok(Found::Finished(outcome));
    }
    ensure_pending(&login, now)?;
    let cookie = sent
        .filter(|cookie| login.is_bound_to(cookie))
        .ok_or(LoginError::LoginMismatch)?;
    Ok(Found::Login(Box::new(CallbackLogin {
        login,
        application,
        challenge: None,
        cookie,
    })))
}

/// The cookie that the browser sent for a polling login.
pub(super) fn sent_cookie(
    service: &Service,
    request: &BrowserRequest<'_>,
    login: &Login,
) -> Option<LoginCookie> {
    let sent = BrowserCookie::of(&login.state, &service.config.public_url);
    LoginCookie::decode(sent.value(request.headers)?)
}

/// Checks that the login is pending, so that the browser can continue it.
pub(super) fn ensure_pending(login: &Login, now: Timestamp) -> Result<(), LoginError> {
    match login.status {
        Status::Exchanging(_) | Status::Complete(_) | Status::Failed { .. } => {
            Err(LoginError::LoginUsed)
        }
        Status::Pending if now >= login.expires_at => Err(LoginError::LoginExpired),
        Status::Pending => Ok(()),
    }
}

/// Parses `state`. CONTRACT 5: a state of an unknown version arrives at the default route, which rejects it.
fn parse_state(request: &BrowserRequest<'_>) -> Result<LoginState, LoginError> {
    LoginState::decode(request.state)
        .filter(|state| state.version() == request.version)
        .ok_or(LoginError::LoginUnknown)
}

/// The application of a login. A signed request finds those of its own application only.
async fn application_of(
    service: &Service,
    request: &BrowserRequest<'_>,
    id: AppId,
) -> Result<Arc<Application>, LoginError> {
    let found = match request.application {
        Some(named) if named != id => None,
        _ => service.active_application(id).await?,
    };
    found.ok_or(LoginError::LoginUnknown)
}

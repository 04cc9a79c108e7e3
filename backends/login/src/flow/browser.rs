//! A polling login in the browser: its page, and the button on the page.

use std::sync::Arc;

use super::{
    BrowserRequest, BrowserStep, Page, ProviderRedirect,
    find::{ensure_pending, find_login, sent_cookie},
    finish::{Grant, find_outcome, finish_or_find},
    outcome::{CallbackLogin, outcome_again},
};
use crate::{
    error::LoginError,
    provider::Provider,
    records::logins::{BrowserCookie, FailureReason, Login, LoginCookie, Mode},
    service::Service,
};

/// Shows the page of a polling login.
///
/// Writes nothing to the store, so that a link preview does not disturb a browser that is already at the provider. Each
/// browser that has the page can confirm; only the browser that confirmed last can complete the login.
pub(crate) async fn show_page(
    service: &Service,
    request: &BrowserRequest<'_>,
) -> Result<BrowserStep, LoginError> {
    let (login, application) = find_login(service, request).await?;
    let Mode::Polling { user_code } = &login.mode else {
        return Err(LoginError::LoginUnknown);
    };
    let now = service.now();
    let sent = sent_cookie(service, request, &login);
    if let Some(outcome) = outcome_again(request, &login, sent.as_ref(), &application, now) {
        return Ok(outcome.into());
    }
    ensure_pending(&login, now)?;
    let provider = configured_provider(service, &login)?;
    let cookie = sent.unwrap_or_else(LoginCookie::generate);
    if !service.config.polling.confirm {
        let redirect = redirect_to_provider(service, &login, provider, &cookie).await?;
        return Ok(BrowserStep::Redirect(redirect));
    }
    Ok(BrowserStep::Page(Page {
        application,
        user_code: user_code.clone(),
        provider: provider.config.name.to_string(),
        state: login.state.encode(),
        confirm: cookie.confirm(),
        cancel: cookie.cancel(),
        set_cookie: BrowserCookie::of(&login.state, &service.config.public_url)
            .set(&cookie.encode(), login.expires_at.seconds_from(now)),
    }))
}

/// Handles the page's button, and its link that cancels the login. Both work only in the browser that has the page,
/// since `confirm` must match the cookie.
pub(crate) async fn confirm(
    service: &Arc<Service>,
    request: &BrowserRequest<'_>,
    confirm: &str,
) -> Result<BrowserStep, LoginError> {
    let (login, application) = find_login(service, request).await?;
    let (sent, now) = (sent_cookie(service, request, &login), service.now());
    let is_cancel = sent
        .as_ref()
        .is_some_and(|sent| sent.is_cancelled_by(confirm));
    if let Some(outcome) = outcome_again(request, &login, sent.as_ref(), &application, now) {
        return Ok(outcome.of_link(is_cancel).into());
    }
    ensure_pending(&login, now)?;
    let cookie = sent.ok_or(LoginError::LoginMismatch)?;
    if cookie.is_confirmed_by(confirm) {
        let provider = configured_provider(service, &login)?;
        let redirect = redirect_to_provider(service, &login, provider, &cookie).await?;
        return Ok(BrowserStep::Redirect(redirect));
    }
    if !is_cancel {
        return Err(LoginError::LoginMismatch);
    }
    // As if this browser had been at the provider, and the user had denied access there.
    let denied = Grant::Refused(FailureReason::AccessDenied);
    let cancelled = CallbackLogin {
        login,
        application,
        cookie,
    };
    let ended = match bind(service, &cancelled.login, &cancelled.cookie).await {
        Ok(()) => finish_or_find(service, request, &cancelled, denied).await?,
        Err(LoginError::LoginUsed) => find_outcome(service, request, &cancelled).await?,
        Err(error) => return Err(error),
    };
    Ok(ended.outcome.of_link(true).into())
}

/// Binds the login to the browser with this cookie; fails if a callback has claimed the login.
async fn bind(service: &Service, login: &Login, cookie: &LoginCookie) -> Result<(), LoginError> {
    let (store, state) = (&service.state.logins, login.state.hash());
    let is_bound = store.bind(state, &cookie.hash(), service.now()).await?;
    is_bound.then_some(()).ok_or(LoginError::LoginUsed)
}

/// Binds the login to the browser with this cookie, and redirects the browser to the provider.
async fn redirect_to_provider(
    service: &Service,
    login: &Login,
    provider: &Provider,
    cookie: &LoginCookie,
) -> Result<ProviderRedirect, LoginError> {
    bind(service, login, cookie).await?;
    let remaining = login.expires_at.seconds_from(service.now());
    Ok(ProviderRedirect {
        url: provider.authorize_url(&login.state, cookie),
        set_cookie: BrowserCookie::of(&login.state, &service.config.public_url)
            .set(&cookie.encode(), remaining),
    })
}

fn configured_provider<'a>(
    service: &'a Service,
    login: &Login,
) -> Result<&'a Provider, LoginError> {
    let missing = LoginError::Internal {
        what: "the login's provider is no longer configured",
    };
    service.providers.find(&login.provider).ok_or(missing)
}

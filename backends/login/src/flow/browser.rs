//! A polling login in the browser: its page, and the button on the page.

use std::sync::Arc;

use http::HeaderValue;

use super::{
    BrowserOutcome, BrowserRequest, ProviderRedirect,
    find::{ensure_pending, find_login, sent_cookie},
    finish::finish_cancelled,
    outcome::{CallbackLogin, outcome_again},
};
use crate::{
    error::LoginError,
    provider::Provider,
    records::{
        applications::Application,
        logins::{BrowserCookie, Login, LoginCookie, Mode, UserCode},
    },
    service::Service,
};

/// The result of opening a polling login's URL.
pub(crate) enum PageOrRedirect {
    /// The page that asks the user to confirm.
    Page(Page),
    /// With `polling.confirm = false`: a redirect to the provider.
    Redirect(ProviderRedirect),
    /// This browser is finishing the login, or has finished it.
    Finished(BrowserOutcome),
}

/// The result of a link on the page.
pub(crate) enum Decision {
    /// The button: the browser continues at the provider.
    Confirmed(ProviderRedirect),
    /// The login was cancelled, or this browser is finishing it, or has finished it.
    Finished(BrowserOutcome),
}

/// The contents of the page.
pub(crate) struct Page {
    pub(crate) application: Arc<Application>,
    pub(crate) user_code: UserCode,
    pub(crate) provider: String,
    /// The `state` of both links, and the `confirm` of each.
    pub(crate) state: String,
    pub(crate) confirm: String,
    pub(crate) cancel: String,
    pub(crate) set_cookie: HeaderValue,
}

/// Shows the page of a polling login.
///
/// Writes nothing to the store, so that a link preview does not disturb a browser that is already at the provider. Each
/// browser that has the page can confirm; only the browser that confirmed last can complete the login.
pub(crate) async fn show_page(
    service: &Service,
    request: &BrowserRequest<'_>,
) -> Result<PageOrRedirect, LoginError> {
    let (login, application) = find_login(service, request).await?;
    let Mode::Polling { user_code } = &login.mode else {
        return Err(LoginError::LoginUnknown);
    };
    let now = service.now();
    let sent = sent_cookie(service, request, &login);
    if let Some(outcome) = outcome_again(request, &login, sent.as_ref(), &application, now) {
        return Ok(PageOrRedirect::Finished(outcome));
    }
    ensure_pending(&login, now)?;
    let provider = configured_provider(service, &login)?;
    if !service.config.polling.confirm {
        let redirect = redirect_to_provider(service, &login, provider).await?;
        return Ok(PageOrRedirect::Redirect(redirect));
    }
    let cookie = LoginCookie::generate();
    Ok(PageOrRedirect::Page(Page {
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
) -> Result<Decision, LoginError> {
    let (login, application) = find_login(service, request).await?;
    let (sent, now) = (sent_cookie(service, request, &login), service.now());
    if let Some(outcome) = outcome_again(request, &login, sent.as_ref(), &application, now) {
        return Ok(Decision::Finished(outcome));
    }
    ensure_pending(&login, now)?;
    let cookie = sent.ok_or(LoginError::LoginMismatch)?;
    if cookie.is_confirmed_by(confirm) {
        let provider = configured_provider(service, &login)?;
        let redirect = redirect_to_provider(service, &login, provider).await?;
        return Ok(Decision::Confirmed(redirect));
    }
    if !cookie.is_cancelled_by(confirm) {
        return Err(LoginError::LoginMismatch);
    }
    // As if this browser had been at the provider, and the user had denied access there.
    bind(service, &login, &cookie).await?;
    let cancelled = CallbackLogin {
        login,
        application,
        cookie,
    };
    let outcome = finish_cancelled(service, request.client, cancelled).await?;
    Ok(Decision::Finished(outcome))
}

/// Binds the login to the browser with this cookie; fails if a callback has claimed the login.
async fn bind(service: &Service, login: &Login, cookie: &LoginCookie) -> Result<(), LoginError> {
    let (store, state) = (&service.state.logins, login.state.hash());
    let is_bound = store.bind(state, &cookie.hash(), service.now()).await?;
    is_bound.then_some(()).ok_or(LoginError::LoginUsed)
}

/// Binds the login to a new cookie, and redirects the browser to the provider.
async fn redirect_to_provider(
    service: &Service,
    login: &Login,
    provider: &Provider,
) -> Result<ProviderRedirect, LoginError> {
    let cookie = LoginCookie::generate();
    bind(service, login, &cookie).await?;
    let remaining = login.expires_at.seconds_from(service.now());
    Ok(ProviderRedirect {
        url: provider.authorize_url(&login.state, &cookie),
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

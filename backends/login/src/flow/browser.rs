//! A polling login in the browser: its page, and the button on the page.

use std::sync::Arc;

use http::HeaderValue;

use super::{
    BrowserRequest, ProviderRedirect,
    find::{ensure_pending, find_login, sent_cookie},
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
}

/// The contents of the page.
pub(crate) struct Page {
    pub(crate) application: Arc<Application>,
    pub(crate) user_code: UserCode,
    pub(crate) provider: String,
    /// The `state` and `confirm` of the button's URL.
    pub(crate) state: String,
    pub(crate) confirm: String,
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
        set_cookie: BrowserCookie::of(&login.state, &service.config.public_url)
            .set(&cookie.encode(), login.expires_at.seconds_from(now)),
    }))
}

/// Handles the page's button. It works only in the browser that has the page, since `confirm` must match the cookie.
pub(crate) async fn confirm(
    service: &Service,
    request: &BrowserRequest<'_>,
    confirm: &str,
) -> Result<ProviderRedirect, LoginError> {
    let (login, _) = find_login(service, request).await?;
    ensure_pending(&login, service.now())?;
    sent_cookie(service, request, &login)
        .filter(|cookie| cookie.is_confirmed_by(confirm))
        .ok_or(LoginError::LoginMismatch)?;
    redirect_to_provider(service, &login, configured_provider(service, &login)?).await
}

/// Binds the login to a new cookie, and redirects the browser to the provider; fails if a callback has claimed the
/// login.
async fn redirect_to_provider(
    service: &Service,
    login: &Login,
    provider: &Provider,
) -> Result<ProviderRedirect, LoginError> {
    let cookie = LoginCookie::generate();
    let now = service.now();
    let (store, state) = (&service.state.logins, login.state.hash());
    if !store.bind(state, &cookie.hash(), now).await? {
        return Err(LoginError::LoginUsed);
    }
    Ok(ProviderRedirect {
        url: provider.authorize_url(&login.state, &cookie),
        set_cookie: BrowserCookie::of(&login.state, &service.config.public_url)
            .set(&cookie.encode(), login.expires_at.seconds_from(now)),
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

//! A polling login in the browser: its page, and the button on it.

use std::sync::Arc;

use http::HeaderValue;

use super::{SentOn, Visit, locate, must_be_open};
use crate::{
    applications::Application,
    error::LoginError,
    logins::{Login, LoginCookie, Mode, UserCode},
    oauth::Provider,
    service::Service,
};

/// What opening a polling login's address leads to.
pub(crate) enum Shown {
    /// The page that asks.
    Page(Page),
    /// `polling.confirm = false`: on to the provider at once.
    SentOn(SentOn),
}

/// What the page says, and what its button does.
pub(crate) struct Page {
    pub(crate) application: Arc<Application>,
    pub(crate) user_code: UserCode,
    pub(crate) provider: String,
    /// The `state` and `confirm` of the button's address.
    pub(crate) state: String,
    pub(crate) confirm: String,
    pub(crate) set_cookie: HeaderValue,
}

/// Somebody opens a polling login's address.
///
/// Changes nothing in the store: a link preview that opens the page does not disturb a browser that is at the provider
/// already. Any browser that was shown the page may confirm; the one that confirmed last may complete.
pub(crate) async fn show_page(service: &Service, visit: &Visit<'_>) -> Result<Shown, LoginError> {
    let (login, application) = locate(service, visit).await?;
    let Mode::Polling { user_code } = &login.mode else {
        return Err(LoginError::LoginUnknown);
    };
    let now = service.now();
    must_be_open(&login, now)?;
    let provider = provider_of(service, &login)?;
    if !service.config.polling().confirm {
        return send_on(service, &login, provider).await.map(Shown::SentOn);
    }
    let cookie = LoginCookie::generate();
    Ok(Shown::Page(Page {
        application,
        user_code: user_code.clone(),
        provider: provider.config().name.to_string(),
        state: login.state.encode(),
        confirm: cookie.confirm(),
        set_cookie: cookie.set(
            &login.state,
            service.config.public_url(),
            now,
            login.expires_at,
        ),
    }))
}

/// Somebody presses the page's button: only good in the browser that the page was shown in.
pub(crate) async fn confirm(
    service: &Service,
    visit: &Visit<'_>,
    confirm: &str,
) -> Result<SentOn, LoginError> {
    let (login, _) = locate(service, visit).await?;
    must_be_open(&login, service.now())?;
    LoginCookie::of_request(visit.headers, &login.state, service.config.public_url())
        .filter(|cookie| cookie.is_confirmed_by(confirm))
        .ok_or(LoginError::LoginMismatch)?;
    send_on(service, &login, provider_of(service, &login)?).await
}

/// Sends the browser to the provider with a new cookie, unless the login was finished meanwhile.
async fn send_on(
    service: &Service,
    login: &Login,
    provider: &Provider,
) -> Result<SentOn, LoginError> {
    let cookie = LoginCookie::generate();
    let now = service.now();
    let is_bound = service
        .state
        .logins
        .store()
        .bind(login.state.hash(), &cookie.hash(), now)
        .await?;
    if !is_bound {
        return Err(LoginError::LoginUsed);
    }
    Ok(SentOn {
        url: provider.authorize_url(&login.state, &cookie),
        set_cookie: cookie.set(
            &login.state,
            service.config.public_url(),
            now,
            login.expires_at,
        ),
    })
}

fn provider_of<'a>(service: &'a Service, login: &Login) -> Result<&'a Provider, LoginError> {
    let gone = LoginError::Internal {
        what: "the login's provider is configured no more",
    };
    service.providers.find(&login.provider).ok_or(gone)
}

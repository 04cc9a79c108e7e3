//! A login's page in the browser, its buttons, and the choice of a provider.

use std::sync::Arc;

use super::{
    BrowserRequest, BrowserStep, Button, Page, PollingPage, Redirect,
    begin::{authorize_url, named_provider, send_to},
    find::{Found, ensure_pending, find_login, find_redirect_login, sent_cookie},
    finish::{Grant, find_outcome, finish_or_find},
    outcome::{CallbackLogin, outcome_again},
    refusal::Refusal,
};
use crate::{
    config::{ProviderName, SameNetwork},
    error::LoginError,
    metrics::providers::LoginMode,
    provider::Provider,
    records::logins::{BrowserCookie, Choice, Login, LoginCookie, Mode, SealedRedirect},
    service::Service,
};

/// Shows the page of a login. A redirect login has one only until its provider is known: then the browser goes on to it.
///
/// Writes nothing to the store, so that a link preview does not disturb a browser that is already at the provider. Each
/// browser that has the page of a polling login can confirm; only the browser that confirmed last can complete the login.
pub(crate) async fn show_page(
    service: &Service,
    request: &BrowserRequest<'_>,
) -> Result<BrowserStep, LoginError> {
    match find_redirect_login(service, request).await? {
        Some(Found::Login(login)) => return redirect_page(service, &login).await,
        Some(Found::Finished(outcome)) => return Ok(outcome.into()),
        None => {}
    }
    let (login, application) = find_login(service, request).await?;
    let Mode::Polling { user_code, begun } = &login.mode else {
        return Err(LoginError::LoginUnknown);
    };
    let now = service.now();
    let sent = sent_cookie(service, request, &login);
    if let Some(outcome) = outcome_again(request, &login, sent.as_ref(), &application, now) {
        return Ok(outcome.into());
    }
    ensure_pending(&login, now)?;
    let cookie = sent.unwrap_or_else(LoginCookie::generate);
    let fixed = match &login.provider {
        Choice::Fixed(name) => Some(name),
        Choice::Users(_) => None,
    };
    let providers = buttons(service, fixed)?;
    // Only the page warns.
    let is_elsewhere = begun.is_near(request.client) == Some(false);
    let confirm = service.config.polling.confirm
        || (is_elsewhere && service.config.same_network == SameNetwork::Warn);
    if let (Some(name), false) = (fixed, confirm) {
        let provider = configured_provider(service, name)?;
        let redirect = redirect_to_provider(service, request, &login, provider, &cookie).await?;
        return Ok(BrowserStep::Redirect(redirect));
    }
    let value = match login.is_bound_to(&cookie) {
        true => cookie.encode_confirmed(),
        false => cookie.encode(),
    };
    Ok(BrowserStep::Page(Page {
        application,
        providers,
        state: login.state.encode(),
        polling: Some(PollingPage {
            user_code: user_code.clone(),
            age_minutes: now.seconds_from(begun.at) / 60,
            network: begun.network.clone(),
            is_elsewhere,
            confirm: cookie.confirm(),
            cancel: cookie.cancel(),
            set_cookie: BrowserCookie::of(&login.state, &service.config.public_url)
                .set(&value, login.expires_at.seconds_from(now)),
            user_chooses: fixed.is_none(),
        }),
    }))
}

/// The page of a redirect login, where the user chooses a provider. If there is one already, it was unavailable before, and
/// the browser is sent to it again.
async fn redirect_page(
    service: &Service,
    CallbackLogin {
        login,
        application,
        cookie,
        ..
    }: &CallbackLogin,
) -> Result<BrowserStep, LoginError> {
    let Some(name) = login.provider.provider() else {
        return Ok(BrowserStep::Page(Page {
            application: Arc::clone(application),
            providers: buttons(service, None)?,
            state: login.state.encode(),
            polling: None,
        }));
    };
    let provider = configured_provider(service, name)?;
    let url = authorize_url(service, provider, (&login.state, cookie, &login.hints)).await?;
    Ok(BrowserStep::Again(url))
}

/// Sends the browser of a redirect login to the provider that the user has chosen on the page. The login goes on under a
/// state of its own, which has the choice: the user can go back to the page, and choose again.
pub(crate) async fn choose(
    service: &Service,
    request: &BrowserRequest<'_>,
    name: &str,
) -> Result<BrowserStep, LoginError> {
    let CallbackLogin {
        login, challenge, ..
    } = match find_redirect_login(service, request).await? {
        Some(Found::Login(login)) => *login,
        Some(Found::Finished(outcome)) => return Ok(outcome.into()),
        // The page of a polling login sends `confirm`, too.
        None => {
            find_login(service, request).await?;
            return Err(LoginError::LoginMismatch);
        }
    };
    let provider = named_provider(service, name)?;
    let (Choice::Users(None), Mode::Redirect { return_to }) = (&login.provider, login.mode) else {
        return Err(LoginError::LoginMismatch);
    };
    let chosen = SealedRedirect {
        application: login.application,
        provider: Some(provider.config.name.clone()),
        hints: login.hints,
        return_to,
        challenge,
        cookie: LoginCookie::generate(),
    };
    let (version, expires_at) = (login.state.version(), login.expires_at);
    let redirect = send_to(service, Some(provider), version, &chosen, expires_at).await?;
    Ok(BrowserStep::Redirect(redirect))
}

/// Handles a button of the page, and its link that cancels the login. All work only in the browser that has the page,
/// since `confirm` must match the cookie.
pub(crate) async fn confirm(
    service: &Arc<Service>,
    request: &BrowserRequest<'_>,
    confirm: &str,
    chosen: Option<&str>,
) -> Result<BrowserStep, LoginError> {
    match find_redirect_login(service, request).await? {
        // Its page has no such link.
        Some(Found::Login(_)) => return Err(LoginError::LoginMismatch),
        Some(Found::Finished(outcome)) => return Ok(outcome.into()),
        None => {}
    }
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
        let provider = match (&login.provider, chosen) {
            (Choice::Fixed(name), _) => configured_provider(service, name)?,
            (Choice::Users(_), Some(name)) => named_provider(service, name)?,
            (Choice::Users(_), None) => return Err(LoginError::NO_PROVIDER),
        };
        let redirect = redirect_to_provider(service, request, &login, provider, &cookie).await?;
        return Ok(BrowserStep::Redirect(redirect));
    }
    if !is_cancel {
        return Err(LoginError::LoginMismatch);
    }
    // As if this browser had been at the provider, and the user had denied access there.
    let denied = Grant::Refused(Refusal::Denied);
    let cancelled = CallbackLogin {
        login,
        application,
        challenge: None,
        cookie,
    };
    let ended = match bind(service, &cancelled.login, &cancelled.cookie, None).await {
        Ok(()) => finish_or_find(service, request, &cancelled, denied).await?,
        Err(LoginError::LoginUsed) => find_outcome(service, request, &cancelled).await?,
        Err(error) => return Err(error),
    };
    Ok(ended.outcome.of_link(true).into())
}

/// The buttons of a page: of the one provider, or of all.
fn buttons(service: &Service, only: Option<&ProviderName>) -> Result<Vec<Button>, LoginError> {
    let button = |provider: &Provider| Button {
        name: provider.config.name.clone(),
        label: provider.config.label.clone(),
    };
    Ok(match only {
        Some(name) => vec![button(configured_provider(service, name)?)],
        None => service.providers.all().map(button).collect(),
    })
}

/// Binds the login to the browser with this cookie; fails if a callback has claimed the login.
async fn bind(
    service: &Service,
    login: &Login,
    cookie: &LoginCookie,
    chosen: Option<&ProviderName>,
) -> Result<(), LoginError> {
    let (store, state) = (&service.state.logins, login.state.hash());
    let is_bound = store
        .bind(state, &cookie.hash(), chosen, service.now())
        .await?;
    is_bound.then_some(()).ok_or(LoginError::LoginUsed)
}

/// Binds a polling login to the browser with this cookie, and redirects the browser to the provider.
async fn redirect_to_provider(
    service: &Service,
    request: &BrowserRequest<'_>,
    login: &Login,
    provider: &Provider,
    cookie: &LoginCookie,
) -> Result<Redirect, LoginError> {
    // What cannot be compared is refused, too: who begins a login chooses between IPv4 and IPv6.
    if let Mode::Polling { begun, .. } = &login.mode
        && service.config.same_network == SameNetwork::Require
        && begun.is_near(request.client) != Some(true)
    {
        return Err(LoginError::NetworkMismatch);
    }
    let url = authorize_url(service, provider, (&login.state, cookie, &login.hints)).await?;
    let name = &provider.config.name;
    let chosen = matches!(login.provider, Choice::Users(_)).then_some(name);
    bind(service, login, cookie, chosen).await?;
    if let Choice::Users(before) = &login.provider
        && before.as_ref() != Some(name)
    {
        provider.metrics.count_begun(LoginMode::Polling);
    }
    let remaining = login.expires_at.seconds_from(service.now());
    Ok(Redirect {
        url,
        set_cookie: BrowserCookie::of(&login.state, &service.config.public_url)
            .set(&cookie.encode_confirmed(), remaining),
    })
}

fn configured_provider<'a>(
    service: &'a Service,
    name: &ProviderName,
) -> Result<&'a Provider, LoginError> {
    let missing = LoginError::Internal {
        what: "the login's provider is no longer configured",
    };
    service.providers.find(name).ok_or(missing)
}

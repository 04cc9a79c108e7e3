//! Begins a login: a redirect login for a browser, or a polling login for a client.

use std::net::IpAddr;

use serde::Serialize;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{challenge::Challenge, version::Version};
use url::Url;
use utoipa::ToSchema;

use super::{Redirect, finish::provider_failed, return_to};
use crate::{
    error::{LoginError, ParamRule},
    metrics::providers::LoginMode,
    provider::Provider,
    records::{
        applications::Application,
        logins::{
            Begun, BrowserCookie, Choice, Hints, Login, LoginCookie, LoginState, LoginToken, Mode,
            SealedRedirect, Status, UserCode,
        },
    },
    service::Service,
};

/// A request to begin a login.
pub(crate) struct LoginRequest<'a> {
    /// The version that serves the request. It is the issuer of the login.
    pub(crate) version: &'a Version,
    /// The application that the user logs in to.
    pub(crate) application: &'a Application,
    /// The requested provider, if any.
    pub(crate) provider: Option<&'a str>,
    /// What goes on to the provider.
    pub(crate) hints: Hints,
}

// It has a secret, so it cannot be printed.
/// A polling login that has begun: the client keeps the token, shows the code, and opens the address in a browser. No other
/// response contains the token.
#[derive(Serialize, ToSchema)]
pub struct PollingLogin {
    /// The secret by which the client asks for the outcome.
    pub token: String,
    /// The address that the user opens.
    pub authorize_url: String,
    /// The code that client and page show.
    pub user_code: String,
    /// Seconds until the login expires.
    pub expires_in: u64,
    /// Seconds to wait between two checks without `wait`.
    pub interval: u64,
}

/// Begins a redirect login: sends the browser to the provider, or to the page where the user chooses one if `can_choose`.
///
/// Writes nothing to the store: anyone can send such requests, and rows would let them fill it.
pub(crate) async fn begin_redirect(
    service: &Service,
    login_request: LoginRequest<'_>,
    (return_to, challenge): (Option<&str>, Option<Challenge>),
    can_choose: bool,
) -> Result<Redirect, LoginError> {
    let provider = requested_provider(service, login_request.provider)?;
    if provider.is_none() && !can_choose {
        return Err(LoginError::NO_PROVIDER);
    }
    // Checked now, so that no user logs in in vain; and once more at the end, since the origin may be gone by then.
    let allowed = &login_request.application.return_to;
    let parse = |text| return_to::parse(text, allowed).ok_or(LoginError::ReturnToNotAllowed);
    let return_to: Option<Url> = return_to.map(parse).transpose()?;
    let login = SealedRedirect {
        application: login_request.application.id,
        provider: provider.map(|provider| provider.config.name.clone()),
        hints: login_request.hints,
        return_to,
        challenge,
        cookie: LoginCookie::generate(),
    };
    let expires_at = service.now().plus(service.config.lifetimes.login);
    send_to(service, provider, login_request.version, &login, expires_at).await
}

/// Seals a redirect login under a new state, and sends the browser to its provider, or to its page without one.
pub(super) async fn send_to(
    service: &Service,
    provider: Option<&Provider>,
    version: &Version,
    login: &SealedRedirect,
    expires_at: Timestamp,
) -> Result<Redirect, LoginError> {
    let seal = service.state.seal().await?;
    let state = seal.issue_state(version, expires_at);
    // Before anything is sealed: while an OpenID provider has published nothing, the browser gets an error and no
    // cookie.
    let url = match provider {
        Some(provider) => {
            let login = (&state, &login.cookie, &login.hints);
            let url = authorize_url(provider, login).await?;
            provider.metrics.count_begun(LoginMode::Redirect);
            url
        }
        None => service.config.public_url.page(&state.encode()),
    };
    let sealed = seal.seal(&state, login);
    let remaining = expires_at.seconds_from(service.now());
    Ok(Redirect {
        url,
        set_cookie: BrowserCookie::of(&state, &service.config.public_url).set(&sealed, remaining),
    })
}

/// Where the browser of a login goes at its provider. A fault is logged, and the login goes on.
pub(super) async fn authorize_url(
    provider: &Provider,
    (state, cookie, hints): (&LoginState, &LoginCookie, &Hints),
) -> Result<Url, LoginError> {
    let url = provider.authorize_url(state, cookie, hints).await;
    url.map_err(|fault| provider_failed(provider, &fault))
}

/// Begins a polling login: the client receives a token, and a URL to open in any browser.
pub(crate) async fn begin_polling(
    service: &Service,
    login_request: LoginRequest<'_>,
    client: IpAddr,
) -> Result<PollingLogin, LoginError> {
    let provider = requested_provider(service, login_request.provider)?;
    // Before anything is stored: each login leaves a row for a while.
    let (application, instant) = (login_request.application.id, service.state.clock.instant());
    service.limits.count_start(application, instant)?;
    let (token, user_code) = (
        LoginToken::generate(login_request.version),
        UserCode::generate(),
    );
    let now = service.now();
    let config = &service.config;
    let login = Login {
        state: token.state(),
        application,
        mode: Mode::Polling {
            user_code: user_code.clone(),
            begun: Begun::new(client, now),
        },
        provider: provider.map_or(Choice::Users(None), |provider| {
            Choice::Fixed(provider.config.name.clone())
        }),
        hints: login_request.hints,
        cookie: None,
        expires_at: now.plus(config.lifetimes.login),
        status: Status::Pending,
    };
    // Its `false` cannot be: the token is new, and has 256 random bits.
    service.state.logins.insert(&login, now).await?;
    if let Some(provider) = provider {
        provider.metrics.count_begun(LoginMode::Polling);
    }
    Ok(PollingLogin {
        token: token.as_str().to_owned(),
        authorize_url: config.public_url.page(&login.state.encode()).into(),
        user_code: user_code.as_str().to_owned(),
        expires_in: login.expires_at.seconds_from(service.now()),
        interval: config.polling.interval.as_secs(),
    })
}

/// The provider that a request names, otherwise the default one; `None`: the user chooses.
fn requested_provider<'a>(
    service: &'a Service,
    name: Option<&str>,
) -> Result<Option<&'a Provider>, LoginError> {
    match name {
        Some(name) => named_provider(service, name).map(Some),
        None => Ok(service.providers.default()),
    }
}

/// The provider of this name.
pub(super) fn named_provider<'a>(
    service: &'a Service,
    name: &str,
) -> Result<&'a Provider, LoginError> {
    let providers = &service.providers;
    let provider = name.parse().ok().and_then(|name| providers.find(&name));
    provider.ok_or_else(|| LoginError::ParamInvalid {
        name: "provider",
        rule: ParamRule::Values(providers.names()),
    })
}

//! Begins a login: a redirect login for a browser, or a polling login for a client.

use signpost_kit::clock::Timestamp;
use signpost_protocol::version::Version;

use super::{ProviderRedirect, return_to};
use crate::{
    error::{LoginError, ParamRule},
    metrics::providers::LoginMode,
    provider::Provider,
    records::{
        applications::Application,
        logins::{
            BrowserCookie, LoginCookie, LoginToken, NewPollingLogin, SealedRedirect, UserCode,
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
}

/// What a polling client receives.
pub(crate) struct StartedPollingLogin {
    pub(crate) token: LoginToken,
    pub(crate) user_code: UserCode,
    pub(crate) expires_at: Timestamp,
}

/// Begins a redirect login: sends the browser to the provider, with the login in a sealed cookie.
///
/// Writes nothing to the store: anyone can send such requests, and rows would let them fill it.
pub(crate) async fn begin_redirect(
    service: &Service,
    login_request: LoginRequest<'_>,
    return_to: Option<&str>,
) -> Result<ProviderRedirect, LoginError> {
    let provider = provider(service, login_request.provider)?;
    let allowed = &login_request.application.return_to;
    let parse = |text| return_to::parse(text, allowed).ok_or(LoginError::ReturnToNotAllowed);
    let return_to = return_to.map(parse).transpose()?;
    let now = service.now();
    let expires_at = now.plus(service.config.lifetimes.login);
    let seal = service.state.seal().await?;
    let state = seal.issue_state(login_request.version, expires_at);
    let login = SealedRedirect {
        application: login_request.application.id,
        provider: provider.config.name.clone(),
        return_to,
        cookie: LoginCookie::generate(),
    };
    let sealed = seal.seal(&state, &login);
    provider.metrics.count_begun(LoginMode::Redirect);
    Ok(ProviderRedirect {
        url: provider.authorize_url(&state, &login.cookie),
        set_cookie: BrowserCookie::of(&state, &service.config.public_url)
            .set(&sealed, expires_at.seconds_from(now)),
    })
}

/// Begins a polling login: the client receives a token, and a URL to open in any browser.
pub(crate) async fn begin_polling(
    service: &Service,
    login_request: LoginRequest<'_>,
) -> Result<StartedPollingLogin, LoginError> {
    let provider = provider(service, login_request.provider)?;
    let (application, instant) = (login_request.application.id, service.state.clock.instant());
    service.limits.count_start(application, instant)?;
    let token = LoginToken::generate(login_request.version);
    let user_code = UserCode::generate();
    let now = service.now();
    let expires_at = now.plus(service.config.lifetimes.login);
    let login = NewPollingLogin {
        state: token.state(),
        application,
        user_code: user_code.clone(),
        provider: provider.config.name.clone(),
        created_at: now,
        expires_at,
    };
    service.state.logins.begin(login).await?;
    provider.metrics.count_begun(LoginMode::Polling);
    Ok(StartedPollingLogin {
        token,
        user_code,
        expires_at,
    })
}

fn provider<'a>(service: &'a Service, name: Option<&str>) -> Result<&'a Provider, LoginError> {
    let (providers, parameter) = (&service.providers, "provider");
    let Some(name) = name else {
        let missing = LoginError::ParamMissing { name: parameter };
        return providers.default().ok_or(missing);
    };
    let found = name.parse().ok().and_then(|name| providers.find(&name));
    found.ok_or_else(|| LoginError::ParamInvalid {
        name: parameter,
        rule: ParamRule::Values(providers.names()),
    })
}

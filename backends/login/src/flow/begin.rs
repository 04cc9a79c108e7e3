//! A login begins: in the browser that will finish it, or in a client that will poll.

use gateway_protocol::version::Version;
use signpost_kit::clock::Timestamp;

use super::SentOn;
use crate::{
    applications::Application,
    error::LoginError,
    logins::{LoginCookie, LoginToken, NewPollingLogin, SealedRedirect, UserCode, set_sealed},
    oauth::Provider,
    return_to::ReturnTo,
    service::Service,
};

/// Who begins a login, and with whom.
pub(crate) struct Beginning<'a> {
    /// The version that serves the request, and so issues the login.
    pub(crate) version: &'a Version,
    /// The application it is for.
    pub(crate) application: &'a Application,
    /// The provider asked for, if one was.
    pub(crate) provider: Option<&'a str>,
}

/// What a polling client is given.
pub(crate) struct PollingBegun {
    pub(crate) token: LoginToken,
    pub(crate) user_code: UserCode,
    pub(crate) expires_at: Timestamp,
}

/// Begins a redirect login: the browser goes to the provider at once, and takes the login along in a sealed cookie.
/// Stores nothing, since anybody can do this.
pub(crate) async fn begin_redirect(
    service: &Service,
    beginning: Beginning<'_>,
    return_to: Option<&str>,
) -> Result<SentOn, LoginError> {
    let provider = provider(service, beginning.provider)?;
    let return_to = match return_to {
        Some(text) => {
            let allowed = ReturnTo::parse(text, &beginning.application.return_to);
            Some(allowed.ok_or(LoginError::ReturnToNotAllowed)?.into_url())
        }
        None => None,
    };
    let now = service.now();
    let expires_at = now.plus(service.config.lifetimes().login);
    let seal = service.state.seal().await?;
    let state = seal.issue_state(beginning.version, expires_at);
    let login = SealedRedirect {
        application: beginning.application.id,
        provider: provider.config().name.clone(),
        return_to,
        cookie: LoginCookie::generate(),
    };
    let sealed = seal.seal(&state, &login);
    Ok(SentOn {
        url: provider.authorize_url(&state, &login.cookie),
        set_cookie: set_sealed(
            &state,
            service.config.public_url(),
            &sealed,
            now,
            expires_at,
        ),
    })
}

/// Begins a polling login: the client gets a token, and an address to open in any browser.
pub(crate) async fn begin_polling(
    service: &Service,
    beginning: Beginning<'_>,
) -> Result<PollingBegun, LoginError> {
    let provider = provider(service, beginning.provider)?;
    let application = beginning.application.id;
    service
        .limits
        .admit_start(application, service.state.instant())?;
    let token = LoginToken::generate(beginning.version);
    let user_code = UserCode::generate();
    let now = service.now();
    let expires_at = now.plus(service.config.lifetimes().login);
    let login = NewPollingLogin {
        state: token.state(),
        application: beginning.application.id,
        user_code: user_code.clone(),
        provider: provider.config().name.clone(),
        created_at: now,
        expires_at,
    };
    service.state.logins.store().begin(login).await?;
    Ok(PollingBegun {
        token,
        user_code,
        expires_at,
    })
}

fn provider<'a>(service: &'a Service, name: Option<&str>) -> Result<&'a Provider, LoginError> {
    let unknown = || LoginError::ParamInvalid {
        name: "provider",
        allowed: service.providers.names(),
    };
    match name {
        Some(name) => name
            .parse()
            .ok()
            .and_then(|name| service.providers.find(&name))
            .ok_or_else(unknown),
        None => service
            .providers
            .default()
            .ok_or(LoginError::ParamMissing { name: "provider" }),
    }
}

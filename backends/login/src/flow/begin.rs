//! A login begins: in the browser that will finish it, or in a client that will poll.

use gateway_protocol::version::Version;

use super::SentOn;
use crate::{
    applications::Application,
    client_address::ClientAddress,
    clock::Timestamp,
    error::LoginError,
    logins::{Begun, LoginCookie, LoginToken, Mode, NewLogin, UserCode},
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
    /// Who is asking.
    pub(crate) client_address: ClientAddress,
    /// The provider asked for, if one was.
    pub(crate) provider: Option<&'a str>,
}

/// What a polling client is given.
pub(crate) struct PollingBegun {
    pub(crate) token: LoginToken,
    pub(crate) user_code: UserCode,
    pub(crate) expires_at: Timestamp,
}

/// Begins a redirect login: the browser goes to the provider at once.
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
    // Nobody is given the token: the outcome comes back with the browser or not at all.
    let state = LoginToken::generate(beginning.version).state();
    let cookie = LoginCookie::generate();
    let now = service.now();
    let expires_at = now.plus(service.config.lifetimes().login);
    let login = NewLogin {
        state: state.clone(),
        application: beginning.application.id,
        mode: Mode::Redirect { return_to },
        provider: provider.config().name.clone(),
        cookie: Some(cookie.hash()),
        client_address: beginning.client_address,
        created_at: now,
        expires_at,
    };
    store(service, login, now).await?;
    Ok(SentOn {
        url: provider.authorize_url(&state, &cookie),
        set_cookie: cookie.set(&state, service.config.public_url(), now, expires_at),
    })
}

/// Begins a polling login: the client gets a token, and an address to open in any browser.
pub(crate) async fn begin_polling(
    service: &Service,
    beginning: Beginning<'_>,
) -> Result<PollingBegun, LoginError> {
    let provider = provider(service, beginning.provider)?;
    let token = LoginToken::generate(beginning.version);
    let user_code = UserCode::generate();
    let now = service.now();
    let expires_at = now.plus(service.config.lifetimes().login);
    let login = NewLogin {
        state: token.state(),
        application: beginning.application.id,
        mode: Mode::Polling {
            user_code: user_code.clone(),
        },
        provider: provider.config().name.clone(),
        cookie: None,
        client_address: beginning.client_address,
        created_at: now,
        expires_at,
    };
    store(service, login, now).await?;
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

async fn store(service: &Service, login: NewLogin, now: Timestamp) -> Result<(), LoginError> {
    match service
        .logins
        .store()
        .begin(login, service.config.pending_bounds())
        .await?
    {
        Begun::Stored => Ok(()),
        Begun::TooMany { free_at } => Err(LoginError::TooManyPending {
            retry_after: free_at.seconds_from(now).max(1),
        }),
    }
}

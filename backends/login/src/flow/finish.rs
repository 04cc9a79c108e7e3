//! Handles the callback, the provider's redirect: the login completes or fails, once.

use std::sync::Arc;

use http::HeaderValue;
use signpost_kit::clock::Timestamp;
use tracing::{Instrument, Span, field};
use url::Url;

use super::{
    BrowserRequest, LoginResult, active_application,
    collect::issue_random,
    ensure_pending, find_login,
    outcome::{fail, retry_store, store_outcome},
};
use crate::{
    error::LoginError,
    flow::return_to::{is_allowed, with_error, with_ticket},
    metrics::providers::{LoginMode, LoginOutcome},
    provider::ProviderFault,
    records::{
        accounts::Account,
        applications::Application,
        logins::{
            Claim, ClaimTimeouts, Completion, FailureReason, Login, LoginCookie, LoginSeal,
            LoginState, Mode, Outcome, Status, Ticket, login_cookie_value,
        },
    },
    service::Service,
    trace::carried,
};

/// The parameters of a callback, apart from `state`.
pub(crate) struct Callback<'a> {
    pub(crate) grant: Grant,
    /// The issuer. RFC 9207.
    pub(crate) iss: Option<&'a str>,
}

/// The provider's decision. RFC 6749 section 4.1.2.
#[derive(Clone)]
pub(crate) enum Grant {
    /// The authorization code: the user allowed the login.
    Code(String),
    /// An error code: the user denied access, or the provider failed.
    Error(String),
}

/// The response to the callback, and the `Set-Cookie` that removes the login's cookie.
pub(crate) struct CallbackResponse {
    pub(crate) outcome: BrowserOutcome,
    pub(crate) remove_cookie: HeaderValue,
}

/// How a login ends in the browser.
pub(crate) enum BrowserOutcome {
    /// Redirect to the application, with a ticket or an error in the query.
    ReturnTo(Url),
    /// A redirect login without `return_to`: the response is the result.
    Result(LoginResult),
    /// A polling login: a page says that the window can be closed.
    Close(Arc<Application>),
    /// The login failed, and there is no `return_to` to redirect to.
    Problem(LoginError),
}

/// Completes or fails the login of a callback. Callbacks from another browser or provider, and second ones, are
/// rejected and change nothing. Only callbacks of the login's own browser count against the limit.
pub(crate) async fn finish_login(
    service: &Arc<Service>,
    request: &BrowserRequest<'_>,
    callback: &Callback<'_>,
) -> Result<CallbackResponse, LoginError> {
    let found = find_callback_login(service, request).await?;
    ensure_return_to_allowed(&found)?;
    let provider = service.providers.find(&found.login.provider);
    let is_issuer = |iss: &str| provider.is_some_and(|provider| provider.is_issuer(iss));
    if !callback.iss.is_none_or(is_issuer) {
        return Err(LoginError::LoginMismatch);
    }
    let admitted = service
        .limits
        .count_callback(request.client, service.state.instant());
    let permit = admitted.await?;
    let remove_cookie = LoginCookie::remove(&found.login.state, service.config.public_url());
    // In a task of its own: if the browser disconnects, the login must still finish, and a shutdown waits for the task.
    let (own, grant) = (Arc::clone(service), callback.grant.clone());
    let work = async move {
        let _permit = permit;
        claim_and_finish(&own, found, grant).await
    };
    let task = service
        .state
        .spawn_tracked(carried(work).instrument(Span::current()));
    let failed = |_| LoginError::Internal {
        what: "the task of a callback failed",
    };
    Ok(CallbackResponse {
        outcome: task.await.map_err(failed)??,
        remove_cookie,
    })
}

/// A login that this callback may finish, and the cookie that proves it.
struct CallbackLogin {
    login: Login,
    source: LoginSource,
    application: Arc<Application>,
    cookie: LoginCookie,
}

/// Where a login was stored before its callback.
#[derive(Clone, Copy)]
enum LoginSource {
    /// The browser's sealed cookie: a redirect login.
    Cookie,
    /// The store: a polling login, or a redirect login begun by an older release.
    Store,
}

/// Finds the login of a callback: a redirect login in the browser's cookie, a polling login in the store.
async fn find_callback_login(
    service: &Service,
    request: &BrowserRequest<'_>,
) -> Result<CallbackLogin, LoginError> {
    let state = request.parse_state()?;
    let seal = service.state.seal().await?;
    match seal.expiry_of(&state) {
        Some(expires_at) => find_redirect_login(service, request, seal, state, expires_at).await,
        None => find_polling_login(service, request).await,
    }
}

/// Checks the origin that the login returns to again: the application may have lost it since the login began.
fn ensure_return_to_allowed(found: &CallbackLogin) -> Result<(), LoginError> {
    match &found.login.mode {
        Mode::Redirect {
            return_to: Some(url),
        } if !is_allowed(url, &found.application.return_to) => Err(LoginError::ReturnToNotAllowed),
        Mode::Redirect { .. } | Mode::Polling { .. } => Ok(()),
    }
}

async fn find_redirect_login(
    service: &Service,
    request: &BrowserRequest<'_>,
    seal: &LoginSeal,
    state: LoginState,
    expires_at: Timestamp,
) -> Result<CallbackLogin, LoginError> {
    let value = login_cookie_value(request.headers, &state, service.config.public_url());
    let has_expired = service.now() >= expires_at;
    let Some(sealed) = value.and_then(|value| seal.open(&state, value)) else {
        // The first callback removed the cookie, so a second one finds the login in the store.
        return Err(
            match service.state.logins.store().find(state.hash()).await? {
                Some(_) => LoginError::LoginUsed,
                None if has_expired => LoginError::LoginExpired,
                None => LoginError::LoginMismatch,
            },
        );
    };
    if !request.can_access(sealed.application) {
        return Err(LoginError::LoginUnknown);
    }
    let application = active_application(service, sealed.application).await?;
    if has_expired {
        return Err(LoginError::LoginExpired);
    }
    let login = Login {
        state,
        application: sealed.application,
        mode: Mode::Redirect {
            return_to: sealed.return_to,
        },
        provider: sealed.provider,
        cookie: Some(sealed.cookie.hash()),
        expires_at,
        status: Status::Pending,
    };
    Ok(CallbackLogin {
        login,
        source: LoginSource::Cookie,
        application,
        cookie: sealed.cookie,
    })
}

async fn find_polling_login(
    service: &Service,
    request: &BrowserRequest<'_>,
) -> Result<CallbackLogin, LoginError> {
    let (login, application) = find_login(service, request).await?;
    ensure_pending(&login, service.now())?;
    let public_url = service.config.public_url();
    let cookie = LoginCookie::from_request(request.headers, &login.state, public_url)
        .filter(|cookie| login.is_bound_to(cookie))
        .ok_or(LoginError::LoginMismatch)?;
    Ok(CallbackLogin {
        login,
        source: LoginSource::Store,
        application,
        cookie,
    })
}

/// Claims the login, then completes or fails it.
async fn claim_and_finish(
    service: &Service,
    found: CallbackLogin,
    grant: Grant,
) -> Result<BrowserOutcome, LoginError> {
    let CallbackLogin {
        mut login,
        source,
        application,
        cookie,
    } = found;
    login.status = Status::Exchanging(claim(service, &login, source, &cookie).await?);
    let metrics = service.state.metrics.providers.of(&login.provider);
    let mode = LoginMode::from(&login.mode);
    let ended = finish(service, login, application, &cookie, grant).await;
    let outcome = match &ended {
        Ok(ended) => ended.outcome,
        Err(error) => error.into(),
    };
    metrics.count_finished(mode, outcome);
    ended.map(|ended| ended.browser)
}

/// How a claimed login ended.
struct Ended {
    browser: BrowserOutcome,
    outcome: LoginOutcome,
}

/// Completes or fails a claimed login.
async fn finish(
    service: &Service,
    login: Login,
    application: Arc<Application>,
    cookie: &LoginCookie,
    grant: Grant,
) -> Result<Ended, LoginError> {
    match grant {
        Grant::Code(code) => exchange(service, login, application, code, cookie).await,
        Grant::Error(error) => {
            let reason = if error == "access_denied" {
                FailureReason::AccessDenied
            } else {
                FailureReason::ProviderFailed
            };
            fail(service, &login, reason).await?;
            Ok(failure_outcome(&login, reason, LoginError::LoginDenied))
        }
    }
}

/// Claims the login for this callback. If another request was first, the error says what happened to the login.
async fn claim(
    service: &Service,
    login: &Login,
    source: LoginSource,
    cookie: &LoginCookie,
) -> Result<Claim, LoginError> {
    let store = service.state.logins.store();
    let now = service.now();
    let timeouts = ClaimTimeouts::for_store(service.config.store());
    let claim = timeouts.new_claim(now, login.expires_at, service.config.lifetimes().claim);
    let is_claimed = match source {
        LoginSource::Cookie => store.claim_redirect(login, claim, now).await?,
        LoginSource::Store => {
            let (state, cookie) = (login.state.hash(), cookie.hash());
            store.claim(state, &cookie, claim, now).await?
        }
    };
    if is_claimed {
        return Ok(claim);
    }
    let now_found = store
        .find(login.state.hash())
        .await?
        .ok_or(LoginError::LoginUnknown)?;
    ensure_pending(&now_found, service.now())?;
    Err(LoginError::LoginMismatch)
}

/// Exchanges the code. Also if that fails, the login ends: it is stored as failed.
async fn exchange(
    service: &Service,
    login: Login,
    application: Arc<Application>,
    code: String,
    cookie: &LoginCookie,
) -> Result<Ended, LoginError> {
    let outcome = try_exchange(service, &login, application, code, cookie).await;
    if outcome.is_err() {
        // The store failed, and the code is spent, so the login cannot continue. If the store is available again,
        // waiting clients learn this now and not when the claim ends. The contract has no reason of its own for this
        // case. If the login was completed and only the store's response was lost, it stays complete.
        let _ = fail(service, &login, FailureReason::ProviderFailed).await;
    }
    outcome
}

async fn try_exchange(
    service: &Service,
    login: &Login,
    application: Arc<Application>,
    code: String,
    cookie: &LoginCookie,
) -> Result<Ended, LoginError> {
    match identify(service, login, code, cookie).await? {
        Ok((account, created)) => {
            complete(service, login.clone(), application, account, created).await
        }
        Err(reason) => {
            fail(service, login, reason).await?;
            Ok(failure_outcome(login, reason, reason.into()))
        }
    }
}

async fn identify(
    service: &Service,
    login: &Login,
    code: String,
    cookie: &LoginCookie,
) -> Result<Result<(Account, bool), FailureReason>, LoginError> {
    let Some(provider) = service.providers.find(&login.provider) else {
        tracing::warn!(provider = %login.provider, "login failed: provider {{provider}} is no longer configured");
        return Ok(Err(FailureReason::ProviderFailed));
    };
    let identified = tokio::select! {
        identified = provider.identify(code, cookie) => identified,
        () = service.state.wait_until_giving_up() => {
            tracing::warn!(provider = %login.provider, "login failed: provider {{provider}} did not answer before the shutdown");
            return Ok(Err(FailureReason::ProviderTimeout));
        }
    };
    match identified {
        Ok(username) => {
            let config = provider.config();
            let now = service.now();
            let mut tries = 0;
            let find_or_create = || {
                tries += 1;
                let accounts = &service.state.accounts;
                accounts.find_or_create(&config.name, &config.kind, &username, now)
            };
            let (account, created) = retry_store(find_or_create).await?;
            // An earlier try may have created the account, and only the store's response was lost.
            let created = created || (tries > 1 && account.created_at == now);
            Ok(Ok((account, created)))
        }
        Err(fault) => {
            log_fault(login, &fault);
            Ok(Err(fault.reason()))
        }
    }
}

fn log_fault(login: &Login, fault: &ProviderFault) {
    let cause = std::error::Error::source(fault).map(field::display);
    tracing::warn!(provider = %login.provider, %fault, cause, "login failed at provider {{provider}}: {{fault}}");
}

async fn complete(
    service: &Service,
    login: Login,
    application: Arc<Application>,
    account: Account,
    created: bool,
) -> Result<Ended, LoginError> {
    Span::current().record("account.id", account.id.get());
    let ticket = match &login.mode {
        Mode::Redirect { return_to: Some(_) } => Some(Ticket::generate()),
        Mode::Redirect { return_to: None } | Mode::Polling { .. } => None,
    };
    let ticket_until = service.now().plus(service.config.lifetimes().ticket);
    let stored_ticket = ticket.as_ref().map(|ticket| (ticket.hash(), ticket_until));
    let outcome = Outcome::Complete {
        account: account.id,
        created,
        ticket: stored_ticket,
    };
    let stored = store_outcome(service, &login, outcome).await?;
    let browser = match (login.mode, ticket) {
        (
            Mode::Redirect {
                return_to: Some(url),
            },
            Some(ticket),
        ) => BrowserOutcome::ReturnTo(with_ticket(url, &ticket)),
        (Mode::Redirect { .. }, _) => {
            let completion = Completion {
                account,
                created,
                finished_at: stored.at,
                claimable_until: stored.claimable_until,
            };
            let issued = issue_random(service, &completion, login.application).await;
            BrowserOutcome::Result(issued?)
        }
        (Mode::Polling { .. }, _) => BrowserOutcome::Close(application),
    };
    Ok(Ended {
        browser,
        outcome: LoginOutcome::SUCCESS,
    })
}

fn failure_outcome(login: &Login, reason: FailureReason, problem: LoginError) -> Ended {
    let browser = match &login.mode {
        Mode::Redirect {
            return_to: Some(url),
        } => BrowserOutcome::ReturnTo(with_error(url.clone(), reason)),
        Mode::Redirect { return_to: None } | Mode::Polling { .. } => {
            BrowserOutcome::Problem(problem)
        }
    };
    Ended {
        browser,
        outcome: reason.into(),
    }
}

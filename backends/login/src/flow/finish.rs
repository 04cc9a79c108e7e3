//! The provider sends the browser back: the login completes or fails, once.

use std::sync::Arc;

use http::HeaderValue;
use signpost_kit::clock::Timestamp;
use tracing::{Instrument, Span, field};
use url::Url;

use super::{
    LoginResult, Visit, active_application,
    claim::issue_random,
    locate, must_be_open,
    outcome::{fail, patiently, store_outcome},
};
use crate::{
    accounts::Account,
    applications::Application,
    error::LoginError,
    logins::{
        Claim, ClaimTerms, Completion, FailureReason, Login, LoginCookie, LoginSeal, LoginState,
        Mode, Outcome, Status, Ticket, login_cookie_value,
    },
    oauth::ProviderFault,
    return_to::{with_error, with_ticket},
    service::Service,
};

/// What the provider sends the browser back with.
pub(crate) struct Callback<'a> {
    pub(crate) grant: Grant,
    /// RFC 9207.
    pub(crate) iss: Option<&'a str>,
}

/// RFC 6749 section 4.1.2.
#[derive(Clone)]
pub(crate) enum Grant {
    /// The person said yes.
    Code(String),
    /// The person said no, or the provider could not ask.
    Error(String),
}

/// What the browser is told in the end, and the `Set-Cookie` that takes the login's cookie away.
pub(crate) struct Finished {
    pub(crate) end: End,
    pub(crate) remove_cookie: HeaderValue,
}

/// How a login ends in the browser.
pub(crate) enum End {
    /// Back to the application, with a ticket or an error in the address.
    ReturnTo(Url),
    /// A redirect login without `return_to`: the result is the answer.
    Result(LoginResult),
    /// A polling login: the window may be closed.
    Close(Arc<Application>),
    /// It failed, and nobody else is to be told here.
    Problem(LoginError),
}

/// Completes or fails the login of a callback. A callback of another browser, or of another provider, ends
/// nothing; a second one changes nothing.
pub(crate) async fn finish_login(
    service: &Arc<Service>,
    visit: &Visit<'_>,
    callback: &Callback<'_>,
) -> Result<Finished, LoginError> {
    let opened = open(service, visit).await?;
    let provider = service.providers.find(&opened.login.provider);
    let is_issuer = |iss: &str| provider.is_some_and(|provider| provider.is_issuer(iss));
    if !callback.iss.is_none_or(is_issuer) {
        return Err(LoginError::LoginMismatch);
    }
    let admitted = service
        .limits
        .admit_callback(visit.client, service.state.instant());
    let permit = admitted.await?;
    let remove_cookie = LoginCookie::remove(&opened.login.state, service.config.public_url());
    // In a task of its own: a browser that goes away must not leave the login half done, nor a stop of the program.
    let (own, grant) = (Arc::clone(service), callback.grant.clone());
    let settled = async move {
        let _permit = permit;
        settle(&own, opened, grant).await
    };
    let task = service
        .state
        .spawn_to_end(settled.instrument(Span::current()));
    let broken_off = |_| LoginError::Internal {
        what: "a login's last step broke off",
    };
    Ok(Finished {
        end: task.await.map_err(broken_off)??,
        remove_cookie,
    })
}

/// A login that this callback may finish, and the cookie that proves it.
struct Opened {
    login: Login,
    origin: Origin,
    application: Arc<Application>,
    cookie: LoginCookie,
}

/// Where a login was before its callback.
#[derive(Clone, Copy)]
enum Origin {
    /// In the browser's sealed cookie: a redirect login.
    Cookie,
    /// In the store: a polling login, or a redirect login that an older release began.
    Store,
}

/// Finds the login of a callback: a redirect login in the browser's cookie, a polling login in the store.
async fn open(service: &Service, visit: &Visit<'_>) -> Result<Opened, LoginError> {
    let state = visit.state()?;
    let seal = service.state.seal().await?;
    match seal.expiry_of(&state) {
        Some(expires_at) => open_redirect(service, visit, seal, state, expires_at).await,
        None => open_polling(service, visit).await,
    }
}

async fn open_redirect(
    service: &Service,
    visit: &Visit<'_>,
    seal: &LoginSeal,
    state: LoginState,
    expires_at: Timestamp,
) -> Result<Opened, LoginError> {
    let value = login_cookie_value(visit.headers, &state, service.config.public_url());
    let has_expired = service.now() >= expires_at;
    let Some(sealed) = value.and_then(|value| seal.open(&state, value)) else {
        // A browser that has been back already has no cookie any more.
        return Err(
            match service.state.logins.store().find(state.hash()).await? {
                Some(_) => LoginError::LoginUsed,
                None if has_expired => LoginError::LoginExpired,
                None => LoginError::LoginMismatch,
            },
        );
    };
    if !visit.is_of(sealed.application) {
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
    Ok(Opened {
        login,
        origin: Origin::Cookie,
        application,
        cookie: sealed.cookie,
    })
}

async fn open_polling(service: &Service, visit: &Visit<'_>) -> Result<Opened, LoginError> {
    let (login, application) = locate(service, visit).await?;
    must_be_open(&login, service.now())?;
    let public_url = service.config.public_url();
    let cookie = LoginCookie::of_request(visit.headers, &login.state, public_url)
        .filter(|cookie| login.is_bound_to(cookie))
        .ok_or(LoginError::LoginMismatch)?;
    Ok(Opened {
        login,
        origin: Origin::Store,
        application,
        cookie,
    })
}

/// Claims the login, and brings it to its end.
async fn settle(service: &Service, opened: Opened, grant: Grant) -> Result<End, LoginError> {
    let Opened {
        mut login,
        origin,
        application,
        cookie,
    } = opened;
    login.status = Status::Exchanging(claim(service, &login, origin, &cookie).await?);
    match grant {
        Grant::Code(code) => exchange(service, login, application, code, &cookie).await,
        Grant::Error(error) => {
            let reason = if error == "access_denied" {
                FailureReason::AccessDenied
            } else {
                FailureReason::ProviderFailed
            };
            fail(service, &login, reason).await?;
            Ok(end_of_failure(&login, reason, LoginError::LoginDenied))
        }
    }
}

/// Takes the login out of everybody else's hands; tells apart why that may not work.
async fn claim(
    service: &Service,
    login: &Login,
    origin: Origin,
    cookie: &LoginCookie,
) -> Result<Claim, LoginError> {
    let store = service.state.logins.store();
    let now = service.now();
    let terms = ClaimTerms::of(service.config.store());
    let claim = terms.begin(now, login.expires_at, service.config.lifetimes().claim);
    let is_claimed = match origin {
        Origin::Cookie => store.claim_redirect(login, claim, now).await?,
        Origin::Store => {
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
    must_be_open(&now_found, service.now())?;
    Err(LoginError::LoginMismatch)
}

/// Exchanges the code, and lets the login end one way or the other whatever happens.
async fn exchange(
    service: &Service,
    login: Login,
    application: Arc<Application>,
    code: String,
    cookie: &LoginCookie,
) -> Result<End, LoginError> {
    let end = try_exchange(service, &login, application, code, cookie).await;
    if end.is_err() {
        // The store was away in between, and the code is spent: nobody can go on with this login, so whoever
        // waits for it is told now, if the store is back, and not when the claim ends. The contract's reasons
        // have no word of their own for this. If it is complete all the same, that stands.
        let _ = fail(service, &login, FailureReason::ProviderFailed).await;
    }
    end
}

async fn try_exchange(
    service: &Service,
    login: &Login,
    application: Arc<Application>,
    code: String,
    cookie: &LoginCookie,
) -> Result<End, LoginError> {
    match identify(service, login, code, cookie).await? {
        Ok((account, created)) => {
            complete(service, login.clone(), application, account, created).await
        }
        Err(reason) => {
            fail(service, login, reason).await?;
            Ok(end_of_failure(login, reason, reason.into()))
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
        tracing::warn!(provider = %login.provider, "a login's provider {} is configured no more", login.provider);
        return Ok(Err(FailureReason::ProviderFailed));
    };
    let identified = tokio::select! {
        identified = provider.identify(code, cookie) => identified,
        () = service.state.ending() => {
            tracing::warn!(provider = %login.provider, "provider {} did not answer before the program stopped", login.provider);
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
            let (account, created) = patiently(find_or_create).await?;
            // Of an earlier try only the answer may have been lost.
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
    tracing::warn!(provider = %login.provider, cause, "provider {} failed a login: {fault}", login.provider);
}

async fn complete(
    service: &Service,
    login: Login,
    application: Arc<Application>,
    account: Account,
    created: bool,
) -> Result<End, LoginError> {
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
    match (login.mode, ticket) {
        (
            Mode::Redirect {
                return_to: Some(url),
            },
            Some(ticket),
        ) => Ok(End::ReturnTo(with_ticket(url, &ticket))),
        (Mode::Redirect { .. }, _) => {
            let completion = Completion {
                account,
                created,
                finished_at: stored.at,
                claimable_until: stored.claimable_until,
            };
            issue_random(service, &completion, login.application)
                .await
                .map(End::Result)
        }
        (Mode::Polling { .. }, _) => Ok(End::Close(application)),
    }
}

fn end_of_failure(login: &Login, reason: FailureReason, problem: LoginError) -> End {
    match &login.mode {
        Mode::Redirect {
            return_to: Some(url),
        } => End::ReturnTo(with_error(url.clone(), reason)),
        Mode::Redirect { return_to: None } | Mode::Polling { .. } => End::Problem(problem),
    }
}

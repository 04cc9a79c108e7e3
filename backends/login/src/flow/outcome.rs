//! How a login ends: it is stored, with retries, and the browser gets an outcome.

use std::sync::Arc;

use signpost_kit::clock::Timestamp;
use signpost_protocol::challenge::Challenge;
use signpost_store::StoreError;
use url::Url;

use super::{
    BrowserRequest, LoginResult,
    redeem::issue_random,
    retry_store,
    return_to::{is_allowed, with_outcome},
};
use crate::{
    error::LoginError,
    metrics::providers::LoginOutcome,
    records::{
        accounts::Account,
        applications::Application,
        logins::{
            ClaimTimeouts, Completion, FailureReason, FinishTimes, Login, LoginCookie, Mode,
            Outcome, Status, Ticket,
        },
    },
    service::Service,
};

/// A login that a callback may finish, and the cookie that proves it.
#[derive(Clone)]
pub(super) struct CallbackLogin {
    pub(super) login: Login,
    pub(super) application: Arc<Application>,
    /// Of a redirect login: whom its ticket is for.
    pub(super) challenge: Option<Challenge>,
    pub(super) cookie: LoginCookie,
}

/// A login that this browser finishes or has finished.
pub(super) struct Ended {
    pub(super) outcome: BrowserOutcome,
    /// Whether the store has the outcome.
    pub(super) is_stored: bool,
}

/// How a login ends in the browser.
pub(crate) enum BrowserOutcome {
    /// Redirect to the application, with a ticket or an error in the query.
    ReturnTo(Url),
    /// A redirect login without `return_to`: the response is the result.
    Result(LoginResult),
    /// A polling login: a page says that the user is logged in and that the window can be closed.
    Close(Arc<Application>),
    /// A redirect login that this browser completed before: a page with a link to this origin.
    Finished(Arc<Application>, String),
    /// The user cancelled the login on its page.
    Cancelled,
    /// The user wanted to cancel the login on its page, but it was complete.
    TooLate(Arc<Application>),
    /// The login is being finished by an earlier callback of this browser: a page that reloads itself.
    Finishing,
    /// The provider is unavailable: a page with a link that leads to it again, and one back to the application, with an
    /// error.
    TryAgain {
        state: String,
        application: Arc<Application>,
        back: Option<Url>,
    },
    /// The login failed, and there is no `return_to` to redirect to.
    Problem(LoginError),
}

impl BrowserOutcome {
    /// What a link of the login's page shows of this outcome.
    pub(super) fn of_link(self, is_cancel: bool) -> Self {
        match self {
            Self::Close(application) if is_cancel => Self::TooLate(application),
            Self::Problem(_) if is_cancel => Self::Cancelled,
            outcome => outcome,
        }
    }
}

/// Why a claimed login does not complete.
pub(super) enum Failure {
    /// The user denied access, or the provider failed.
    Login(FailureReason),
    /// The store failed.
    Store(LoginError),
}

impl From<FailureReason> for Failure {
    fn from(reason: FailureReason) -> Self {
        Self::Login(reason)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

/// What the browser that finishes or finished the login gets after a reload, without a second ticket or credential.
/// `None` for another browser, and while the login is pending.
pub(super) fn outcome_again(
    request: &BrowserRequest<'_>,
    login: &Login,
    cookie: Option<&LoginCookie>,
    application: &Arc<Application>,
    now: Timestamp,
) -> Option<BrowserOutcome> {
    if !request.wants_page || !cookie.is_some_and(|cookie| login.is_bound_to(cookie)) {
        return None;
    }
    let return_to = login.mode.return_to();
    let (application, allowed) = (Arc::clone(application), &application.return_to);
    Some(match &login.status {
        Status::Pending => return None,
        Status::Exchanging(claim) if now < claim.until => BrowserOutcome::Finishing,
        // Checked again: the application may have lost the origin since the login ended.
        _ if return_to.is_some_and(|url| !is_allowed(url, allowed)) => {
            BrowserOutcome::Problem(LoginError::ReturnToNotAllowed)
        }
        Status::Complete(_) => match return_to {
            Some(url) => BrowserOutcome::Finished(application, url.origin().ascii_serialization()),
            None => BrowserOutcome::Close(application),
        },
        Status::Failed { reason, .. } => failed(return_to, *reason),
        // No outcome can be stored after the claim has ended.
        Status::Exchanging(_) => failed(return_to, FailureReason::ProviderFailed),
    })
}

/// The response to the browser of a login that failed.
fn failed(return_to: Option<&Url>, reason: FailureReason) -> BrowserOutcome {
    match return_to {
        Some(url) => BrowserOutcome::ReturnTo(failed_url(url, reason)),
        None => BrowserOutcome::Problem(reason.into()),
    }
}

/// The address to which the browser of a failed login returns.
pub(super) fn failed_url(return_to: &Url, reason: FailureReason) -> Url {
    with_outcome(return_to.clone(), "error", reason.as_str())
}

/// Stores that the login is complete; the browser gets a ticket, the result or a page.
pub(super) async fn store_completion(
    service: &Service,
    CallbackLogin {
        login,
        application,
        challenge,
        ..
    }: &CallbackLogin,
    (account, created): (Account, bool),
) -> Result<BrowserOutcome, LoginError> {
    let lifetimes = &service.config.lifetimes;
    let complete = |ticket| Outcome::Complete {
        account: account.clone(),
        created,
        ticket,
    };
    Ok(match &login.mode {
        Mode::Redirect {
            return_to: Some(url),
        } => {
            let ticket = Ticket::generate();
            let until = service.now().plus(lifetimes.ticket);
            let outcome = complete(Some((ticket.hash(challenge.as_ref()), until)));
            store_outcome(service, login, outcome).await?;
            BrowserOutcome::ReturnTo(with_outcome(url.clone(), "ticket", &ticket.encode()))
        }
        Mode::Redirect { return_to: None } => {
            // Before the credential: a claim that has ended must not leave one behind.
            let finished_at = store_outcome(service, login, complete(None)).await?;
            let completion = Completion {
                account,
                created,
                finished_at,
                claimable_until: finished_at.plus(lifetimes.claim),
            };
            BrowserOutcome::Result(issue_random(service, completion, login).await?)
        }
        Mode::Polling { .. } => {
            store_outcome(service, login, complete(None)).await?;
            BrowserOutcome::Close(Arc::clone(application))
        }
    })
}

/// Stores that the login failed; the browser gets the reason or a problem.
pub(super) async fn store_failure(
    service: &Service,
    login: &Login,
    failure: Failure,
) -> Result<(Ended, LoginOutcome), LoginError> {
    let reason = match failure {
        Failure::Login(reason) => reason,
        Failure::Store(error) => {
            // The code is spent, so the login cannot continue. If the store is available again, waiting clients learn
            // this now and not when the claim ends. The contract has no reason of its own for this case. If the login
            // was completed and only the store's response was lost, it stays complete.
            let _ = fail(service, login, FailureReason::ProviderFailed).await;
            return Err(error);
        }
    };
    let is_stored = fail(service, login, reason).await?;
    let outcome = failed(login.mode.return_to(), reason);
    Ok((Ended { outcome, is_stored }, reason.into()))
}

/// Stores that the login failed, and returns whether it did.
///
/// Anyone can begin redirect logins, so the number of failed ones that are stored is limited. Beyond the limit the
/// login's row is deleted. The browser keeps the sealed login, and its second callback is handled like the first.
async fn fail(service: &Service, login: &Login, reason: FailureReason) -> Result<bool, LoginError> {
    if matches!(login.mode, Mode::Redirect { .. })
        && !service.limits.count_failure(service.state.clock.instant())
    {
        let unclaim = || service.state.logins.unclaim(login.state.hash());
        retry_store(service, unclaim).await?;
        return Ok(false);
    }
    store_outcome(service, login, Outcome::Failed(reason)).await?;
    Ok(true)
}

/// Stores the outcome of the login, and returns when it ended.
async fn store_outcome(
    service: &Service,
    login: &Login,
    outcome: Outcome,
) -> Result<Timestamp, LoginError> {
    let claim_ttl = service.config.lifetimes.claim;
    let timeouts = ClaimTimeouts::for_store(&service.config.store);
    let (store, state) = (&service.state.logins, login.state.hash());
    let finished_at = service.now();
    let finish = || {
        // Read for each try: with the time of the first, a claim that has ended since would still seem valid.
        let at = service.now();
        let times = FinishTimes {
            finished_at,
            at,
            deadline: timeouts.store_deadline(login, at),
            claimable_until: at.plus(claim_ttl),
        };
        let (stored, outcome) = (store.finish(state, outcome.clone(), times), &outcome);
        async move {
            let stored = stored.await;
            if let Ok(true) = stored {
                store.see_finished(login, outcome, times);
            }
            // Also after an error: the outcome may be stored, and only the response lost.
            service.state.waiters.wake(state);
            stored
        }
    };
    if retry_store(service, finish).await? {
        Ok(finished_at)
    } else {
        // The claim has ended, or may end before the outcome is stored. `/check` reports the login as failed then.
        Err(LoginError::LoginExpired)
    }
}

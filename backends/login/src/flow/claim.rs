//! The outcome is asked for: by the token's holder, again and again, or by a ticket's, once.

use std::{sync::Arc, time::Duration};

use gateway_protocol::app::AppId;

use super::LoginResult;
use crate::{
    clock::Timestamp,
    credentials::{Credential, LoggedIn, NewCredential},
    error::LoginError,
    logins::{Completion, FailureReason, Login, LoginToken, Mode, Progress, Redeemed, Ticket},
    service::Service,
};

/// What `/check` answers.
pub(crate) struct Checked {
    pub(crate) status: CheckedStatus,
    /// When this answer turns into another by itself.
    pub(crate) answers_until: Timestamp,
}

/// The status of a polling login as its client is told. CONTRACT 8.
pub(crate) enum CheckedStatus {
    /// Not finished.
    Pending,
    /// Somebody is logged in.
    Complete(Box<LoginResult>),
    /// It came to nothing.
    Failed(FailureReason),
    /// Too late.
    Expired,
}

/// How the login of `token` stands; while it is pending, waits up to `wait` for that to change.
pub(crate) async fn check(
    service: &Service,
    token: &str,
    application: AppId,
    wait: Duration,
) -> Result<Checked, LoginError> {
    let token: LoginToken = token.parse().map_err(|_| LoginError::LoginUnknown)?;
    let waiter = service.logins.listen(token.hash());
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        let woken = waiter.woken();
        let login = look(service, &token, application).await?;
        let now = service.now();
        let is_last = tokio::time::Instant::now() >= deadline;
        if is_last || !matches!(login.progress(now), Progress::Pending) {
            let status = status(service, &token, &login, now).await?;
            return Ok(Checked {
                status,
                answers_until: login.answers_until(),
            });
        }
        let own_end = tokio::time::Instant::now() + login.expires_at.since(now);
        tokio::select! {
            () = woken => {}
            () = tokio::time::sleep_until(deadline.min(own_end)) => {}
            () = service.stopped() => {
                return Ok(Checked { status: CheckedStatus::Pending, answers_until: login.answers_until() });
            }
        }
    }
}

/// The result of a token's login.
pub(crate) async fn redeem_token(
    service: &Service,
    token: &str,
    application: AppId,
) -> Result<LoginResult, LoginError> {
    let token: LoginToken = token.parse().map_err(|_| LoginError::LoginUnknown)?;
    let login = look(service, &token, application).await?;
    match status(service, &token, &login, service.now()).await? {
        CheckedStatus::Pending => Err(LoginError::LoginPending),
        CheckedStatus::Complete(result) => Ok(*result),
        CheckedStatus::Failed(reason) => Err(reason.into()),
        CheckedStatus::Expired => Err(LoginError::LoginExpired),
    }
}

/// The result of a ticket's login, once.
pub(crate) async fn redeem_ticket(
    service: &Service,
    ticket: &str,
    application: AppId,
) -> Result<LoginResult, LoginError> {
    let ticket: Ticket = ticket.parse().map_err(|_| LoginError::LoginUnknown)?;
    match service
        .logins
        .store()
        .redeem(&ticket.hash(), application, service.now())
        .await?
    {
        Redeemed::Now(completion) => issue_random(service, &completion, application).await,
        Redeemed::Before => Err(LoginError::LoginUsed),
        Redeemed::TooLate => Err(LoginError::LoginExpired),
        Redeemed::Unknown => Err(LoginError::LoginUnknown),
    }
}

/// Issues a credential that nobody can ask for again.
pub(super) async fn issue_random(
    service: &Service,
    completion: &Completion,
    application: AppId,
) -> Result<LoginResult, LoginError> {
    issue(service, completion, application, Credential::generate()).await
}

async fn look(
    service: &Service,
    token: &LoginToken,
    application: AppId,
) -> Result<Arc<Login>, LoginError> {
    let found = service.logins.look(&token.hash()).await?;
    let is_theirs = |login: &Arc<Login>| {
        login.application == application && matches!(login.mode, Mode::Polling { .. })
    };
    found.filter(is_theirs).ok_or(LoginError::LoginUnknown)
}

async fn status(
    service: &Service,
    token: &LoginToken,
    login: &Login,
    now: Timestamp,
) -> Result<CheckedStatus, LoginError> {
    Ok(match login.progress(now) {
        Progress::Pending => CheckedStatus::Pending,
        Progress::Failed(reason) => CheckedStatus::Failed(reason),
        Progress::Expired => CheckedStatus::Expired,
        Progress::Complete(completion) => {
            // Only now, since only the token's holder can tell what the credential is; the same one each
            // time, from any backend, and a revoked one stays revoked.
            let credential = token.credential();
            CheckedStatus::Complete(Box::new(
                issue(service, completion, login.application, credential).await?,
            ))
        }
    })
}

async fn issue(
    service: &Service,
    completion: &Completion,
    application: AppId,
    credential: Credential,
) -> Result<LoginResult, LoginError> {
    let expires_at = completion
        .finished_at
        .plus(service.config.lifetimes().credential);
    let account = completion.account.clone();
    let logged_in = LoggedIn {
        account: account.clone(),
        application,
        expires_at,
    };
    let new = NewCredential {
        hash: credential.hash(),
        logged_in,
        created_at: completion.finished_at,
    };
    service.credentials.keep(new).await?;
    Ok(LoginResult {
        account,
        credential,
        expires_at,
        created: completion.created,
    })
}

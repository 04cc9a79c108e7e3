//! The outcome is asked for: by the token's holder, again and again, or by a ticket's, once.

use std::time::Duration;

use gateway_protocol::app::AppId;
use signpost_kit::clock::Timestamp;

use super::{LoginResult, outcome::patiently};
use crate::{
    credentials::{Credential, LoggedIn, NewCredential},
    error::LoginError,
    logins::{
        Completion, FailureReason, Login, LoginToken, Mode, Progress, Redeemed, Ticket,
        TicketCredential,
    },
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
    let waiter = service.state.logins.listen(token.hash());
    let mut deadline = tokio::time::Instant::now() + wait;
    loop {
        let woken = waiter.woken();
        let login = look(service, &token, application).await?;
        let now = service.now();
        let answers_until = login.answers_until();
        let own_end = match login.progress(now) {
            Progress::Pending { until } if tokio::time::Instant::now() < deadline => {
                tokio::time::Instant::now() + until.since(now)
            }
            progress => {
                let status = status(service, &token, &login, progress).await?;
                return Ok(Checked {
                    status,
                    answers_until,
                });
            }
        };
        tokio::select! {
            () = woken => {}
            () = tokio::time::sleep_until(deadline.min(own_end)) => {}
            // The store is asked once more: another process may have completed the login.
            () = service.state.stopped() => deadline = tokio::time::Instant::now(),
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
    let progress = login.progress(service.now());
    match status(service, &token, &login, progress).await? {
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
    let credential = Credential::generate();
    let stored = TicketCredential {
        hash: credential.hash(),
        lifetime: service.config.lifetimes().credential,
    };
    let (store, ticket) = (service.state.logins.store(), ticket.hash());
    let redeem = || store.redeem(&ticket, application, stored, service.now());
    match patiently(redeem).await? {
        Redeemed::Now(completion) => Ok(issue(service, &completion, application, credential).1),
        Redeemed::Before => Err(LoginError::LoginUsed),
        Redeemed::TooLate => Err(LoginError::LoginExpired),
        Redeemed::Unknown => Err(LoginError::LoginUnknown),
    }
}

/// Issues a credential that nobody can ask for again: hence the patience.
pub(super) async fn issue_random(
    service: &Service,
    completion: &Completion,
    application: AppId,
) -> Result<LoginResult, LoginError> {
    let (new, result) = issue(service, completion, application, Credential::generate());
    patiently(|| service.state.credentials.keep(new.clone())).await?;
    Ok(result)
}

async fn look(
    service: &Service,
    token: &LoginToken,
    application: AppId,
) -> Result<Login, LoginError> {
    let found = service.state.logins.store().find(&token.hash()).await?;
    let is_theirs = |login: &Login| {
        login.application == application && matches!(login.mode, Mode::Polling { .. })
    };
    found.filter(is_theirs).ok_or(LoginError::LoginUnknown)
}

async fn status(
    service: &Service,
    token: &LoginToken,
    login: &Login,
    progress: Progress<'_>,
) -> Result<CheckedStatus, LoginError> {
    Ok(match progress {
        Progress::Pending { .. } => CheckedStatus::Pending,
        Progress::Failed(reason) => CheckedStatus::Failed(reason),
        Progress::Expired => CheckedStatus::Expired,
        Progress::Complete(completion) => {
            // Only now, since only the token's holder can tell what the credential is; the same one each
            // time, from any backend, and a revoked one stays revoked.
            let credential = token.credential();
            let (new, result) = issue(service, completion, login.application, credential);
            service.state.credentials.keep(new).await?;
            CheckedStatus::Complete(Box::new(result))
        }
    })
}

/// A credential to be stored, and what its holder is given.
fn issue(
    service: &Service,
    completion: &Completion,
    application: AppId,
    credential: Credential,
) -> (NewCredential, LoginResult) {
    let lifetime = service.config.lifetimes().credential;
    let expires_at = completion.finished_at.plus(lifetime);
    let logged_in = LoggedIn {
        account: completion.account.clone(),
        application,
        expires_at,
    };
    let new = NewCredential {
        hash: credential.hash(),
        logged_in,
        created_at: completion.finished_at,
    };
    let result = LoginResult {
        account: completion.account.clone(),
        credential,
        expires_at,
        created: completion.created,
    };
    (new, result)
}

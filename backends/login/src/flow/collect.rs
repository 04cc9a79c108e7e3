//! Returns the outcome of a login to the client: repeatedly for a token, once for a ticket.

use std::time::Duration;

use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppId, challenge::Challenge};

use super::{LoginResult, retry_store};
use crate::{
    error::LoginError,
    limits::Waiter,
    records::{
        credentials::{Credential, CredentialClaims, NewCredential, random_credential},
        logins::{
            Completion, FailureReason, Login, LoginToken, Mode, Progress, Redemption, Ticket,
            TicketCredential,
        },
    },
    secret::LENGTH,
    service::Service,
};

/// The result of `/check`.
pub(crate) struct Checked {
    pub(crate) status: CheckedStatus,
    /// When this status changes to `expired`.
    pub(crate) responds_until: Timestamp,
}

/// The status of a polling login, as `/check` returns it. CONTRACT 8.
pub(crate) enum CheckedStatus {
    /// Not finished.
    Pending,
    /// The user is logged in.
    Complete(Box<LoginResult>),
    /// The login failed.
    Failed(FailureReason),
    /// The login was not finished, or its outcome not claimed, in time.
    Expired,
}

/// Returns the status of the login of `token`. While it is pending, waits up to `wait` for it to change, unless too many
/// requests wait already.
pub(crate) async fn check(
    service: &Service,
    token: &str,
    application: AppId,
    wait: Duration,
) -> Result<Checked, LoginError> {
    let token = LoginToken::decode(token).ok_or(LoginError::LoginUnknown)?;
    let subscribe = || {
        let (waiters, connections) = (&service.state.waiters, service.connection_limit());
        waiters.subscribe(token.hash(), application, connections)
    };
    let waiter = (!wait.is_zero()).then(subscribe).flatten();
    let mut deadline = tokio::time::Instant::now() + wait;
    loop {
        // Subscribed before the store is read, so that no change in between is missed.
        let woken = waiter.as_ref().map(Waiter::woken);
        let login = find_polling_login(service, &token, application).await?;
        let now = service.now();
        let responds_until = login.responds_until();
        let (woken, status_end) = match (login.progress(now), woken) {
            (Progress::Pending { until }, Some(woken))
                if tokio::time::Instant::now() < deadline =>
            {
                (woken, tokio::time::Instant::now() + until.since(now))
            }
            (progress, _) => {
                let status = status(service, &token, &login, progress).await?;
                return Ok(Checked {
                    status,
                    responds_until,
                });
            }
        };
        let _waiting = service.state.metrics.checks.wait();
        tokio::select! {
            () = woken => {}
            () = tokio::time::sleep_until(deadline.min(status_end)) => {}
            // Reads the store once more: another process may have completed the login.
            () = service.state.wait_until_closing() => deadline = tokio::time::Instant::now(),
        }
    }
}

/// Returns the result of a polling login.
pub(crate) async fn redeem_token(
    service: &Service,
    token: &str,
    application: AppId,
) -> Result<LoginResult, LoginError> {
    let token = LoginToken::decode(token).ok_or(LoginError::LoginUnknown)?;
    let login = find_polling_login(service, &token, application).await?;
    let progress = login.progress(service.now());
    match status(service, &token, &login, progress).await? {
        CheckedStatus::Pending => Err(LoginError::LoginPending),
        CheckedStatus::Complete(result) => Ok(*result),
        CheckedStatus::Failed(reason) => Err(reason.into()),
        CheckedStatus::Expired => Err(LoginError::LoginExpired),
    }
}

/// Redeems a ticket, once, for the result of its login, which began with this challenge or without one.
pub(crate) async fn redeem_ticket(
    service: &Service,
    (ticket, challenge): (&str, Option<Challenge>),
    application: AppId,
) -> Result<LoginResult, LoginError> {
    let ticket = Ticket::decode(ticket).ok_or(LoginError::LoginUnknown)?;
    let credential = random_credential();
    let stored = TicketCredential {
        hash: credential.hash(),
        login: credential.login_hash(),
        lifetime: service.config.lifetimes.credential,
    };
    let (store, ticket) = (&service.state.logins, ticket.hash(challenge.as_ref()));
    let redeem = || store.redeem(&ticket, application, stored, service.now());
    match retry_store(redeem).await? {
        Redemption::Redeemed(completion) => {
            // The ticket has inserted it.
            Ok(issue(service, &completion, application, credential, None).1)
        }
        Redemption::AlreadyUsed => Err(LoginError::LoginUsed),
        Redemption::Expired => Err(LoginError::LoginExpired),
        Redemption::Unknown => Err(LoginError::LoginUnknown),
    }
}

/// Issues a random credential. The client cannot request it again, so the store is retried.
pub(super) async fn issue_random(
    service: &Service,
    completion: &Completion,
    login: &Login,
) -> Result<LoginResult, LoginError> {
    let (credential, outcome) = (random_credential(), Some(*login.state.hash().as_bytes()));
    let (new, result) = issue(service, completion, login.application, credential, outcome);
    retry_store(|| service.state.credentials.store.insert(new.clone())).await?;
    Ok(result)
}

async fn find_polling_login(
    service: &Service,
    token: &LoginToken,
    application: AppId,
) -> Result<Login, LoginError> {
    let found = service.state.logins.find(&token.hash()).await?;
    let is_match = |login: &Login| {
        login.application == application && matches!(login.mode, Mode::Polling { .. })
    };
    found.filter(is_match).ok_or(LoginError::LoginUnknown)
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
            // Stored only now, since the credential is derived from the token, which only the client has. It is the
            // same each time and from each backend, and if it was revoked, it stays revoked.
            let (credential, outcome) = (token.credential(), Some(*login.state.hash().as_bytes()));
            let (new, result) = issue(service, completion, login.application, credential, outcome);
            service.state.credentials.store.insert(new).await?;
            CheckedStatus::Complete(Box::new(result))
        }
    })
}

/// Returns the credential to store, and the result for the client.
fn issue(
    service: &Service,
    completion: &Completion,
    application: AppId,
    credential: Credential,
    outcome: Option<[u8; LENGTH]>,
) -> (NewCredential, LoginResult) {
    let lifetime = service.config.lifetimes.credential;
    let expires_at = completion.finished_at.plus(lifetime);
    let logged_in = CredentialClaims {
        account: completion.account.clone(),
        application,
        expires_at,
    };
    let new = NewCredential {
        hash: credential.hash(),
        login: credential.login_hash(),
        logged_in,
        created_at: completion.finished_at,
        outcome,
    };
    let result = LoginResult {
        account: completion.account.clone(),
        credential,
        expires_at,
        created: completion.created,
    };
    (new, result)
}

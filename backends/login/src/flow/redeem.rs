//! Returns the outcome of a login to the client: repeatedly for a token, once for a ticket.

use std::{sync::Arc, time::Duration};

use signpost_protocol::{app::AppId, challenge::Challenge};

use super::{retry_store, try_store};
use crate::{
    error::LoginError,
    limits::Waiter,
    records::{
        accounts::Account,
        credentials::{Credential, CredentialClaims, NewCredential, random_credential},
        logins::{Completion, Login, LoginToken, Mode, Progress, Redemption, Ticket},
    },
    service::Service,
};

/// The result of a login. It has a secret, so it cannot be printed.
pub struct LoginResult {
    /// The account of the user who logged in.
    pub account: Account,
    /// The credential: the value of the authorization header.
    pub authorization: String,
    /// Seconds until the credential expires.
    pub expires_in: u64,
    /// Whether this login has created the account.
    pub created: bool,
}

/// The response to `/check`.
pub struct Check {
    /// The status of the login.
    pub status: CheckStatus,
    /// Seconds until the status changes to `expired`.
    pub expires_in: u64,
}

/// The status of a polling login. CONTRACT 8.
pub enum CheckStatus {
    /// Not finished.
    Pending,
    /// The user is logged in.
    Complete(Box<LoginResult>),
    /// The login failed, for this reason of CONTRACT 8, in a word.
    Failed(&'static str),
    /// The login was not finished, or its outcome not claimed, in time.
    Expired,
}

impl Check {
    /// What [`Self::status`] can be.
    pub(crate) const STATUSES: [&str; 4] = ["pending", "complete", "failed", "expired"];

    /// The status in a word.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self.status {
            CheckStatus::Pending => "pending",
            CheckStatus::Complete(_) => "complete",
            CheckStatus::Failed(_) => "failed",
            CheckStatus::Expired => "expired",
        }
    }

    /// The result, once the login is complete.
    #[must_use]
    pub fn login(&self) -> Option<&LoginResult> {
        match &self.status {
            CheckStatus::Complete(result) => Some(result),
            _ => None,
        }
    }

    /// Why the login failed, in a word.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        match self.status {
            CheckStatus::Failed(reason) => Some(reason),
            _ => None,
        }
    }
}

/// Returns the status of the login of `token`. While it is pending, waits up to `wait` for it to change, unless too many
/// requests wait already.
pub(crate) async fn check(
    service: &Service,
    token: &str,
    application: AppId,
    wait: Duration,
) -> Result<Check, LoginError> {
    let token = LoginToken::decode(token).ok_or(LoginError::LoginUnknown)?;
    let subscribe = || {
        let (waiters, connections) = (&service.state.waiters, service.connection_limit());
        waiters.subscribe(token.hash(), application, connections)
    };
    // Without a place among them the response is the present status, as without `wait`.
    let waiter = (!wait.is_zero()).then(subscribe).flatten();
    let mut deadline = tokio::time::Instant::now() + wait;
    loop {
        if let Some((login, result)) = issue_seen(service, &token, application).await? {
            return Ok(Check {
                status: CheckStatus::Complete(Box::new(result)),
                expires_in: login.responds_until().seconds_from(service.now()),
            });
        }
        // Subscribed before the store is read, so that no change in between is missed.
        let woken = waiter.as_ref().map(Waiter::woken);
        let login = find_polling_login(service, &token, application).await?;
        let now = service.now();
        let (woken, status_end) = match (login.progress(now), woken) {
            (Progress::Pending { until }, Some(woken))
                if tokio::time::Instant::now() < deadline =>
            {
                (woken, tokio::time::Instant::now() + until.since(now))
            }
            (progress, _) => {
                let status = match progress {
                    Progress::Pending { .. } => CheckStatus::Pending,
                    Progress::Failed(reason) => CheckStatus::Failed(reason.as_str()),
                    Progress::Expired => CheckStatus::Expired,
                    Progress::Complete(completion) => {
                        let (result, _) =
                            issue_derived(service, &token, &login, completion).await?;
                        CheckStatus::Complete(Box::new(result))
                    }
                };
                let expires_in = login.responds_until().seconds_from(service.now());
                return Ok(Check { status, expires_in });
            }
        };
        let _waiting = service.state.metrics.checks.wait();
        tokio::select! {
            () = woken => {}
            // Neither an expiry nor the end of a claim is a write, so nothing else would wake the request then.
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
    match login.progress(service.now()) {
        Progress::Pending { .. } => Err(LoginError::LoginPending),
        Progress::Complete(completion) => {
            let (result, _) = issue_derived(service, &token, &login, completion).await?;
            Ok(result)
        }
        Progress::Failed(reason) => Err(reason.into()),
        Progress::Expired => Err(LoginError::LoginExpired),
    }
}

/// Redeems a ticket, once, for the result of its login, which began with this challenge or without one.
pub(crate) async fn redeem_ticket(
    service: &Service,
    (ticket, challenge): (&str, Option<Challenge>),
    application: AppId,
) -> Result<LoginResult, LoginError> {
    let ticket = Ticket::decode(ticket).ok_or(LoginError::LoginUnknown)?;
    // One credential for all tries: by it, a retry recognises that an earlier one succeeded and only its response was
    // lost.
    let (ticket, credential) = (ticket.hash(challenge.as_ref()), random_credential());
    let issued = (&credential, service.config.lifetimes.credential);
    let logins = &service.state.logins;
    let redeem = || logins.redeem(&ticket, application, issued, service.now());
    match retry_store(service, redeem).await? {
        // The ticket has inserted the credential.
        Redemption::Redeemed(completion) => Ok(result(service, *completion, &credential)),
        Redemption::AlreadyUsed => Err(LoginError::LoginUsed),
        Redemption::Expired => Err(LoginError::LoginExpired),
        Redemption::Unknown => Err(LoginError::LoginUnknown),
    }
}

async fn find_polling_login(
    service: &Service,
    token: &LoginToken,
    application: AppId,
) -> Result<Login, LoginError> {
    let login = service.state.logins.find(&token.hash()).await?;
    // A token of another application is unknown, not forbidden: so its existence is not revealed.
    let login = login.filter(|login| is_polling_of(login, application));
    login.ok_or(LoginError::LoginUnknown)
}

fn is_polling_of(login: &Login, application: AppId) -> bool {
    login.application == application && matches!(login.mode, Mode::Polling { .. })
}

/// Issues the credential of a login that this process has just completed, in one statement. `None` if it knows of no such
/// login, or the store does not any more, or has issued the credential before: then the login must be found.
async fn issue_seen(
    service: &Service,
    token: &LoginToken,
    application: AppId,
) -> Result<Option<(Arc<Login>, LoginResult)>, LoginError> {
    let (logins, state) = (&service.state.logins, token.hash());
    let seen = logins.seen(&state);
    if let Some(login) = seen.filter(|login| is_polling_of(login, application))
        && let Progress::Complete(completion) = login.progress(service.now())
    {
        logins.forget(&state);
        let (result, is_new) = issue_derived(service, token, &login, completion).await?;
        return Ok(is_new.then_some((login, result)));
    }
    Ok(None)
}

/// Issues the credential of a polling login. It is stored only now, since it is derived from the token, which only the client
/// has. It is the same each time and from each backend, and if it was revoked, it stays revoked. Returns also whether this
/// call has stored it.
async fn issue_derived(
    service: &Service,
    token: &LoginToken,
    login: &Login,
    completion: &Completion,
) -> Result<(LoginResult, bool), LoginError> {
    let credential = token.credential();
    let new = new_credential(service, completion, login, &credential);
    // Not retried: the client asks again, and gets the same credential.
    let is_new = try_store(service, service.state.credentials.insert(new)).await?;
    let result = result(service, completion.clone(), &credential);
    Ok((result, is_new))
}

/// Issues a random credential. The client cannot request it again, so the store is retried.
pub(super) async fn issue_random(
    service: &Service,
    completion: Completion,
    login: &Login,
) -> Result<LoginResult, LoginError> {
    let credential = random_credential();
    let new = new_credential(service, &completion, login, &credential);
    let insert = || service.state.credentials.insert(new.clone());
    retry_store(service, insert).await?;
    Ok(result(service, completion, &credential))
}

fn new_credential(
    service: &Service,
    completion: &Completion,
    login: &Login,
    credential: &Credential,
) -> NewCredential {
    let lifetime = service.config.lifetimes.credential;
    NewCredential {
        hash: credential.hash(),
        login: credential.login_hash(),
        logged_in: CredentialClaims {
            account: completion.account.clone(),
            application: login.application,
            expires_at: completion.finished_at.plus(lifetime),
        },
        created_at: completion.finished_at,
        outcome: Some(*login.state.hash().as_bytes()),
    }
}

fn result(service: &Service, completion: Completion, credential: &Credential) -> LoginResult {
    let lifetime = service.config.lifetimes.credential;
    let expires_at = completion.finished_at.plus(lifetime);
    LoginResult {
        account: completion.account,
        authorization: credential.encode().to_string(),
        expires_in: expires_at.seconds_from(service.now()),
        created: completion.created,
    }
}

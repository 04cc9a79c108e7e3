//! Handles the callback, the provider's redirect: the login completes or fails, once.

use std::{fmt::Display, net::IpAddr, ops::ControlFlow, sync::Arc, time::Instant};

use signpost_kit::server::shutdown::{Phase, wait_for_phase};
use signpost_store::StoreError;
use tracing::{Instrument, Span, field};

use super::{
    BrowserRequest, BrowserStep,
    find::ensure_pending,
    outcome::{
        BrowserOutcome, CallbackLogin, Ended, Failure, failed_url, outcome_again, store_completion,
        store_failure,
    },
    refusal::Refusal,
    retry_store,
    return_to::is_allowed,
};
use crate::{
    config::ProviderName,
    error::LoginError,
    metrics::providers::{LoginMode, LoginOutcome, ProviderMetrics},
    provider::{Provider, ProviderFault, deadline},
    records::{
        accounts::{Account, User},
        logins::{ClaimTimeouts, FailureReason, Mode, Status},
    },
    service::Service,
    trace::carried,
};

/// The parameters of a callback, apart from `state`.
#[derive(Clone)]
pub(crate) struct Callback<'a> {
    pub(crate) grant: Grant,
    /// The issuer. RFC 9207.
    pub(crate) iss: Option<&'a str>,
    /// The provider, of a callback that is a provider's own.
    pub(crate) provider: Option<&'a str>,
}

/// The provider's decision. RFC 6749 section 4.1.2.
#[derive(Clone)]
pub(crate) enum Grant {
    /// The authorization code: the user allowed the login. The provider's calls must have ended at that time.
    Code(String, tokio::time::Instant),
    /// The provider has sent an error.
    Refused(Refusal),
}

impl BrowserRequest<'_> {
    /// Completes or fails the login of a callback. Callbacks from another browser or provider are rejected and change
    /// nothing. A second one changes nothing, either: its browser has the cookie as long as the login could last, and
    /// learns the outcome. Only callbacks of the login's own browser count against the limit.
    pub(crate) async fn finish(&self, callback: Callback<'_>) -> Result<BrowserStep, LoginError> {
        if let Some(seen) = self.seen().await?
            && let Ok(login) = seen.of_callback()
        {
            match self.finish_found(&login, callback.clone()).await {
                // Changed since, by another process.
                Err(LoginError::LoginMismatch | LoginError::LoginUsed) => {}
                finished => return finished,
            }
        }
        match self.find_callback_login().await? {
            ControlFlow::Continue(login) => self.finish_found(&login, callback).await,
            ControlFlow::Break(outcome) => Ok(outcome.into()),
        }
    }

    async fn finish_found(
        &self,
        callback_login: &CallbackLogin,
        callback: Callback<'_>,
    ) -> Result<BrowserStep, LoginError> {
        let CallbackLogin {
            login,
            application,
            cookie,
            ..
        } = callback_login;
        if let Mode::Redirect { return_to } = &login.mode {
            match return_to {
                // Checked again: the application may have lost the origin since the login began.
                Some(url) if !is_allowed(url, &application.return_to) => {
                    return Err(LoginError::ReturnToNotAllowed);
                }
                None if self.wants_page => return Err(LoginError::NO_RETURN_TO),
                _ => {}
            }
        }
        // A login whose user has not chosen a provider was never at one.
        let name = login.provider.provider();
        let name = name.ok_or(LoginError::LoginMismatch)?;
        if let Some(provider) = self.service.providers.find(name)
            && !is_from(provider, &callback).await?
        {
            return Err(LoginError::LoginMismatch);
        }
        if let Grant::Refused(refusal @ Refusal::Temporary(_)) = &callback.grant {
            return Ok(self.try_again(callback_login, name, *refusal)?.into());
        }
        let ended = self.finish_or_find(callback_login, callback.grant).await?;
        // Only what is stored is found by the short cookie.
        let short = ended.is_stored.then(|| {
            let remaining = login.expires_at.seconds_from(self.service.now());
            let set = self.cookie_of(&login.state);
            set.set(&cookie.encode(), remaining)
        });
        Ok(BrowserStep::Finished(ended.outcome, short))
    }

    /// The provider may be available again soon: the login goes on, and the page has a link that leads to the provider again.
    /// Counts as a callback, so that it is limited like one.
    fn try_again(
        &self,
        CallbackLogin {
            login, application, ..
        }: &CallbackLogin,
        provider: &ProviderName,
        refusal: Refusal,
    ) -> Result<BrowserOutcome, LoginError> {
        let (limits, now) = (&self.service.limits, self.service.state.clock.instant());
        limits.count_callback_without_calls(self.client, now)?;
        log_refusal(self.service, provider, refusal);
        let return_to = login.mode.return_to();
        let back = return_to.map(|url| failed_url(url, FailureReason::ProviderFailed));
        Ok(BrowserOutcome::TryAgain {
            state: login.state.encode(),
            application: Arc::clone(application),
            back,
        })
    }

    /// Finishes a login that is bound to this browser. If another request of this browser was first, returns its outcome.
    pub(super) async fn finish_or_find(
        &self,
        login: &CallbackLogin,
        grant: Grant,
    ) -> Result<Ended, LoginError> {
        match finish_once(self.service, self.client, login.clone(), grant).await {
            Err(LoginError::LoginUsed) => self.find_outcome(login).await,
            finished => finished,
        }
    }

    /// Returns the outcome of a login that another request of this browser has used.
    pub(super) async fn find_outcome(
        &self,
        CallbackLogin {
            login,
            application,
            cookie,
            ..
        }: &CallbackLogin,
    ) -> Result<Ended, LoginError> {
        let service = self.service;
        let stored = service.state.logins.find(login.state.hash()).await?;
        let stored = stored.ok_or(LoginError::LoginUsed)?;
        let outcome = outcome_again(self, &stored, Some(cookie), application, service.now());
        Ok(Ended {
            outcome: outcome.ok_or(LoginError::LoginUsed)?,
            is_stored: matches!(stored.status, Status::Complete(_) | Status::Failed { .. }),
        })
    }
}

/// Whether a provider has sent this callback, as far as it says so.
async fn is_from(provider: &Provider, callback: &Callback<'_>) -> Result<bool, LoginError> {
    if !provider.is_own_callback(callback.provider) {
        return Ok(false);
    }
    match &callback.grant {
        Grant::Code(_, deadline) => {
            let accepted = provider.accepts_issuer(callback.iss, *deadline).await;
            accepted.map_err(|fault| provider_failed(provider, &fault))
        }
        // If the provider has published nothing, its error can only end this browser's own login.
        Grant::Refused(_) => {
            let accepted = provider.accepts_issuer(callback.iss, deadline()).await;
            Ok(accepted.unwrap_or(true))
        }
    }
}

/// Claims and finishes a login, in a task of its own: if the browser disconnects, the login must still finish, and a
/// shutdown waits for the task.
async fn finish_once(
    service: &Arc<Service>,
    client: IpAddr,
    login: CallbackLogin,
    grant: Grant,
) -> Result<Ended, LoginError> {
    let now = service.state.clock.instant();
    // Outside of the task: a browser that leaves while it waits takes no permit.
    let permit = service.limits.count_callback(client, now).await?;
    let own = Arc::clone(service);
    let work = async move {
        let _permit = permit;
        let claimed = claim(&own, login).await?;
        finish_claimed(&own, &claimed, grant).await
    };
    let work = carried(work).instrument(Span::current());
    let task = service.state.tasks.spawn(work);
    let failed = |_| LoginError::Internal {
        what: "the task of a callback failed",
    };
    task.await.map_err(failed)?
}

/// Claims the login for this callback. If another request was first, the error says what happened to the login.
async fn claim(service: &Service, mut claimed: CallbackLogin) -> Result<CallbackLogin, LoginError> {
    let (store, login, now) = (&service.state.logins, &mut claimed.login, service.now());
    let timeouts = ClaimTimeouts::for_store(&service.config.store);
    let claim = timeouts.new_claim(now, login.expires_at, service.config.lifetimes.claim);
    login.status = Status::Exchanging(claim);
    let is_claimed = match login.mode {
        Mode::Redirect { .. } => store.insert(login, now).await?,
        Mode::Polling { .. } => {
            let (state, cookie) = (login.state.hash(), claimed.cookie.hash());
            let provider = login.provider.provider();
            store.claim(state, &cookie, provider, claim, now).await?
        }
    };
    if is_claimed {
        return Ok(claimed);
    }
    let stored = store.find(login.state.hash()).await?;
    let stored = stored.ok_or(LoginError::LoginUnknown)?;
    ensure_pending(&stored, service.now())?;
    // Still pending: it is bound to another browser by now, or its user has chosen another provider.
    Err(LoginError::LoginMismatch)
}

/// Completes or fails a claimed login, and counts how it ended.
async fn finish_claimed(
    service: &Service,
    claimed: &CallbackLogin,
    grant: Grant,
) -> Result<Ended, LoginError> {
    let login = &claimed.login;
    let finished = match complete(service, claimed, grant).await {
        Ok(outcome) => {
            let is_stored = true;
            Ok((Ended { outcome, is_stored }, LoginOutcome::Success))
        }
        Err(failure) => store_failure(service, login, failure).await,
    };
    let outcome = match &finished {
        Ok((_, outcome)) => *outcome,
        Err(error) => error.into(),
    };
    // The user of a login without a provider has cancelled it.
    if let Some(name) = login.provider.provider() {
        let metrics = service.state.metrics.providers.of(name);
        metrics.count_finished(LoginMode::from(&login.mode), outcome);
    }
    finished.map(|(ended, _)| ended)
}

/// Completes a claimed login: exchanges the code for the user's account, and stores the outcome.
async fn complete(
    service: &Service,
    claimed: &CallbackLogin,
    grant: Grant,
) -> Result<BrowserOutcome, Failure> {
    let (code, deadline) = match grant {
        Grant::Code(code, deadline) => (code, deadline),
        Grant::Refused(refusal) => {
            if let Some(name) = claimed.login.provider.provider() {
                log_refusal(service, name, refusal);
            }
            return Err(refusal.reason().into());
        }
    };
    let name = claimed.login.provider.provider();
    // A reload may have removed the provider since the login began.
    let provider = name.and_then(|name| service.providers.find(name));
    let provider = provider.ok_or_else(|| {
        if let Some(name) = name {
            let metrics = service.state.metrics.providers.of(name);
            log_failed_login(&metrics, name, &"it is no longer configured", None);
        }
        FailureReason::ProviderFailed
    })?;
    let user = identify(service, provider, claimed, code, deadline).await?;
    let account = find_or_create_account(service, provider, &user).await?;
    Span::current().record("account.id", account.0.id.get());
    let stored = store_completion(service, claimed, account).await;
    stored.map_err(Failure::Store)
}

/// Asks the provider which user logged in, but not beyond the end of a shutdown.
async fn identify(
    service: &Service,
    provider: &Provider,
    CallbackLogin { cookie, .. }: &CallbackLogin,
    code: String,
    deadline: tokio::time::Instant,
) -> Result<User, FailureReason> {
    let identified = tokio::select! {
        identified = provider.identify(code, cookie, service.now(), deadline) => identified,
        // Then there is time left to store the outcomes of logins.
        () = wait_for_phase(&service.state.phase, Phase::GivingUp) => {
            let (name, metrics) = (&provider.config.name, &provider.metrics);
            log_failed_login(metrics, name, &"it did not answer before the shutdown", None);
            return Err(FailureReason::ProviderTimeout);
        }
    };
    identified.map_err(|fault| {
        log_fault(provider, &fault);
        fault.reason()
    })
}

/// Logs why a login cannot go on to its provider, or on from it, and returns the error. The login itself goes on.
pub(super) fn provider_failed(provider: &Provider, fault: &ProviderFault) -> LoginError {
    log_fault(provider, fault);
    fault.reason().into()
}

fn log_fault(provider: &Provider, fault: &ProviderFault) {
    let Provider {
        config, metrics, ..
    } = provider;
    log_failed_login(metrics, &config.name, fault, fault.causes());
}

/// Logs an error of a callback, unless it is the user's own "no", like a fault; but in lines of its own, since a browser can
/// send it.
fn log_refusal(service: &Service, provider: &ProviderName, refusal: Refusal) {
    if refusal == Refusal::Denied {
        return;
    }
    Span::current().record("provider.error", field::display(&refusal));
    let metrics = service.state.metrics.providers.of(provider);
    if let Some(logins) = metrics.refusals.count(Instant::now()) {
        tracing::warn!(logins, %provider, %refusal, "the provider sent browsers back with an error");
    }
}

/// Logs why a provider failed: in the access line of each callback, and in a line a minute for each provider, since an outage
/// of it fails all logins.
fn log_failed_login(
    metrics: &ProviderMetrics,
    provider: &ProviderName,
    fault: &dyn Display,
    cause: Option<String>,
) {
    let request = Span::current();
    request.record("provider.error", field::display(fault));
    request.record("provider.cause", &cause);
    if let Some(logins) = metrics.failures.count(Instant::now()) {
        tracing::warn!(logins, %provider, %fault, cause, "logins failed at the provider");
    }
}

/// Returns the user's account, and whether this login created it.
async fn find_or_create_account(
    service: &Service,
    provider: &Provider,
    user: &User,
) -> Result<(Account, bool), StoreError> {
    let (config, now) = (&provider.config, service.now());
    let mut tries = 0;
    let find_or_create = || {
        tries += 1;
        let accounts = &service.state.accounts;
        accounts.find_or_create(&config.name, user, now)
    };
    let (account, created) = retry_store(service, find_or_create).await?;
    // An earlier try may have created the account, and only the store's response was lost.
    let created = created || (tries > 1 && account.created_at == now);
    Ok((account, created))
}

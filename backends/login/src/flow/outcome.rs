//! Storing what a login came to, with some patience.

use std::time::Duration;

use signpost_kit::clock::Timestamp;
use signpost_store::StoreError;
use tokio::time::Instant;

use crate::{
    error::LoginError,
    logins::{ClaimTerms, FailureReason, FinishTimes, Login, Mode, Outcome},
    service::Service,
};

/// A store that is away is asked again for so long: one that is restarted takes about a second.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(400);

/// When an outcome was stored, and how long it is told.
pub(super) struct StoredOutcome {
    pub(super) at: Timestamp,
    pub(super) claimable_until: Timestamp,
}

/// Lets the login end badly. Of redirect logins, which strangers can begin, so many are kept as failed at most: of others
/// nothing is left, and a second callback is a first one.
pub(super) async fn fail(
    service: &Service,
    login: &Login,
    reason: FailureReason,
) -> Result<(), LoginError> {
    if matches!(login.mode, Mode::Redirect { .. })
        && !service.limits.keeps_failure(service.state.instant())
    {
        let unclaim = || {
            service
                .state
                .logins
                .store()
                .unclaim_redirect(login.state.hash())
        };
        return Ok(patiently(unclaim).await?);
    }
    store_outcome(service, login, Outcome::Failed(reason))
        .await
        .map(drop)
}

/// Stores what the login came to.
pub(super) async fn store_outcome(
    service: &Service,
    login: &Login,
    outcome: Outcome,
) -> Result<StoredOutcome, LoginError> {
    let claim_ttl = service.config.lifetimes().claim;
    let terms = ClaimTerms::of(service.config.store());
    let mut at = service.now();
    let finish = || {
        // Anew at each try: it must not go by a time at which the claim had not ended yet.
        at = service.now();
        let times = FinishTimes {
            at,
            stored_by: terms.stored_by(login, at),
            claimable_until: at.plus(claim_ttl),
        };
        let (state, outcome) = (login.state.hash(), outcome.clone());
        service.state.logins.finish(state, outcome, times)
    };
    if patiently(finish).await? {
        Ok(StoredOutcome {
            at,
            claimable_until: at.plus(claim_ttl),
        })
    } else {
        // The claim has ended, or may before this is stored; whoever asks then is told that the login failed.
        Err(LoginError::LoginExpired)
    }
}

/// Asks the store for something that may be asked for twice. Where it is away for a moment it is asked again: the person
/// has been at the provider by now, and would have to begin all over. One that hangs is not, since that took its time
/// already.
pub(super) async fn patiently<T, A>(mut ask: impl FnMut() -> A) -> Result<T, StoreError>
where
    A: Future<Output = Result<T, StoreError>>,
{
    let last_try = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Err(_) if Instant::now() + PAUSE <= last_try => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

//! Stores the outcome of a login, with retries.

use std::time::Duration;

use signpost_kit::clock::Timestamp;
use signpost_store::StoreError;
use tokio::time::Instant;

use crate::{
    error::LoginError,
    records::logins::{ClaimTimeouts, FailureReason, FinishTimes, Login, Mode, Outcome},
    service::Service,
};

/// How long an unavailable store is retried: a restart of the store takes about a second.
const RETRY_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between two tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(400);

/// Stores that the login failed.
///
/// Anyone can begin redirect logins, so the number of failed ones that are stored is limited. Beyond the limit the
/// login's row is deleted, and a second callback is handled like the first.
pub(super) async fn fail(
    service: &Service,
    login: &Login,
    reason: FailureReason,
) -> Result<(), LoginError> {
    if matches!(login.mode, Mode::Redirect { .. })
        && !service.limits.count_failure(service.state.clock.instant())
    {
        let unclaim = || service.state.logins.unclaim_redirect(login.state.hash());
        return Ok(retry_store(unclaim).await?);
    }
    store_outcome(service, login, Outcome::Failed(reason))
        .await
        .map(drop)
}

/// Stores the outcome of the login, and returns when it was stored.
pub(super) async fn store_outcome(
    service: &Service,
    login: &Login,
    outcome: Outcome,
) -> Result<Timestamp, LoginError> {
    let claim_ttl = service.config.lifetimes.claim;
    let timeouts = ClaimTimeouts::for_store(&service.config.store);
    let (store, state) = (&service.state.logins, login.state.hash());
    let mut at = service.now();
    let finish = || {
        // Read for each try: with the time of the first, a claim that has ended since would still seem valid.
        at = service.now();
        let times = FinishTimes {
            at,
            deadline: timeouts.store_deadline(login, at),
            claimable_until: at.plus(claim_ttl),
        };
        let stored = store.finish(state, outcome.clone(), times);
        async {
            let stored = stored.await;
            // Also after an error: the outcome may be stored, and only the response lost.
            service.state.waiters.wake(state);
            stored
        }
    };
    if retry_store(finish).await? {
        Ok(at)
    } else {
        // The claim has ended, or may end before the outcome is stored. `/check` reports the login as failed then.
        Err(LoginError::LoginExpired)
    }
}

/// Runs an idempotent call to the store, and retries it if it fails: by now the user has been at the provider, and
/// would have to start over. A call that takes about as long as the retry timeout is not retried.
pub(super) async fn retry_store<T, A>(mut call: impl FnMut() -> A) -> Result<T, StoreError>
where
    A: Future<Output = Result<T, StoreError>>,
{
    let last_try = Instant::now() + RETRY_TIMEOUT;
    loop {
        match call().await {
            Err(_) if Instant::now() + RETRY_INTERVAL <= last_try => {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            result => return result,
        }
    }
}

//! Deletes what is older than the audit's retention, by default nothing, old responses and tokens of the management API, and
//! old comparisons of versions and rejected requests that were asked for: hourly and in batches.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use signpost_kit::task::Task;
use signpost_store::{
    Store, StoreError,
    tables::{audit, idempotency},
};

use signpost_management::{administration::tokens::Tokens, reports::rejections};
use signpost_proxy::{
    Gateway,
    program::{MAX_DELETED_TALLIES, delete_old_tallies},
};

/// Time from one deletion to the next.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The same while more is due, or the store did not answer.
const SHORT_INTERVAL: Duration = Duration::from_secs(5);

/// Deletes until the process ends, by the current configuration.
pub(crate) async fn run(current: Arc<ArcSwap<Gateway>>, store: Store) {
    let task = Task::quiet("old rows cannot be deleted now");
    let turn = || async {
        match delete(&current, &store).await {
            Ok(false) => (Ok(true), INTERVAL),
            has_more_or_failed => (has_more_or_failed, SHORT_INTERVAL),
        }
    };
    task.run(turn).await;
}

/// Deletes a batch of each. `true` if there may be more.
async fn delete(current: &ArcSwap<Gateway>, store: &Store) -> Result<bool, StoreError> {
    let gateway = current.load_full();
    let now = gateway.state.clock.now();
    // Without a limit: operators make few of these rows.
    Tokens::new(store.clone()).delete_old(now).await?;
    rejections::delete_old(store).await?;
    let mut has_more = idempotency::delete_old(store, now).await? >= idempotency::MAX_DELETED;
    has_more |= delete_old_tallies(store, now).await? >= MAX_DELETED_TALLIES;
    if let Some(retention) = gateway.policy.audit_retention {
        let deleted = audit::delete_before(store, now.minus(retention)).await?;
        has_more |= deleted >= audit::MAX_DELETED;
    }
    Ok(has_more)
}

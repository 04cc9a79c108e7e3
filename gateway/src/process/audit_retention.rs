//! Deletes what is older than the audit's retention, hourly and in batches. By default nothing is.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use signpost_store::{
    Store, StoreError,
    tables::audit::{MAX_DELETED, delete_before},
};
use tokio::time::sleep;

use crate::gateway::Gateway;

/// Time from one deletion to the next.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The same while more is due, or the store did not answer.
const SHORT_INTERVAL: Duration = Duration::from_secs(5);

/// Deletes until the process ends, by the current configuration.
pub(crate) async fn run(current: Arc<ArcSwap<Gateway>>, store: Store) {
    loop {
        let has_more = delete(&current, &store).await.unwrap_or_else(|error| {
            tracing::debug!(cause = %error.in_short(), "the audit's old rows cannot be deleted now");
            true
        });
        sleep(if has_more { SHORT_INTERVAL } else { INTERVAL }).await;
    }
}

/// Deletes a batch. `true` if there may be more.
async fn delete(current: &ArcSwap<Gateway>, store: &Store) -> Result<bool, StoreError> {
    let gateway = current.load_full();
    let Some(retention) = gateway.policy.audit_retention else {
        return Ok(false);
    };
    let before = gateway.state.clock.now().minus(retention);
    Ok(delete_before(store, before).await? >= MAX_DELETED)
}

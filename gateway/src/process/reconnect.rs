//! Tries to connect to addresses that requests found unreachable and that no health check restores: metrics, alerts and
//! `versions list` then show that they are back, even if no request comes.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use tokio::time::sleep;

use signpost_proxy::Gateway;

/// Time from one round of attempts to the next.
const INTERVAL: Duration = Duration::from_secs(5);

/// Never returns.
pub(crate) async fn run(current: Arc<ArcSwap<Gateway>>) {
    loop {
        sleep(INTERVAL).await;
        let gateway = current.load_full();
        let limit = gateway.policy.bounds.timeouts.connect;
        let targets = gateway.policy.backends.targets();
        // All at once: one after the other, each unreachable address would delay the next by its whole timeout.
        join_all(targets.map(|target| target.reconnect(limit))).await;
    }
}

//! Keeps the addresses drained that the store has as drained.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use signpost_kit::task::{Outcome, Task};
use signpost_store::{Store, StoreError};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use signpost_management::operations::backends;
use signpost_proxy::Gateway;

/// Time from one look to the next, if nothing changes: drainings end, and reloads bring other addresses.
const INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of the first look, which the start waits for.
const START_TIMEOUT: Duration = Duration::from_secs(2);
/// What has ended is deleted once nothing has been drained for an hour: the clocks of gateways may differ.
const RETENTION: Duration = Duration::from_secs(60 * 60);

/// Reads the drained addresses when they change, and drains them at the current gateway.
pub(crate) struct DrainWatch {
    current: Arc<ArcSwap<Gateway>>,
    store: Store,
    /// Notified by the change feed.
    changed: Arc<Notify>,
    /// Whether there was no change since they were read.
    is_read: bool,
    /// The configuration at which nothing is drained; `None` if something is.
    cleared: Option<u64>,
}

impl DrainWatch {
    pub(crate) const fn new(
        current: Arc<ArcSwap<Gateway>>,
        store: Store,
        changed: Arc<Notify>,
    ) -> Self {
        Self {
            current,
            store,
            changed,
            is_read: false,
            cleared: None,
        }
    }

    /// The first look, before requests are served.
    pub(crate) async fn start(&mut self) {
        // If the store does not answer, the next look repeats it.
        let _ = timeout(START_TIMEOUT, self.look()).await;
    }

    /// Looks until the process ends.
    pub(crate) async fn run(mut self) {
        let mut task = Task::quiet("the drained addresses cannot be read now");
        loop {
            task.log(self.look().await);
            tokio::select! {
                // A change during a look is not lost: `notify_one` leaves a permit, and the next look reads again.
                () = self.changed.notified() => self.is_read = false,
                () = sleep(INTERVAL) => {}
            }
        }
    }

    async fn look(&mut self) -> Outcome {
        // If it fails, what is known stays drained until its end.
        let outcome = self.read_drained().await.map(|()| true);
        let gateway = self.current.load_full();
        let (drained, generation) = (gateway.state.drained.load(), gateway.policy.generation);
        if drained.is_empty() && self.cleared == Some(generation) {
            return outcome;
        }
        let now = gateway.state.clock.now();
        // Each look repeats this: a reload brings other addresses, and a draining ends without a change of the store.
        gateway.policy.backends.drain(&drained, now);
        self.cleared = drained.is_empty().then_some(generation);
        outcome
    }

    async fn read_drained(&mut self) -> Result<(), StoreError> {
        let state = Arc::clone(&self.current.load().state);
        if !self.is_read {
            let all = backends::all_drained(&self.store).await?;
            state.drained.store(Arc::new(all));
            self.is_read = true;
        }
        let before = state.clock.now().minus(RETENTION);
        let last = state
            .drained
            .load()
            .iter()
            .map(|drained| drained.until)
            .max();
        if last.is_some_and(|last| last < before) {
            // The list in memory still has the deleted rows: unless it is read again, each look would delete them
            // again.
            self.is_read = false;
            backends::delete_ended(&self.store, before).await?;
        }
        Ok(())
    }
}

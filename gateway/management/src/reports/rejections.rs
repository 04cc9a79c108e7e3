//! A rejected request that an operator asks for, wherever it was rejected: the table `rejections`, in both databases. Who asks
//! writes a row; the gateway that has rejected the request adds what it knows of it.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use signpost_kit::task::Task;
use signpost_protocol::request_id::RequestId;
use signpost_proxy::{SeenRequest, Watch};
use signpost_store::{Changed, Store, StoreError, values};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::gateways::{self, now};

/// How long the gateways are waited for. The change feed reaches each within a second.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Time from one look for what they have found to the next.
const PAUSE: Duration = Duration::from_millis(50);
/// Rows are deleted after a minute: when the next request is asked for, or hourly.
const RETENTION_MS: i64 = 60_000;
/// Who asked longer ago no longer waits.
const ASKED_MS: i64 = 5_000;
/// Requests that a gateway looks for at once: those asked for last.
const MAX_WANTED: usize = 64;

/// Asks all gateways of the store for a request; `None` if none of them has it among its last rejected ones.
///
/// # Errors
///
/// The store is unavailable.
pub async fn ask(store: &Store, id: &RequestId) -> Result<Option<SeenRequest>, StoreError> {
    let gateways = gateways::list(store).await?;
    // Otherwise each such question would wait its whole time for nobody.
    if !gateways.iter().any(|gateway| gateway.is_alive) {
        return Ok(None);
    }
    delete_old(store).await?;
    let now = now(store);
    let insert = format!(
        "INSERT INTO rejections (request_id, asked_at) VALUES ($1, {now}) \
         ON CONFLICT (request_id) DO UPDATE SET asked_at = excluded.asked_at"
    );
    let changed = (&*insert, "''");
    store
        .change(Changed::Rejection, changed, values![id.as_str()])
        .await?;
    let until = Instant::now() + MAX_WAIT;
    loop {
        let query = "SELECT found FROM rejections WHERE request_id = $1 AND found IS NOT NULL";
        let request: Option<(String,)> = store.row(query, values![id.as_str()]).await?;
        if let Some((request,)) = request {
            return Ok(serde_json::from_str(&request).ok());
        }
        // The time is looked at after the store, so that there is a last look at its end.
        if Instant::now() > until {
            return Ok(None);
        }
        sleep(PAUSE).await;
    }
}

/// Deletes what was asked for more than a minute ago.
pub async fn delete_old(store: &Store) -> Result<(), StoreError> {
    let now = now(store);
    let delete = format!("DELETE FROM rejections WHERE asked_at < {now} - {RETENTION_MS}");
    store.execute(&delete, Vec::new()).await.map(drop)
}

/// Looks for what operators ask for, among what this gateway has rejected.
pub struct RejectionSearch {
    /// The store.
    pub store: Store,
    /// The last rejected requests of this gateway.
    pub watch: Arc<Watch>,
    /// Notified by the change feed.
    pub wanted: Arc<Notify>,
}

impl RejectionSearch {
    /// Searches until the process ends.
    pub async fn run(self) {
        let mut task = Task::quiet("rejected requests cannot be looked for now");
        loop {
            self.wanted.notified().await;
            task.log(self.search().await.map(|()| true));
        }
    }

    async fn search(&self) -> Result<(), StoreError> {
        let now = now(&self.store);
        let query = format!(
            "SELECT request_id FROM rejections WHERE found IS NULL AND asked_at > {now} - {ASKED_MS} \
             ORDER BY asked_at DESC LIMIT {MAX_WANTED}"
        );
        let wanted: Vec<(String,)> = self.store.rows(&query, Vec::new()).await?;
        for (id,) in wanted {
            if let Some(seen) = self.watch.rejected(&id) {
                let update = "UPDATE rejections SET found = $2 WHERE request_id = $1";
                let request = json!(seen).to_string();
                self.store.execute(update, values![id, request]).await?;
            }
        }
        Ok(())
    }
}

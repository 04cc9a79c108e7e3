//! Hearing of changes without `LISTEN`: what was recorded is read again and again.

use std::{collections::HashSet, time::Duration};

use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, Row};

use super::sweep::Sweep;
use crate::{Change, StoreError, Topic, postgres::PostgresDatabase};

/// Well within the second that a change may take.
const INTERVAL: Duration = Duration::from_millis(200);
/// All connections of the pool may be in use for a moment. After that, nothing is known of the server any more.
const BUSY: Duration = Duration::from_secs(5);
/// The window is longer than any process' longest statement, and a second or two: so much earlier than now may a change
/// have been made that is only seen now.
const RECORDED: &str = "SELECT id, topic, key FROM changes WHERE changed_at > now() - interval '70 seconds' ORDER BY id";

/// Reads what is recorded.
///
/// Numbers are given when a change is made, and it is seen when it is committed, so a higher number may be seen before
/// a lower one. That is why whatever is younger than a window is looked at each time, and what was seen is remembered.
pub(super) struct Poller {
    database: PostgresDatabase,
    /// Without one of its own it uses the pool's.
    own: Option<Client>,
    seen: HashSet<i64>,
}

impl Poller {
    /// From now on: what is recorded already is no news.
    pub(super) async fn begin(
        database: &PostgresDatabase,
        own: Option<Client>,
    ) -> Result<Self, StoreError> {
        let mut poller = Self {
            database: database.clone(),
            own,
            seen: HashSet::new(),
        };
        poller.look(&mut drop).await?;
        Ok(poller)
    }

    pub(super) const fn database(&self) -> &PostgresDatabase {
        &self.database
    }

    /// Tells of each change for a while, or until the server fails to answer.
    pub(super) async fn run_until(
        &mut self,
        end: Instant,
        on_change: &mut impl FnMut(Change),
    ) -> Result<(), StoreError> {
        let mut sweep = Sweep::new();
        let mut last_look = Instant::now();
        while Instant::now() < end {
            tokio::time::sleep(INTERVAL).await;
            match self.look(on_change).await {
                Ok(()) => last_look = Instant::now(),
                Err(StoreError::Busy) if last_look.elapsed() < BUSY => {}
                Err(error) => return Err(error),
            }
            sweep.begin_if_due(&self.database);
        }
        Ok(())
    }

    async fn look(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), StoreError> {
        let rows = self.recorded().await?;
        let mut still_there = HashSet::with_capacity(rows.len());
        for row in &rows {
            let id = row.try_get("id")?;
            if !self.seen.contains(&id) {
                on_change(change(row)?);
            }
            still_there.insert(id);
        }
        self.seen = still_there;
        Ok(())
    }

    async fn recorded(&self) -> Result<Vec<Row>, StoreError> {
        match &self.own {
            Some(client) => {
                let rows = timeout(self.database.patience(), client.query(RECORDED, &[]));
                Ok(rows.await.map_err(|_| StoreError::TimedOut)??)
            }
            None => self.database.session().await?.query(RECORDED, &[]).await,
        }
    }
}

fn change(row: &Row) -> Result<Change, StoreError> {
    let topic: &str = row.try_get("topic")?;
    Ok(match Topic::named(topic) {
        Some(topic) => Change::Item {
            topic,
            key: row.try_get("key")?,
        },
        // A newer release's.
        None => Change::Everything,
    })
}

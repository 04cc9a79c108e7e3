//! The feed without `LISTEN`: polls the recorded changes.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, Row};

use super::{
    clock::{Clock, ClockCheck},
    recorded::{self, Seen},
    sweep::Sweep,
};
use crate::{Change, StoreError, postgres::PostgresDatabase};

/// Time between two polls, well below the allowed second.
const INTERVAL: Duration = Duration::from_millis(200);
/// All pooled connections may be in use for a while. After this time the feed counts as lost.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Polls the recorded changes.
pub(super) struct Poller {
    database: PostgresDatabase,
    /// A separate connection; `None` uses the pool.
    own: Option<Client>,
    seen: Seen,
    sweep: Sweep,
    clock_check: ClockCheck,
}

impl Poller {
    /// Begins to poll. Skips the records that exist already.
    pub(super) async fn begin(
        database: &PostgresDatabase,
        own: Option<Client>,
        clock: &Clock,
    ) -> Result<Self, StoreError> {
        let mut poller = Self {
            database: database.clone(),
            own,
            seen: Seen::default(),
            sweep: Sweep::new(),
            clock_check: ClockCheck::new(clock.clone()),
        };
        poller.poll(&mut drop).await?;
        Ok(poller)
    }

    pub(super) const fn database(&self) -> &PostgresDatabase {
        &self.database
    }

    /// Reports each change until `end`, or until the server does not answer.
    pub(super) async fn run_until(
        &mut self,
        end: Instant,
        on_change: &mut impl FnMut(Change),
    ) -> Result<(), StoreError> {
        let mut last_poll = Instant::now();
        while Instant::now() < end {
            tokio::time::sleep(INTERVAL).await;
            match self.poll(on_change).await {
                Ok(()) => last_poll = Instant::now(),
                Err(StoreError::Busy) if last_poll.elapsed() < BUSY_TIMEOUT => {}
                Err(error) => return Err(error),
            }
            self.sweep.begin_if_due(&self.database);
            self.clock_check.begin_if_due(&self.database);
        }
        Ok(())
    }

    /// Reports the changes since the last poll.
    pub(super) async fn poll(
        &mut self,
        on_change: &mut impl FnMut(Change),
    ) -> Result<(), StoreError> {
        let begun_at = Instant::now();
        let rows = self.recorded().await?;
        self.seen
            .new_changes(&rows)?
            .into_iter()
            .for_each(on_change);
        self.database.counters().feed_was_read(begun_at.into_std());
        Ok(())
    }

    async fn recorded(&self) -> Result<Vec<Row>, StoreError> {
        match &self.own {
            Some(client) => {
                let rows = timeout(
                    self.database.call_timeout(),
                    client.query(recorded::ALL, &[]),
                );
                Ok(rows.await.map_err(|_| StoreError::TimedOut)??)
            }
            None => {
                self.database
                    .session()
                    .await?
                    .query(recorded::ALL, &[])
                    .await
            }
        }
    }
}

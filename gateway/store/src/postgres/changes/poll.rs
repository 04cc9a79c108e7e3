//! Hearing of changes without `LISTEN`: what was recorded is read again and again.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, Row};

use super::{
    clock::{Clock, ClockCheck},
    recorded::{self, Seen},
    sweep::Sweep,
};
use crate::{Change, StoreError, postgres::PostgresDatabase};

/// Well within the second that a change may take.
const INTERVAL: Duration = Duration::from_millis(200);
/// All connections of the pool may be in use for a moment. After that, nothing is known of the server any more.
const BUSY: Duration = Duration::from_secs(5);

/// Reads what is recorded.
pub(super) struct Poller {
    database: PostgresDatabase,
    /// Without one of its own it uses the pool's.
    own: Option<Client>,
    seen: Seen,
    sweep: Sweep,
    clock_check: ClockCheck,
}

impl Poller {
    /// From now on: what is recorded already is no news.
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
        let mut last_look = Instant::now();
        while Instant::now() < end {
            tokio::time::sleep(INTERVAL).await;
            match self.look(on_change).await {
                Ok(()) => last_look = Instant::now(),
                Err(StoreError::Busy) if last_look.elapsed() < BUSY => {}
                Err(error) => return Err(error),
            }
            self.sweep.begin_if_due(&self.database);
            self.clock_check.begin_if_due(&self.database);
        }
        Ok(())
    }

    async fn look(&mut self, on_change: &mut impl FnMut(Change)) -> Result<(), StoreError> {
        let rows = self.recorded().await?;
        self.seen.news(&rows)?.into_iter().for_each(on_change);
        Ok(())
    }

    async fn recorded(&self) -> Result<Vec<Row>, StoreError> {
        match &self.own {
            Some(client) => {
                let rows = timeout(self.database.patience(), client.query(recorded::ALL, &[]));
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

//! Writes one after the other, in order of arrival. Those that wait share a transaction, and so the flush of its commit.
//!
//! SQLite has one writer and no queue: one that finds the lock taken sleeps and retries, so among many some would always time
//! out. A blocking thread, the leader, works as long as writes wait. Each of them is a savepoint: if one fails, the others
//! stay.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::{sync::oneshot, time::timeout_at};

use super::{
    pool::Pool,
    queue::{Queue, Tell},
};
use crate::StoreError;

/// Limit on the writes of a transaction.
const GROUP: usize = 64;

/// A transaction takes no further write after this time: its first one waits for the commit.
const GROUP_TIME: Duration = Duration::from_millis(10);

/// A caller that waits for its write. If it leaves before the write has begun, the write is not run.
struct Caller<'p> {
    queue: &'p Queue,
    id: u64,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.queue.remove(self.id);
    }
}

/// The leader. A runtime that ends drops it before its work begins: the next write then has another one.
struct Leader {
    pool: Arc<Pool>,
    is_done: bool,
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.is_done {
            self.pool.queue.leader_left();
        }
    }
}

impl Pool {
    /// Runs `work` in a transaction, in its turn, until `deadline` at the latest. If the caller is dropped before that,
    /// `work` is not run.
    pub(super) async fn write_until<T: Send + 'static>(
        self: &Arc<Self>,
        deadline: Instant,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, mut outcome) = oneshot::channel();
        let run = move |transaction: Result<&mut Transaction<'_>, StoreError>| {
            let is_wanted = !sender.is_closed();
            let done = transaction.and_then(|transaction| match is_wanted {
                true => in_savepoint(transaction, work),
                false => Err(StoreError::Interrupted),
            });
            let cause = done.as_ref().err().and_then(copy_of);
            let tell: Tell = Box::new(move |committed| {
                // Fails if the caller was dropped.
                let _ = sender.send(done.and_then(|done| committed.map(|()| done)));
            });
            (tell, cause)
        };
        let (id, needs_leader) = self.queue.push(deadline, Box::new(run));
        let queue = &self.queue;
        let _caller = Caller { queue, id };
        if needs_leader {
            let leader = Leader {
                pool: Arc::clone(self),
                is_done: false,
            };
            tokio::task::spawn_blocking(move || lead(leader));
        }
        let received = match timeout_at(deadline.into(), &mut outcome).await {
            Err(_) if queue.remove(id) => return Err(StoreError::Busy),
            // It has begun, and is not interrupted.
            Err(_) => outcome.await,
            Ok(received) => received,
        };
        received.map_err(|_| StoreError::Interrupted)?
    }

    /// Runs the writes that wait, or as many as a transaction takes; returns what tells their callers.
    fn write_group(&self) -> Vec<Box<dyn FnOnce()>> {
        let mut first = self.queue.pop();
        let Some(deadline) = first.as_ref().map(|first| first.deadline) else {
            return Vec::new();
        };
        let mut group = Vec::new();
        let committed = self.with_connection(deadline, |connection| {
            let transaction = TransactionBehavior::Immediate;
            let mut transaction = connection.transaction_with_behavior(transaction)?;
            let begun_at = Instant::now();
            while let Some(write) = first.take().or_else(|| self.queue.pop()) {
                let (tell, cause) = (write.run)(Ok(&mut transaction));
                group.push(tell);
                // Some failures, as of a full disk, end the whole transaction.
                if transaction.is_autocommit() {
                    return Err(cause.map_or(StoreError::Interrupted, Into::into));
                }
                if group.len() >= GROUP || begun_at.elapsed() >= GROUP_TIME {
                    break;
                }
            }
            transaction.commit()?;
            // With the write lock free, which the mark needs.
            self.next_checkpoint.make_if_due(connection, &self.path);
            Ok(())
        });
        match (committed, first) {
            // It could not begin: the next one may have more time.
            (Err(cause), Some(first)) => {
                let (tell, _) = (first.run)(Err(cause));
                vec![Box::new(|| tell(Ok(())))]
            }
            (committed, _) => {
                let cause = committed.err();
                let told = group.into_iter().map(|tell| -> Box<dyn FnOnce()> {
                    let committed = match &cause {
                        None => Ok(()),
                        Some(cause) => {
                            Err(copy_of(cause).map_or(StoreError::Interrupted, Into::into))
                        }
                    };
                    Box::new(|| tell(committed))
                });
                told.collect()
            }
        }
    }
}

fn lead(mut leader: Leader) {
    while !leader.is_done {
        let told = leader.pool.write_group();
        // Before the callers are told: their next call must find the connection free.
        leader.is_done = leader.pool.queue.rest();
        told.into_iter().for_each(|tell| tell());
    }
}

/// Runs a write so that it fails alone.
fn in_savepoint<T>(
    transaction: &mut Transaction<'_>,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let savepoint = transaction.savepoint()?;
    // Rolled back if it fails, or panics; the panic hook has logged that.
    let done = catch_unwind(AssertUnwindSafe(|| work(&savepoint)));
    let done = done.unwrap_or(Err(StoreError::Interrupted))?;
    savepoint.commit()?;
    Ok(done)
}

/// The same error, for another caller.
fn copy_of(error: &StoreError) -> Option<rusqlite::Error> {
    match error {
        StoreError::Sqlite(rusqlite::Error::SqliteFailure(code, text)) => {
            Some(rusqlite::Error::SqliteFailure(*code, text.clone()))
        }
        _ => None,
    }
}

//! The feed by `LISTEN`: the server notifies of each change when it is committed.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::{Client, Statement, error::SqlState};

use super::{
    CHANNEL,
    clock::{Clock, ClockCheck},
    recorded::{NOT_NOTIFIED, Seen},
    sweep::Sweep,
};
use crate::{
    Change, StoreError, Topic,
    postgres::{PostgresDatabase, connect::Notifications},
};

/// Timeout of the probe. A server notifies listeners immediately, or never.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between two polls for changes without notification: half of the allowed second. The poll is also the heartbeat:
/// without it, a connection that was cut without a TCP reset would be silent for ever.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Timeout of such a poll.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout for a lock on the table, which a migration may hold: shorter than [`ANSWER_TIMEOUT`], so that the feed is
/// not lost. While the table is locked nothing can be recorded, so no change is missed.
const LOCK_TIMEOUT: Duration = Duration::from_millis(250);
const NOT_NOTIFIED_WARNING: &str = "another process cannot notify of its changes to the store: its database role may not \
    call pg_notify. Until it may, its changes are polled twice a second; give all roles the same privileges";

/// A connection that listens.
pub(super) struct Listener {
    database: PostgresDatabase,
    client: Client,
    notifications: Notifications,
    /// Reads changes without notification.
    not_notified: Option<Statement>,
    seen: Seen,
    sweep: Sweep,
    clock_check: ClockCheck,
}

impl Listener {
    /// Begins to listen. If no notification arrives, returns the connection: a pooler may accept `LISTEN` and ignore
    /// it.
    pub(super) async fn begin(
        database: &PostgresDatabase,
        client: Client,
        notifications: Notifications,
        clock: &Clock,
    ) -> Result<Result<Self, Client>, StoreError> {
        let mut listener = Self {
            database: database.clone(),
            client,
            notifications,
            not_notified: None,
            seen: Seen::default(),
            sweep: Sweep::new(),
            clock_check: ClockCheck::new(clock.clone()),
        };
        let listening = timeout(database.call_timeout(), listener.try_listen());
        match listening.await.map_err(|_| StoreError::TimedOut)?? {
            true => {
                let prepared = timeout(database.call_timeout(), listener.prepare());
                prepared.await.map_err(|_| StoreError::TimedOut)??;
                Ok(Ok(listener))
            }
            false => Ok(Err(listener.client)),
        }
    }

    /// Listens, and tests whether a notification from another connection arrives.
    async fn try_listen(&mut self) -> Result<bool, StoreError> {
        let listen = format!("LISTEN {CHANNEL}");
        match self.client.batch_execute(&listen).await {
            Ok(()) => {}
            Err(error) if error.as_db_error().is_some() => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        // Unique among all listeners: the sending connection's process id on the server, and the time.
        let probe = "SELECT pg_notify($1, payload), payload FROM \
                     (SELECT 'probe:' || pg_backend_pid() || ':' || clock_timestamp() AS payload) AS probe";
        let session = self.database.session().await?;
        let sent: String = session.query_one(probe, &[&CHANNEL]).await?.try_get(1)?;
        let received = async {
            while let Some(notification) = self.notifications.recv().await {
                if notification.payload() == sent {
                    return true;
                }
            }
            false
        };
        Ok(timeout(PROBE_TIMEOUT, received).await.unwrap_or(false))
    }

    /// Prepares the poll for changes without notification. Skips the records that exist already.
    async fn prepare(&mut self) -> Result<(), StoreError> {
        let limit = format!("SET lock_timeout = {}", LOCK_TIMEOUT.as_millis());
        match self.client.batch_execute(&limit).await {
            // An error of the server: an engine without this setting. Any other is returned.
            Err(error) if error.as_db_error().is_none() => return Err(error.into()),
            _ => {}
        }
        self.not_notified = Some(self.client.prepare(NOT_NOTIFIED).await?);
        self.poll_unnotified().await.map(drop)
    }

    /// Returns the changes without notification since the last poll.
    async fn poll_unnotified(&mut self) -> Result<Vec<Change>, StoreError> {
        let Some(statement) = &self.not_notified else {
            return Ok(Vec::new());
        };
        let begun_at = Instant::now();
        let rows = timeout(ANSWER_TIMEOUT, self.client.query(statement, &[])).await;
        let changes = match rows.map_err(|_| StoreError::TimedOut)? {
            Ok(rows) => self.seen.new_changes(&rows)?,
            // Nothing was read.
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.into()),
        };
        // The server sends notifications of earlier changes before the response, on the same connection.
        self.database.counters().feed_was_read(begun_at);
        Ok(changes)
    }

    /// Reports each change, until the connection fails.
    pub(super) async fn run(
        &mut self,
        on_change: &mut impl FnMut(Change),
    ) -> Result<Infallible, StoreError> {
        let mut heartbeat = interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_warned = false;
        loop {
            tokio::select! {
                notification = self.notifications.recv() => {
                    let notification = notification.ok_or(StoreError::Disconnected)?;
                    if let Some(change) = change(notification.payload()) {
                        on_change(change);
                    }
                }
                _ = heartbeat.tick() => {
                    let changes = self.poll_unnotified().await?;
                    if !changes.is_empty() && !is_warned {
                        is_warned = true;
                        tracing::warn!("{NOT_NOTIFIED_WARNING}");
                    }
                    changes.into_iter().for_each(&mut *on_change);
                    self.sweep.begin_if_due(&self.database);
                    self.clock_check.begin_if_due(&self.database);
                }
            }
        }
    }
}

/// Decodes a payload; `None` for a probe.
fn change(payload: &str) -> Option<Change> {
    let (topic, key) = payload.split_once(':')?;
    if topic == "probe" {
        return None;
    }
    Some(match (Topic::from_name(topic), hex::decode(key)) {
        (Some(topic), Ok(key)) => Change::Item { topic, key },
        // From a newer release.
        _ => Change::Everything,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_names_topic_and_key() {
        let login = Change::Item {
            topic: Topic::Login,
            key: vec![1, 0xab],
        };
        assert_eq!(change("login:01ab"), Some(login));
        assert_eq!(change(""), None);
        assert_eq!(change("probe:1:2"), None);
        assert_eq!(change("meeting:01"), Some(Change::Everything));
        assert_eq!(change("login:xyz"), Some(Change::Everything));
    }
}

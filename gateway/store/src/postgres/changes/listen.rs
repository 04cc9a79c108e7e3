//! Hearing of changes by `LISTEN`: the server tells of each as it is committed.

use std::{convert::Infallible, time::Duration};

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

/// A server tells those who listen at once, or does not tell them at all.
const PROBE: Duration = Duration::from_secs(1);
/// How often the server is asked for changes that nobody was notified of: half of the second that a change may take.
/// Also whether it is still there: a connection that was cut off without a word would be silent for ever.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// How long the server has to answer that.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// How long reading them waits for a lock on the table, as a migration takes one: less than the server has to answer.
/// Nothing can be recorded meanwhile, so nothing is missed.
const LOCK_TIMEOUT: Duration = Duration::from_millis(250);
const NOT_NOTIFIED_WARNING: &str = "another process cannot notify of what it changes in the store: its role may not \
    call pg_notify. Its changes are read twice a second meanwhile; give all roles the same rights";

/// A connection that listens.
pub(super) struct Listener {
    database: PostgresDatabase,
    client: Client,
    notifications: Notifications,
    /// Reads what nobody was notified of.
    not_notified: Option<Statement>,
    seen: Seen,
    sweep: Sweep,
    clock_check: ClockCheck,
}

impl Listener {
    /// Begins to listen, unless nothing is heard: a pooler may take `LISTEN` and forget about it. Then the connection
    /// comes back.
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
        let hears = timeout(database.patience(), listener.hears());
        match hears.await.map_err(|_| StoreError::TimedOut)?? {
            true => {
                let prepared = timeout(database.patience(), listener.prepare());
                prepared.await.map_err(|_| StoreError::TimedOut)??;
                Ok(Ok(listener))
            }
            false => Ok(Err(listener.client)),
        }
    }

    /// Listens, and finds out whether what another connection says is heard.
    async fn hears(&mut self) -> Result<bool, StoreError> {
        let listen = format!("LISTEN {CHANNEL}");
        match self.client.batch_execute(&listen).await {
            Ok(()) => {}
            Err(error) if error.as_db_error().is_some() => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        // Unique among all that listen: the server's number of the connection that says it, and the time.
        let probe = "SELECT pg_notify($1, payload), payload FROM \
                     (SELECT 'probe:' || pg_backend_pid() || ':' || clock_timestamp() AS payload) AS probe";
        let session = self.database.session().await?;
        let said: String = session.query_one(probe, &[&CHANNEL]).await?.try_get(1)?;
        let heard = async {
            while let Some(notification) = self.notifications.recv().await {
                if notification.payload() == said {
                    return true;
                }
            }
            false
        };
        Ok(timeout(PROBE, heard).await.unwrap_or(false))
    }

    /// Makes ready to read what nobody was notified of. What is recorded already is no news.
    async fn prepare(&mut self) -> Result<(), StoreError> {
        let limit = format!("SET lock_timeout = {}", LOCK_TIMEOUT.as_millis());
        match self.client.batch_execute(&limit).await {
            // An engine without this setting.
            Err(error) if error.as_db_error().is_none() => return Err(error.into()),
            _ => {}
        }
        self.not_notified = Some(self.client.prepare(NOT_NOTIFIED).await?);
        self.news().await.map(drop)
    }

    /// What was changed since the last time and nobody was notified of.
    async fn news(&mut self) -> Result<Vec<Change>, StoreError> {
        let Some(statement) = &self.not_notified else {
            return Ok(Vec::new());
        };
        let rows = timeout(ANSWER_TIMEOUT, self.client.query(statement, &[])).await;
        match rows.map_err(|_| StoreError::TimedOut)? {
            Ok(rows) => self.seen.news(&rows),
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Tells of each change, until the connection fails.
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
                    let news = self.news().await?;
                    if !news.is_empty() && !is_warned {
                        is_warned = true;
                        tracing::warn!("{NOT_NOTIFIED_WARNING}");
                    }
                    news.into_iter().for_each(&mut *on_change);
                    self.sweep.begin_if_due(&self.database);
                    self.clock_check.begin_if_due(&self.database);
                }
            }
        }
    }
}

/// What a payload tells; nothing if it was only said to see who listens.
fn change(payload: &str) -> Option<Change> {
    let (topic, key) = payload.split_once(':')?;
    if topic == "probe" {
        return None;
    }
    Some(match (Topic::named(topic), hex::decode(key)) {
        (Some(topic), Ok(key)) => Change::Item { topic, key },
        // A newer release's.
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

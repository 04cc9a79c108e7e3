//! The feed of one process: listens to notifications, or polls the recorded changes.

use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::{Client, Statement, error::SqlState};

use super::{
    CHANNEL,
    clock::{Clock, compare_and_log},
    recorded::{ALL, NOT_NOTIFIED, Seen, sweep_and_log},
};
use crate::{
    Change, StoreError, Topic,
    postgres::{
        PostgresDatabase, Session,
        connect::{Notifications, is_in_use, within},
    },
};

/// Timeout of the probe. A server notifies listeners immediately, or never.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time between two polls of a listening process for changes without notification: half of the allowed second. The poll is
/// also the heartbeat: without it, a connection that was cut without a TCP reset would be silent for ever.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// Timeout for a lock on the table, which a migration may hold: shorter than the poll's, so that the feed is not lost.
/// While the table is locked nothing can be recorded, so no change is missed.
const LOCK_TIMEOUT: Duration = Duration::from_millis(250);
/// Time between two polls without `LISTEN`, well below the allowed second.
const INTERVAL: Duration = Duration::from_millis(200);
/// All pooled connections may be in use for a while. After this time the feed counts as lost.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two attempts to listen, while the feed polls only because it got no separate connection.
const LISTEN_RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two sweeps, and between two comparisons of the clocks. Every process does both, so that it does not matter
/// which of them run. Clocks drift slowly, and one that is set wrong should be noticed within a minute.
const CHORE_INTERVAL: Duration = Duration::from_secs(60);
const NOT_NOTIFIED_WARNING: &str = "another process cannot notify of its changes to the store: its database role may not \
    call pg_notify. Until it may, its changes are polled twice a second; give all roles the same privileges";

/// Whether pooled connections may be used if a separate one cannot be opened.
#[derive(PartialEq, Eq)]
pub(super) enum Sharing {
    Allowed,
    TooSoon,
}

/// A running feed.
pub(super) struct Feed {
    database: PostgresDatabase,
    source: Source,
    seen: Seen,
    clock: Clock,
    sweep_at: Instant,
    compare_at: Instant,
}

/// Where the feed learns of changes.
enum Source {
    /// The server notifies of each change when it is committed. Those without notification are polled.
    Listening {
        client: Client,
        notifications: Notifications,
        not_notified: Statement,
    },
    /// Polls with a separate connection: the server does not support `LISTEN`.
    Polling(Client),
    /// Polls with the pool's connections, until a separate one can be opened.
    Sharing,
}

impl Source {
    /// Opens a connection. Listens on it if the server supports that, and polls with it otherwise; or polls with the pool's
    /// if none can be opened.
    async fn open(database: &PostgresDatabase, sharing: Sharing) -> Result<Self, StoreError> {
        // The pool's comes first: if the server has one connection left, the pool would never get it while this one
        // is opened again and again.
        let probing = match database.can_listen() {
            true => Some(database.session().await?),
            false => None,
        };
        let (client, mut notifications) = match database.connect().await {
            Ok(opened) => opened,
            // The server may be healthy, but at its connection limit.
            Err(_) if sharing == Sharing::Allowed => return Ok(Self::Sharing),
            Err(cause) => return Err(cause),
        };
        // Without `pg_notify`, nothing could prove that notifications arrive; behind a pooler they do not.
        let Some(probing) = probing else {
            return Ok(Self::Polling(client));
        };
        let opening = async {
            // That LISTEN succeeds says little: a pooler between may give the session to others.
            if !is_notified(&probing, &client, &mut notifications).await? {
                return Ok(Self::Polling(client));
            }
            let limit = format!("SET lock_timeout = {}", LOCK_TIMEOUT.as_millis());
            match client.batch_execute(&limit).await {
                // An error of the server: an engine without this setting. Any other is returned.
                Err(error) if error.as_db_error().is_none() => return Err(error.into()),
                _ => {}
            }
            Ok::<_, StoreError>(Self::Listening {
                not_notified: client.prepare(NOT_NOTIFIED).await?,
                client,
                notifications,
            })
        };
        within(2 * database.call_timeout(), opening).await
    }

    /// The next notification's change; for ever nothing without `LISTEN`.
    async fn notified(&mut self) -> Result<Option<Change>, StoreError> {
        let Self::Listening { notifications, .. } = self else {
            return std::future::pending().await;
        };
        let notification = notifications.recv().await;
        let notification = notification.ok_or(StoreError::Disconnected)?;
        Ok(change(notification.payload()))
    }

    const fn is_listening(&self) -> bool {
        matches!(self, Self::Listening { .. })
    }
}

impl Feed {
    /// Begins a feed. Skips the records that exist already.
    pub(super) async fn begin(
        database: &PostgresDatabase,
        clock: &Clock,
        sharing: Sharing,
    ) -> Result<Self, StoreError> {
        let source = Source::open(database, sharing).await?;
        let feed = Self::with(source, database, clock).await?;
        match feed.source {
            Source::Listening { .. } => {}
            Source::Polling(_) => {
                tracing::info!("the store does not support LISTEN: its changes are polled instead");
            }
            Source::Sharing => tracing::info!(
                "no connection is available for LISTEN: the store's changes are polled until there is one"
            ),
        }
        Ok(feed)
    }

    async fn with(
        source: Source,
        database: &PostgresDatabase,
        clock: &Clock,
    ) -> Result<Self, StoreError> {
        let now = Instant::now();
        let mut feed = Self {
            database: database.clone(),
            source,
            seen: Seen::default(),
            clock: clock.clone(),
            // Not at once: after an outage all processes begin at the same time.
            sweep_at: now + CHORE_INTERVAL,
            compare_at: now,
        };
        // What is recorded already was there before the caller cached anything.
        feed.poll().await?;
        Ok(feed)
    }

    /// Reports changes until the server does not answer, or until listening becomes possible.
    pub(super) async fn run(
        &mut self,
        on_change: &mut impl FnMut(Change),
    ) -> Result<Self, StoreError> {
        let is_listening = self.source.is_listening();
        let mut turns = interval(if is_listening { HEARTBEAT } else { INTERVAL });
        // A slow poll must not be followed by a burst of them.
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut polled_at, mut listen_at) =
            (Instant::now(), Instant::now() + LISTEN_RETRY_INTERVAL);
        let mut is_warned = false;
        loop {
            tokio::select! {
                // Reported at once. The poll is not due for that: it proves that the connection lives.
                change = self.source.notified() => {
                    change?.into_iter().for_each(&mut *on_change);
                    continue;
                }
                _ = turns.tick() => {}
            }
            match self.poll().await {
                Ok(changes) => {
                    polled_at = Instant::now();
                    if is_listening
                        && !changes.is_empty()
                        && !std::mem::replace(&mut is_warned, true)
                    {
                        tracing::warn!("{NOT_NOTIFIED_WARNING}");
                    }
                    changes.into_iter().for_each(&mut *on_change);
                }
                // Requests have all connections of the pool. A later poll still finds the records of a minute.
                Err(StoreError::Busy) if polled_at.elapsed() < BUSY_TIMEOUT => {}
                Err(error) => return Err(error),
            }
            self.begin_chores();
            if Instant::now() >= listen_at {
                listen_at = Instant::now() + LISTEN_RETRY_INTERVAL;
                if let Some(listening) = self.try_to_listen().await? {
                    // What changed before it began to listen.
                    self.poll().await?.into_iter().for_each(on_change);
                    return Ok(listening);
                }
            }
        }
    }

    /// A feed that listens, if this one polls only because it got no separate connection, and now gets one.
    async fn try_to_listen(&self) -> Result<Option<Self>, StoreError> {
        let database = &self.database;
        if !matches!(self.source, Source::Sharing) || !database.can_listen() {
            return Ok(None);
        }
        match Source::open(database, Sharing::TooSoon).await {
            Ok(source) if source.is_listening() => {
                Self::with(source, database, &self.clock).await.map(Some)
            }
            // If the server does not answer, the next poll fails.
            _ => Ok(None),
        }
    }

    /// Reads the recorded changes since the last poll.
    async fn poll(&mut self) -> Result<Vec<Change>, StoreError> {
        let (database, begun_at) = (&self.database, Instant::now());
        let rows = match &self.source {
            // The server sends notifications of earlier changes before the response, on the same connection.
            Source::Listening {
                client,
                not_notified,
                ..
            } => {
                let limit = database.shared.settings.heartbeat;
                within(limit, client.query(not_notified, &[])).await
            }
            // Not prepared: a pooler may not keep what is.
            Source::Polling(client) => {
                within(database.call_timeout(), client.query_typed(ALL, &[])).await
            }
            Source::Sharing => database.session().await?.query(ALL, &[]).await,
        };
        let rows = match rows {
            // Nothing was read.
            Err(error) if is_in_use(&error) => return Ok(Vec::new()),
            rows => rows?,
        };
        let changes = self.seen.new_changes(&rows)?;
        database.counters().feed_was_read(begun_at);
        Ok(changes)
    }

    /// Sweeps old records, and compares the clocks, in the background and once a minute each.
    fn begin_chores(&mut self) {
        let now = Instant::now();
        if now >= self.sweep_at {
            self.sweep_at = now + CHORE_INTERVAL;
            tokio::spawn(sweep_and_log(self.database.clone()));
        }
        if now >= self.compare_at {
            self.compare_at = now + CHORE_INTERVAL;
            tokio::spawn(compare_and_log(self.database.clone(), self.clock.clone()));
        }
    }
}

/// Listens, and tests whether a notification from another connection arrives: a pooler may accept `LISTEN` and ignore it.
async fn is_notified(
    probing: &Session,
    client: &Client,
    notifications: &mut Notifications,
) -> Result<bool, StoreError> {
    match client.batch_execute(&format!("LISTEN {CHANNEL}")).await {
        Ok(()) => {}
        // A replica: another server has the changes, and permits `LISTEN`.
        Err(error) if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => {
            return Err(error.into());
        }
        Err(error) if error.as_db_error().is_some() => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    // Unique among all listeners: the sending connection's process id on the server, and the time.
    let probe = "SELECT pg_notify($1, payload), payload FROM \
                 (SELECT 'probe:' || pg_backend_pid() || ':' || clock_timestamp() AS payload) AS probe";
    let sent: String = probing.query_one(probe, &[&CHANNEL]).await?.try_get(1)?;
    let received = async {
        while let Some(notification) = notifications.recv().await {
            if notification.payload() == sent {
                return true;
            }
        }
        false
    };
    Ok(timeout(PROBE_TIMEOUT, received).await.unwrap_or(false))
}

/// Decodes a payload; `None` for a probe.
fn change(payload: &str) -> Option<Change> {
    let (topic, key) = payload.split_once(':')?;
    if topic == "probe" {
        return None;
    }
    Some(match (Topic::from_word(topic), hex::decode(key)) {
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

//! Hearing of changes by `LISTEN`: the server tells of each as it is committed.

use std::{convert::Infallible, time::Duration};

use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::Client;

use super::{CHANNEL, sweep::Sweep};
use crate::{
    Change, StoreError, Topic,
    postgres::{PostgresDatabase, connect::Notifications},
};

/// A server tells those who listen at once, or does not tell them at all.
const PROBE: Duration = Duration::from_secs(1);
/// How often the server is asked whether it is still there, and how long it has to say so: a connection that was
/// cut off without a word would be silent for ever.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A connection that listens.
pub(super) struct Listener {
    database: PostgresDatabase,
    client: Client,
    notifications: Notifications,
}

impl Listener {
    /// Begins to listen, unless nothing is heard: a pooler may take `LISTEN` and forget about it. Then the connection
    /// comes back.
    pub(super) async fn begin(
        database: &PostgresDatabase,
        client: Client,
        notifications: Notifications,
    ) -> Result<Result<Self, Client>, StoreError> {
        let mut listener = Self {
            database: database.clone(),
            client,
            notifications,
        };
        let hears = timeout(database.patience(), listener.hears());
        match hears.await.map_err(|_| StoreError::TimedOut)?? {
            true => Ok(Ok(listener)),
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

    /// Tells of each change, until the connection fails.
    pub(super) async fn run(
        &mut self,
        on_change: &mut impl FnMut(Change),
    ) -> Result<Infallible, StoreError> {
        let mut heartbeat = interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sweep = Sweep::new();
        loop {
            tokio::select! {
                notification = self.notifications.recv() => {
                    let notification = notification.ok_or(StoreError::Disconnected)?;
                    if let Some(change) = change(notification.payload()) {
                        on_change(change);
                    }
                }
                _ = heartbeat.tick() => {
                    let beat = timeout(HEARTBEAT, self.client.batch_execute("SELECT 1")).await;
                    beat.map_err(|_| StoreError::TimedOut)??;
                    sweep.begin_if_due(&self.database);
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

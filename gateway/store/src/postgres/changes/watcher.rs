//! The thread of the change feed: listens or polls, and reconnects when the server does not answer.

use std::{sync::mpsc, thread, time::Duration};

use tokio::time::Instant;

use super::{clock::Clock, listen::Listener, poll::Poller};
use crate::{
    Change, StoreError,
    changes::{Watch, log_lost, log_restored},
    postgres::PostgresDatabase,
};

/// Time between two attempts to reconnect. Short: an attempt costs little, and the server should be found soon.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// After a loss, pooled connections are used only from this time on. A server that shuts down may refuse new
/// connections before it closes the pooled ones, which looks like a lack of connections.
const SHARING_DELAY: Duration = Duration::from_secs(1);
/// Time between two attempts to listen, while the feed polls only because it got no separate connection.
const LISTEN_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Watches until the watch is dropped; returns once no change can be missed any more.
pub(crate) fn watch(
    database: &PostgresDatabase,
    clock: Clock,
    mut on_change: impl FnMut(Change) + Send + 'static,
) -> Result<Watch, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|_| StoreError::Interrupted)?;
    let (watch, end) = Watch::new();
    let (started, is_started) = mpsc::channel();
    let database = database.clone();
    let follow = async move {
        let feed = if database.is_open() {
            let feed = Feed::begin(&database, &clock, Sharing::Allowed).await;
            let Ok(feed) = feed.map_err(|error| started.send(Err(error))) else {
                return;
            };
            let _ = started.send(Ok(()));
            feed
        } else {
            let _ = started.send(Ok(()));
            let feed = first_feed(&database, &clock).await;
            on_change(Change::Restored);
            feed
        };
        follow(&database, &clock, feed, &mut on_change).await;
    };
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = end => {}
                () = follow => {}
            }
        });
    };
    thread::Builder::new()
        .name("store-changes".to_owned())
        .spawn(run)
        .map_err(|_| StoreError::Interrupted)?;
    is_started.recv().map_err(|_| StoreError::Interrupted)??;
    Ok(watch)
}

/// Opens a database that did not answer at the start, and begins its feed. Logs an error only if it differs from the last
/// one.
async fn first_feed(database: &PostgresDatabase, clock: &Clock) -> Feed {
    let mut logged = String::new();
    loop {
        let error = match database.finish_opening().await {
            Ok(()) => match Feed::begin(database, clock, Sharing::Allowed).await {
                Ok(feed) => {
                    log_restored();
                    return feed;
                }
                Err(error) => error.in_short(),
            },
            Err(error) => error.in_short(),
        };
        if error != logged {
            tracing::warn!(cause = %error, "the store cannot be opened yet");
            logged = error;
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Follows the feed and restarts it after failures; never returns.
async fn follow(
    database: &PostgresDatabase,
    clock: &Clock,
    first: Feed,
    on_change: &mut impl FnMut(Change),
) {
    let mut feed = first;
    let server = || database.counters().server();
    let mut last = server();
    loop {
        let changed = async {
            while server() == last {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        };
        let next = tokio::select! {
            next = feed.run(clock, on_change) => next,
            // Its connection may be to another server than those of calls now.
            () = changed => Err(StoreError::Disconnected),
        };
        feed = match next {
            Ok(next) => next,
            Err(error) => {
                // What changes while it restarts counts.
                last = server();
                on_change(Change::Lost);
                let restarted = restart(database, clock, error).await;
                on_change(Change::Restored);
                restarted
            }
        };
    }
}

/// Retries until a feed begins. Logs an error only if it differs from the last one.
async fn restart(database: &PostgresDatabase, clock: &Clock, error: StoreError) -> Feed {
    let lost_at = Instant::now();
    let mut logged = String::new();
    let mut cause = error;
    loop {
        let text = cause.in_short();
        if text != logged {
            log_lost(&cause);
            logged = text;
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
        let sharing = if lost_at.elapsed() < SHARING_DELAY {
            Sharing::TooSoon
        } else {
            Sharing::Allowed
        };
        match Feed::begin(database, clock, sharing).await {
            Ok(feed) => {
                log_restored();
                return feed;
            }
            Err(error) => cause = error,
        }
    }
}

/// Whether pooled connections may be used if a separate one cannot be opened.
#[derive(PartialEq, Eq)]
enum Sharing {
    Allowed,
    TooSoon,
}

/// The two kinds of feed.
enum Feed {
    Listening(Listener),
    Polling { poller: Poller, may_listen: bool },
}

impl Feed {
    async fn begin(
        database: &PostgresDatabase,
        clock: &Clock,
        sharing: Sharing,
    ) -> Result<Self, StoreError> {
        let (poller, may_listen) = match database.connect().await {
            Ok((client, notifications)) if database.can_notify() => {
                let listener = Listener::begin(database, client, notifications, clock).await?;
                match listener {
                    Ok(listener) => return Ok(Self::Listening(listener)),
                    Err(client) => (Poller::begin(database, Some(client), clock).await?, false),
                }
            }
            Ok((client, _)) => (Poller::begin(database, Some(client), clock).await?, false),
            Err(cause) if sharing == Sharing::TooSoon => return Err(cause),
            // The server may be healthy, but at its connection limit.
            Err(cause) => {
                let poller = Poller::begin(database, None, clock).await;
                (poller.map_err(|_| cause)?, true)
            }
        };
        if may_listen {
            tracing::info!(
                "no connection is available for LISTEN: the store's changes are polled until there is one"
            );
        } else {
            tracing::info!("the store does not support LISTEN: its changes are polled instead");
        }
        Ok(Self::Polling { poller, may_listen })
    }

    /// Reports changes until the server does not answer, or until listening becomes possible.
    async fn run(
        &mut self,
        clock: &Clock,
        on_change: &mut impl FnMut(Change),
    ) -> Result<Self, StoreError> {
        let (poller, may_listen) = match self {
            Self::Listening(listener) => {
                return listener.run(on_change).await.map(|never| match never {});
            }
            Self::Polling { poller, may_listen } => (poller, *may_listen),
        };
        loop {
            let retry_at = Instant::now() + LISTEN_RETRY_INTERVAL;
            poller.run_until(retry_at, on_change).await?;
            if may_listen && poller.database().can_notify() {
                let database = poller.database().clone();
                if let Ok((client, notifications)) = database.connect().await
                    && let Ok(listener) =
                        Listener::begin(&database, client, notifications, clock).await?
                {
                    // What changed before the listener began.
                    poller.poll(on_change).await?;
                    return Ok(Self::Listening(listener));
                }
            }
        }
    }
}

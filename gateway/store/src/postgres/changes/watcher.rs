//! The thread that hears of changes: it listens or polls, and starts over when the server does not answer.

use std::{sync::mpsc, thread, time::Duration};

use tokio::time::Instant;

use super::{clock::Clock, listen::Listener, poll::Poller};
use crate::{Change, StoreError, changes::Watch, postgres::PostgresDatabase};

/// Between two attempts to begin anew: a server that comes back is heard of soon, and asking hurts nobody.
const RETRY: Duration = Duration::from_millis(250);
/// A server that goes away may refuse new connections before it cuts those of the pool: only after so long is it taken to
/// have none to spare.
const GOES_AWAY: Duration = Duration::from_secs(1);
/// So often somebody who polls only for want of a connection of its own tries to get one.
const LISTEN_AGAIN: Duration = Duration::from_secs(10);

/// Watches until the watch is dropped; returns once nothing can be missed any more.
pub(crate) fn watch(
    database: &PostgresDatabase,
    clock: Clock,
    mut on_change: impl FnMut(Change) + Send + 'static,
) -> Result<Watch, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|_| StoreError::Interrupted)?;
    let (watch, watched) = Watch::new();
    let (begun, is_begun) = mpsc::channel();
    let database = database.clone();
    let follow = async move {
        let feed = Feed::begin(&database, &clock, Sharing::Allowed).await;
        let Ok(feed) = feed.map_err(|error| begun.send(Err(error))) else {
            return;
        };
        if begun.send(Ok(())).is_ok() {
            follow(&database, &clock, feed, &mut on_change).await;
        }
    };
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = watched => {}
                () = follow => {}
            }
        });
    };
    thread::Builder::new()
        .name("store-changes".to_owned())
        .spawn(run)
        .map_err(|_| StoreError::Interrupted)?;
    is_begun.recv().map_err(|_| StoreError::Interrupted)??;
    Ok(watch)
}

/// Follows one feed after the other, for ever.
async fn follow(
    database: &PostgresDatabase,
    clock: &Clock,
    first: Feed,
    on_change: &mut impl FnMut(Change),
) {
    let mut feed = first;
    loop {
        feed = match feed.run(clock, on_change).await {
            Ok(next) => next,
            Err(error) => {
                on_change(Change::Lost);
                begun_anew(database, clock, error).await
            }
        };
        on_change(Change::Everything);
    }
}

/// Tries until it is done. What is in the way is told when it changes.
async fn begun_anew(database: &PostgresDatabase, clock: &Clock, error: StoreError) -> Feed {
    let began = Instant::now();
    let mut told = String::new();
    let mut cause = error;
    loop {
        let text = cause.in_short();
        if text != told {
            tracing::warn!("the store's changes are not heard of until it answers again: {text}");
            told = text;
        }
        tokio::time::sleep(RETRY).await;
        let sharing = if began.elapsed() < GOES_AWAY {
            Sharing::TooSoon
        } else {
            Sharing::Allowed
        };
        match Feed::begin(database, clock, sharing).await {
            Ok(feed) => {
                tracing::info!("the store's changes are heard of again");
                return feed;
            }
            Err(error) => cause = error,
        }
    }
}

/// Whether the pool's connections may be used where there is none of our own.
#[derive(PartialEq, Eq)]
enum Sharing {
    Allowed,
    TooSoon,
}

/// How changes are heard of.
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
            Ok((client, notifications)) if database.notifies() => {
                let listener = Listener::begin(database, client, notifications, clock).await?;
                match listener {
                    Ok(listener) => return Ok(Self::Listening(listener)),
                    Err(client) => (Poller::begin(database, Some(client), clock).await?, false),
                }
            }
            Ok((client, _)) => (Poller::begin(database, Some(client), clock).await?, false),
            Err(cause) if sharing == Sharing::TooSoon => return Err(cause),
            // There may be none for us though the server is well.
            Err(cause) => {
                let poller = Poller::begin(database, None, clock).await;
                (poller.map_err(|_| cause)?, true)
            }
        };
        tracing::info!("the store cannot be listened to: its changes are read instead");
        Ok(Self::Polling { poller, may_listen })
    }

    /// Tells of changes until the server fails to answer, or a better feed is to be had.
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
            let pause = Instant::now() + LISTEN_AGAIN;
            poller.run_until(pause, on_change).await?;
            if may_listen && poller.database().notifies() {
                let database = poller.database().clone();
                if let Ok((client, notifications)) = database.connect().await
                    && let Ok(listener) =
                        Listener::begin(&database, client, notifications, clock).await?
                {
                    return Ok(Self::Listening(listener));
                }
            }
        }
    }
}

//! The thread of the change feed: listens or polls, and reconnects when the server does not answer.

use std::{sync::mpsc, thread, time::Duration};

use tokio::time::{Instant, sleep};

use super::{
    clock::Clock,
    feed::{Feed, Sharing},
};
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

/// Watches until the watch is dropped; returns once no change can be missed any more.
pub(crate) fn watch(
    database: &PostgresDatabase,
    clock: Clock,
    mut on_change: impl FnMut(Change) + Send + 'static,
) -> Result<Watch, StoreError> {
    // A runtime of its own: if requests kept the runtime busy, the feed would be late and caches stale.
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
            // The program starts without the store, and serves what does not need it.
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
                // May cancel a poll half-way, which loses nothing: no caller is left to notify.
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

/// Opens a database that did not answer at the start, and begins its feed.
async fn first_feed(database: &PostgresDatabase, clock: &Clock) -> Feed {
    let begin = || async {
        let opened = database.finish_opening().await;
        opened.map_err(|error| error.in_short())?;
        let feed = Feed::begin(database, clock, Sharing::Allowed).await;
        feed.map_err(|error| error.in_short())
    };
    retry(
        begin,
        |cause| tracing::warn!(%cause, "the store cannot be opened yet"),
    )
    .await
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
                sleep(RETRY_INTERVAL).await;
            }
        };
        let next = tokio::select! {
            next = feed.run(on_change) => next,
            // Calls now use another server. The feed's connection may still be to the old one.
            () = changed => Err(StoreError::Disconnected),
        };
        feed = match next {
            Ok(next) => next,
            Err(error) => {
                // Read before the restart: if calls find another server meanwhile, the new feed may be at the old one.
                last = server();
                // First: however long the restart takes, no cached value counts as confirmed.
                on_change(Change::Lost);
                let restarted = restart(database, clock, &error).await;
                on_change(Change::Restored);
                restarted
            }
        };
    }
}

/// Begins another feed after a failure, which is logged before the first attempt.
async fn restart(database: &PostgresDatabase, clock: &Clock, error: &StoreError) -> Feed {
    let lost_at = Instant::now();
    let mut cause = Some(error.in_short());
    let begin = || {
        let cause = cause.take();
        async move {
            if let Some(cause) = cause {
                return Err(cause);
            }
            let sharing = match lost_at.elapsed() < SHARING_DELAY {
                true => Sharing::TooSoon,
                false => Sharing::Allowed,
            };
            let feed = Feed::begin(database, clock, sharing).await;
            feed.map_err(|error| error.in_short())
        }
    };
    retry(begin, log_lost).await
}

/// Retries until a feed begins. Logs an error only if it differs from the last one.
async fn retry<F: Future<Output = Result<Feed, String>>>(
    mut begin: impl FnMut() -> F,
    log: impl Fn(&str),
) -> Feed {
    let mut logged = String::new();
    loop {
        match begin().await {
            Ok(feed) => {
                log_restored();
                return feed;
            }
            Err(error) if error != logged => {
                log(&error);
                logged = error;
            }
            Err(_) => {}
        }
        sleep(RETRY_INTERVAL).await;
    }
}

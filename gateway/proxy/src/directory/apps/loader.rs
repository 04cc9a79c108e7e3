//! Keeps all applications in the cache, if they fit, and a snapshot of them in a file. CONTRACT 4.
//!
//! It reads them at the start, and after changes: so an outage of the store finds every application cached, not only those
//! that have called. It runs on the control thread, page by page; files are written elsewhere, since a disk may hang.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use signpost_kit::{
    clock::{Clock, Timestamp},
    server::shutdown::WriteRequests,
    task::Task,
};
use signpost_protocol::app::AppIdent;
use signpost_store::{
    StoreError,
    tables::applications::{self, ApplicationRow},
};
use tokio::time::{MissedTickBehavior, interval};

use super::{
    App,
    directory::{AllCaches, CachedApps},
    snapshot::{NewSnapshot, SnapshotFile, WrittenSnapshot},
    stored::StoredApps,
};

/// Time from one look at the changes to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// Applications that are read at once: a millisecond of the thread, and a quarter of a megabyte. The process keeps as much.
const PAGE: usize = 250;

/// Attempts to read a page while applications change.
const MAX_ATTEMPTS: usize = 3;

/// Time from one count of the applications to the next, if any has changed.
const COUNT_INTERVAL: Duration = Duration::from_secs(60);

/// Time from one writing of the snapshot to the next.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(30);

/// Time from one renewal of the snapshot's time to the next.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);

/// Subtracted from the time at which the snapshot is known to be true: a change that was read may not be applied yet.
const MARGIN: Duration = Duration::from_secs(1);

/// Reads applications into the current cache of a store.
pub struct AppLoader {
    store: StoredApps,
    caches: Arc<AllCaches>,
    clock: Arc<dyn Clock>,
    /// Whether all applications fit into the cache; `None` before they were counted.
    fits: Option<bool>,
    counted_at: Instant,
    /// Whether an application has changed since they were counted: it may be a new or a deleted one.
    may_be_miscounted: bool,
    snapshot: Option<SnapshotWriter>,
}

/// Writes the snapshot.
struct SnapshotWriter {
    file: Arc<SnapshotFile>,
    written: Option<Arc<WrittenSnapshot>>,
    /// Whether an application has changed since it was written.
    is_outdated: bool,
    /// When it was written, or should have been.
    begun_at: Option<Instant>,
    renewed_at: Instant,
    is_failing: bool,
}

impl AppLoader {
    /// A loader that reads all applications first.
    pub(super) fn new(
        store: StoredApps,
        caches: Arc<AllCaches>,
        file: Option<SnapshotFile>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        caches.unread.add_all();
        let snapshot = file.map(|file| SnapshotWriter {
            file: Arc::new(file),
            written: None,
            is_outdated: true,
            begun_at: None,
            renewed_at: clock.instant(),
            is_failing: false,
        });
        Self {
            store,
            caches,
            fits: None,
            counted_at: clock.instant(),
            may_be_miscounted: false,
            clock,
            snapshot,
        }
    }

    /// Loads until the process ends. At a stop, the snapshot is written once more.
    pub async fn run(mut self, mut stops: WriteRequests) {
        if self.snapshot.is_none() {
            // A stop would otherwise wait for a file that nobody writes.
            stops.close();
        }
        let mut ticks = interval(INTERVAL);
        // After an outage of the store, missed ticks must not follow each other at once.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut task = Task::quiet("applications cannot be loaded now");
        loop {
            // Both branches are safe to cancel. The turn is outside: cut off halfway, it would lose the changes that it
            // has taken.
            let stop = tokio::select! {
                _ = ticks.tick() => None,
                Some(done) = stops.recv() => Some(done),
            };
            if let (Some(_), Some(snapshot)) = (&stop, &mut self.snapshot) {
                // The last changes may not have been notified yet.
                (snapshot.is_outdated, snapshot.begun_at) = (true, None);
            }
            let turn = self.turn().await;
            let is_loaded = turn.is_ok();
            if !is_loaded {
                // The changes are off the list, and which of them were read is unknown: so all are read again.
                self.caches.unread.add_all();
            }
            task.log(turn.map(|()| true));
            let snapshot = self.snapshot.as_ref();
            let is_failing = snapshot.is_some_and(|snapshot| snapshot.is_failing);
            if let Some(done) = stop.filter(|_| is_loaded && !is_failing) {
                // The stop may have given up.
                let _ = done.send(());
            }
        }
    }

    /// Reads what has changed.
    async fn turn(&mut self) -> Result<(), StoreError> {
        let Some(apps) = self.caches.current() else {
            return Ok(());
        };
        // Before the store is read: a change that comes meanwhile is left for the next turn.
        let changed = self.caches.unread.take();
        let now = self.clock.instant();
        let is_due = self.snapshot.as_mut().is_some_and(|snapshot| {
            snapshot.is_outdated |= changed.all || !changed.idents.is_empty();
            snapshot.is_due(now)
        });
        self.may_be_miscounted |= !changed.idents.is_empty();
        let counts = self.may_be_miscounted
            && now.saturating_duration_since(self.counted_at) >= COUNT_INTERVAL;
        let did_fit = self.fits == Some(true);
        // If they did not fit, requests cache what they need. Only another count can show that all fit by now.
        if changed.all || (is_due && did_fit) || (counts && !did_fit) {
            return self.load_all(&apps, is_due).await;
        }
        if did_fit && (!counts || self.count(&apps).await?) {
            for ident in changed.idents {
                self.load_one(&apps, ident).await?;
            }
            self.renew_snapshot(now).await;
        }
        Ok(())
    }

    async fn load_one(&self, apps: &CachedApps, ident: AppIdent) -> Result<(), StoreError> {
        // Before the row is read: if the application changes meanwhile, the cache refuses what was read.
        let load = apps.cache.begin_load();
        let row = applications::find(self.store.database(), ident).await?;
        let app = match row {
            // A record that cannot be used is left to the requests that ask for it.
            Some(row) => match self.store.open(ident, &row) {
                Ok(app) => Some(Arc::new(app)),
                Err(_) => return Ok(()),
            },
            None => None,
        };
        if !apps.cache.load(load, [(ident, app)]) {
            self.caches.unread.add_all();
        }
        Ok(())
    }

    /// Reads all applications, if they fit into the cache, and writes the snapshot if it is due.
    async fn load_all(&mut self, apps: &CachedApps, writes: bool) -> Result<(), StoreError> {
        // The snapshot is true at this time only: each row may have changed right after its page was read.
        let begun_at = self.clock.now();
        if !self.count(apps).await? {
            return Ok(());
        }
        let mut new = match self.snapshot.as_mut().filter(|_| writes) {
            Some(snapshot) => Some(snapshot.begin(self.clock.instant()).await),
            None => None,
        };
        let (mut last, mut attempts) = (i64::MIN, 0);
        loop {
            let load = apps.cache.begin_load();
            let rows = applications::page(self.store.database(), last, PAGE).await?;
            let Some(end) = rows.last().map(|row| row.id.get()) else {
                break;
            };
            attempts += 1;
            let opened = rows.iter().filter_map(|row| self.opened(row));
            if !apps.cache.load(load, opened) {
                // Constant changes must not keep the loader at one page: the next turn reads all again.
                if attempts < MAX_ATTEMPTS {
                    continue;
                }
                self.caches.unread.add_all();
            }
            // An error of the file stays in `new` until the end: the cache is filled nevertheless.
            if let Some(Ok(file)) = new {
                let store = self.store.clone();
                new = Some(on_file_thread(move || file.with(rows, &store)).await);
            }
            (last, attempts) = (end, 0);
        }
        if let (Some(new), Some(snapshot)) = (new, &mut self.snapshot) {
            snapshot.replace(new, begun_at).await;
        }
        Ok(())
    }

    fn opened(&self, row: &ApplicationRow) -> Option<(AppIdent, Option<Arc<App>>)> {
        let ident = row.ident.parse().ok()?;
        let app = self.store.open(ident, row).ok()?;
        Some((ident, Some(Arc::new(app))))
    }

    /// Whether all applications fit into the cache. Logs when that changes.
    async fn count(&mut self, apps: &CachedApps) -> Result<bool, StoreError> {
        let (begun_at, entries) = (self.clock.instant(), apps.cache.entries());
        let count = applications::count(self.store.database()).await?;
        (self.counted_at, self.may_be_miscounted) = (begun_at, false);
        let fits = count <= entries;
        if self.fits.replace(fits) != Some(fits) {
            if fits {
                tracing::info!(
                    applications = count,
                    "all {count} applications are kept in the cache"
                );
            } else {
                tracing::warn!(
                    applications = count,
                    "{count} applications do not fit into applications.cache_entries = {entries}: each is cached when it calls, \
                     and there is no snapshot"
                );
            }
        }
        Ok(fits)
    }

    /// Renews the time of the snapshot if it is known to be still true.
    async fn renew_snapshot(&mut self, now: Instant) {
        // Only changes up to the feed's last complete read are known. While the feed is lost, this time stands still.
        let lag = self.store.database().statistics().feed_lag;
        if let (Some(lag), Some(snapshot)) = (lag, &mut self.snapshot)
            && now.saturating_duration_since(snapshot.renewed_at) >= RENEWAL_INTERVAL
        {
            snapshot.renewed_at = now;
            snapshot.renew(self.clock.now().minus(lag + MARGIN)).await;
        }
    }
}

impl SnapshotWriter {
    fn is_due(&self, now: Instant) -> bool {
        let is_time = |begun_at| now.saturating_duration_since(begun_at) >= SNAPSHOT_INTERVAL;
        self.is_outdated && self.begun_at.is_none_or(is_time)
    }

    async fn begin(&mut self, now: Instant) -> io::Result<NewSnapshot> {
        self.begun_at = Some(now);
        // What changes from now on makes it outdated again.
        self.is_outdated = false;
        let file = Arc::clone(&self.file);
        on_file_thread(move || file.begin()).await
    }

    async fn replace(&mut self, new: io::Result<NewSnapshot>, true_at: Timestamp) {
        let file = Arc::clone(&self.file);
        let replace = move || new.and_then(|new| file.replace(new, true_at));
        match on_file_thread(replace).await {
            Ok(written) => {
                self.written = Some(Arc::new(written));
                self.is_failing = false;
            }
            Err(cause) => self.failed(&cause),
        }
    }

    async fn renew(&mut self, true_at: Timestamp) {
        if self.is_outdated {
            return;
        }
        let Some(written) = self.written.clone() else {
            return;
        };
        let file = Arc::clone(&self.file);
        match on_file_thread(move || file.renew(&written, true_at)).await {
            Ok(was_there) => self.is_outdated = !was_there,
            Err(cause) => self.failed(&cause),
        }
    }

    fn failed(&mut self, cause: &io::Error) {
        self.is_outdated = true;
        // One line for an outage, not one for each attempt.
        if !std::mem::replace(&mut self.is_failing, true) {
            let path = self.file.path.display();
            tracing::warn!(%cause, "the snapshot {path} cannot be written; it is tried again");
        }
    }
}

/// Calls the file system on another thread.
async fn on_file_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other).flatten()
}

#[cfg(test)]
mod both_stores;

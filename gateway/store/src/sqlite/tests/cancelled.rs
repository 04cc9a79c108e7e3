//! Calls that are dropped before they finish: the limits hold, and nothing leaks (#9).

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    sync::mpsc,
    thread,
};

use super::*;
use crate::sqlite::pool::CONNECTIONS;

/// Far more than a call takes.
const DEADLINE: Duration = Duration::from_secs(20);

/// Counts concurrent work, and its maximum.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    largest: AtomicUsize,
}

impl Gauge {
    fn work(&self) -> rusqlite::Result<()> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.largest.fetch_max(now, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(1));
        self.now.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

/// How many descriptors of this process have the file open: one per connection.
fn open_connections(file: &Path) -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter(|target| target == file).count()
}

async fn wait_until_at_rest(database: &SqliteDatabase) {
    let at_rest = async {
        while !database.pool.is_at_rest() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(DEADLINE, at_rest).await;
    waited.expect("all permits are released");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn dropped_calls_never_exceed_the_connection_limit() {
    let folder = Folder::new("dropped");
    let database = patient(&folder);
    let gauge = Arc::new(Gauge::default());
    let mut most_open = 0;
    for round in 0..60_u64 {
        let calls = (0..50_u64).map(|number| {
            let (database, gauge) = (database.clone(), Arc::clone(&gauge));
            // Spread from before the permit to after the work.
            let moment = Duration::from_micros((round * 50 + number) * 7919 % 3000);
            tokio::spawn(tokio::time::timeout(moment, async move {
                let work = move || gauge.work();
                if number % 2 == 0 {
                    database.write(move |_| work()).await
                } else {
                    database.call(move |_| work()).await
                }
            }))
        });
        let calls: Vec<_> = calls.collect();
        for call in calls {
            // Most were dropped.
            let _ = call.await.unwrap();
        }
        most_open = most_open.max(open_connections(&folder.file()));
        let began = std::time::Instant::now();
        database.write(|_| Ok::<_, StoreError>(())).await.unwrap();
        assert!(began.elapsed() < DEADLINE, "{:?}", began.elapsed());
    }
    wait_until_at_rest(&database).await;
    let largest = gauge.largest.load(Ordering::SeqCst);
    assert!((1..=CONNECTIONS).contains(&largest), "{largest} at once");
    assert!(most_open <= CONNECTIONS, "{most_open} connections");
    assert!(database.pool.idle_connections() <= CONNECTIONS);
}

#[test]
fn work_whose_caller_is_dropped_before_it_begins_is_not_run() {
    let folder = Folder::new("left");
    let database = SqliteDatabase::open(&folder.file(), PROGRAM).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let was_run = Arc::new(AtomicBool::new(false));
    runtime.block_on(async {
        // The one thread is busy, so the work is queued behind it.
        let (release, released) = mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || released.recv());
        let run = Arc::clone(&was_run);
        let call = database.write(move |_| {
            run.store(true, Ordering::SeqCst);
            Ok::<_, StoreError>(())
        });
        let dropped = tokio::time::timeout(Duration::from_millis(50), call).await;
        assert!(dropped.is_err(), "no thread could run the work");
        assert!(!database.pool.is_at_rest(), "the writer has not begun");
        release.send(()).unwrap();
        busy.await.unwrap().unwrap();
        wait_until_at_rest(&database).await;
    });
    assert!(!was_run.load(Ordering::SeqCst));
}

#[tokio::test]
async fn work_that_panics_releases_permit_and_connection() {
    let folder = Folder::new("panic");
    let database = SqliteDatabase::open(&folder.file(), PROGRAM).unwrap();
    for _ in 0..2 * CONNECTIONS {
        let failed = database.write(|_| -> rusqlite::Result<()> { panic!("intended by the test") });
        assert!(matches!(failed.await, Err(StoreError::Interrupted)));
    }
    wait_until_at_rest(&database).await;
    database.write(|_| Ok::<_, StoreError>(())).await.unwrap();
}

#[tokio::test]
async fn blocking_calls_above_the_limit_leave_no_surplus_idle_connections() {
    let folder = Folder::new("surplus");
    let database = SqliteDatabase::open(&folder.file(), PROGRAM).unwrap();
    fn nested(database: &SqliteDatabase, depth: usize) -> Result<(), StoreError> {
        if depth == 0 {
            return Ok(());
        }
        database.call_blocking(|_| nested(database, depth - 1))
    }
    nested(&database, 2 * CONNECTIONS).unwrap();
    assert_eq!(database.pool.idle_connections(), CONNECTIONS);
}

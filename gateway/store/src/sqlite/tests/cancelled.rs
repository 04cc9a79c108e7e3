//! Calls that are dropped before they are done: the limits hold, and nothing is left behind (#9).

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    sync::mpsc,
    thread,
};

use super::*;
use crate::sqlite::pool::CONNECTIONS;

/// Far more than a call takes.
const SOON: Duration = Duration::from_secs(2);

/// How much work goes on at once, and the most that ever did.
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

/// How often this process has the file open: once for each connection.
fn open_connections(file: &Path) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| target == file).count()
}

async fn comes_to_rest(database: &SqliteDatabase) {
    let at_rest = async {
        while !database.pool.is_at_rest() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let came = tokio::time::timeout(SOON, at_rest).await;
    came.expect("all permits come back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_are_dropped_never_use_more_connections_than_there_are() {
    let folder = Folder::new("dropped");
    let database = SqliteDatabase::open(&folder.file()).unwrap();
    let gauge = Arc::new(Gauge::default());
    let mut most_open = 0;
    for round in 0..60_u64 {
        let calls = (0..50_u64).map(|number| {
            let (database, gauge) = (database.clone(), Arc::clone(&gauge));
            // Every moment from before the permit to after the work.
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
        database.write(|_| Ok(())).await.unwrap();
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
    comes_to_rest(&database).await;
    let largest = gauge.largest.load(Ordering::SeqCst);
    assert!((1..=CONNECTIONS).contains(&largest), "{largest} at once");
    assert!(most_open <= CONNECTIONS, "{most_open} connections");
    assert!(database.pool.idle_connections() <= CONNECTIONS);
}

#[test]
fn work_whose_caller_has_left_before_it_began_is_not_done() {
    let folder = Folder::new("left");
    let database = SqliteDatabase::open(&folder.file()).unwrap();
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
            Ok(())
        });
        let dropped = tokio::time::timeout(Duration::from_millis(50), call).await;
        assert!(dropped.is_err(), "nobody could do the work");
        assert!(
            !database.pool.is_at_rest(),
            "the queued work has the permit"
        );
        release.send(()).unwrap();
        busy.await.unwrap().unwrap();
        comes_to_rest(&database).await;
    });
    assert!(!was_run.load(Ordering::SeqCst));
}

#[tokio::test]
async fn work_that_panics_gives_back_what_it_had() {
    let folder = Folder::new("panic");
    let database = SqliteDatabase::open(&folder.file()).unwrap();
    for _ in 0..2 * CONNECTIONS {
        let failed = database.write(|_| -> rusqlite::Result<()> { panic!("as a test means to") });
        assert!(matches!(failed.await, Err(StoreError::Interrupted)));
    }
    comes_to_rest(&database).await;
    database.write(|_| Ok(())).await.unwrap();
}

#[tokio::test]
async fn calls_beside_the_limit_leave_no_more_idle_connections_than_there_may_be() {
    let folder = Folder::new("surplus");
    let database = SqliteDatabase::open(&folder.file()).unwrap();
    fn nested(database: &SqliteDatabase, depth: usize) -> rusqlite::Result<()> {
        if depth == 0 {
            return Ok(());
        }
        database.call_now(|_| nested(database, depth - 1))
    }
    nested(&database, 2 * CONNECTIONS).unwrap();
    assert_eq!(database.pool.idle_connections(), CONNECTIONS);
}

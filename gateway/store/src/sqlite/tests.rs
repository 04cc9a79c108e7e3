//! Opening, migrating and calling, on real files.

use std::path::PathBuf;

use super::*;
use crate::testing::PROGRAM;

mod cancelled;
mod deadline;

const INSERT: &str = "INSERT INTO changes (topic, key, changed_at) VALUES ('t', x'00', 0)";

/// A folder of the test, removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("signpost-store-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("deeper/signpost.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_new_file_can_be_opened_many_times_at_once() {
    let folder = Folder::new("many");
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let file = folder.file();
            std::thread::spawn(move || SqliteDatabase::open(&file, PROGRAM).unwrap())
        })
        .collect();
    for thread in threads {
        let database = thread.join().unwrap();
        let count = |connection: &mut Connection| {
            connection.query_row("SELECT count(*) FROM applications", [], |row| {
                row.get::<_, i64>(0)
            })
        };
        assert_eq!(database.call(count).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_failed_write_is_rolled_back() {
    let folder = Folder::new("rollback");
    let database = SqliteDatabase::open(&folder.file(), PROGRAM).unwrap();
    let failed = database
        .write(move |transaction| {
            transaction.execute(INSERT, [])?;
            transaction.execute("INSERT INTO no_such_table VALUES (1)", [])
        })
        .await;
    assert!(matches!(failed, Err(StoreError::Sqlite(_))));
    let count = |connection: &mut Connection| {
        connection.query_row("SELECT count(*) FROM changes", [], |row| {
            row.get::<_, i64>(0)
        })
    };
    assert_eq!(database.call(count).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_wait_for_each_other() {
    let folder = Folder::new("writers");
    let database = patient(&folder);
    let writes: Vec<_> = (0..40)
        .map(|_| {
            let database = database.clone();
            tokio::spawn(async move { database.write(move |tx| tx.execute(INSERT, [])).await })
        })
        .collect();
    for write in writes {
        write.await.unwrap().unwrap();
    }
}

#[test]
fn only_the_owner_can_read_the_files_unless_the_folder_is_shared() {
    for (folder_mode, file_mode) in [
        (0o700, 0o600),
        (0o770, 0o600),
        (0o2750, 0o600),
        (0o2770, 0o660),
        (0o3770, 0o660),
    ] {
        let folder = Folder::new(&format!("modes-{folder_mode:o}"));
        let path = folder.file().parent().unwrap().to_owned();
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(folder_mode)).unwrap();
        let database = SqliteDatabase::open(&folder.file(), PROGRAM).unwrap();
        database
            .call_blocking(|connection| connection.execute("DELETE FROM changes", []))
            .unwrap();
        let files: Vec<_> = fs::read_dir(&path).unwrap().map(Result::unwrap).collect();
        // The database, its lock at the start, and the two of the write-ahead log.
        assert_eq!(files.len(), 4, "{files:?}");
        for file in files {
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, file_mode, "{:?} in {folder_mode:o}", file.path());
        }
    }
}

#[test]
fn a_file_that_is_not_a_database_is_reported() {
    let folder = Folder::new("garbage");
    let file = folder.file();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(
        &file,
        "this is a text, and a long enough one to be no database header",
    )
    .unwrap();
    let error = SqliteDatabase::open(&file, PROGRAM).unwrap_err();
    assert!(matches!(error, OpenError::File { .. }), "{error}");
    assert!(error.to_string().contains("signpost.db"));
}

#[test]
fn a_folder_that_cannot_be_created_is_reported() {
    let file = PathBuf::from("/dev/null/signpost.db");
    assert!(matches!(
        SqliteDatabase::open(&file, PROGRAM),
        Err(OpenError::Folder { .. })
    ));
}

#[test]
fn a_file_system_without_room_for_some_pages_is_full() {
    let mut disk = rustix::fs::statvfs("/").unwrap();
    for (blocks, free, expected) in [
        (100, 15, true),
        (100, 16, false),
        (100, 0, true),
        (100, u64::MAX, false),
        (0, 0, false),
    ] {
        (disk.f_frsize, disk.f_blocks) = (4096, blocks);
        (disk.f_bfree, disk.f_bavail) = (free, free);
        assert_eq!(is_full(&disk), expected, "{free} of {blocks}");
    }
}

/// A database whose calls outlast a pause of the machine.
fn patient(folder: &Folder) -> SqliteDatabase {
    SqliteDatabase::open_with(&folder.file(), Duration::from_secs(60), PROGRAM).unwrap()
}

/// The work of a write.
type Work = Box<dyn FnOnce(&Connection) -> rusqlite::Result<i64> + Send>;

/// Has writes wait for the lock, one after the other; returns their results.
async fn queued(
    folder: &Folder,
    database: &SqliteDatabase,
    writes: Vec<Work>,
) -> Vec<Result<i64, StoreError>> {
    let lock = Connection::open(folder.file()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut tasks = Vec::new();
    for (before, work) in writes.into_iter().enumerate() {
        let own = database.clone();
        tasks.push(tokio::spawn(async move { own.write(work).await }));
        // The first one waits for the lock, the others for it.
        while database.pool.is_at_rest() || database.statistics().pool.waiting < before {
            assert!(tasks.iter().all(|task| !task.is_finished()));
            tokio::task::yield_now().await;
        }
    }
    lock.execute_batch("COMMIT").unwrap();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

fn count(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM changes", [], |row| row.get(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_wait_share_a_transaction_and_fail_alone() {
    let folder = Folder::new("group");
    let database = patient(&folder);
    // A transaction takes no further writes after a while, and a busy machine can pause it.
    for round in 1.. {
        let other = Connection::open(folder.file()).unwrap();
        let results = queued(
            &folder,
            &database,
            vec![
                Box::new(|all| all.execute(INSERT, []).map(|_| 0)),
                Box::new(|all| {
                    all.execute(INSERT, [])?;
                    all.execute("INSERT INTO no_such_table VALUES (1)", [])
                        .map(|_| 0)
                }),
                // The rows that another connection does not see are those of its own transaction.
                Box::new(move |all| {
                    all.execute(INSERT, [])?;
                    Ok(count(all)? - count(&other)?)
                }),
                Box::new(|all| {
                    all.execute("DELETE FROM changes", [])?;
                    panic!("intended by the test")
                }),
            ],
        )
        .await;
        assert!(results[0].is_ok());
        assert!(matches!(results[1], Err(StoreError::Sqlite(_))));
        assert!(matches!(results[3], Err(StoreError::Interrupted)));
        let rows = database.call(|connection| count(connection)).await.unwrap();
        assert_eq!(rows, 2 * round);
        if matches!(results[2], Ok(2)) {
            break;
        }
        assert!(round < 50, "{results:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_ends_the_transaction_fails_the_writes_beside_it() {
    let folder = Folder::new("ended");
    let database = patient(&folder);
    let results = queued(
        &folder,
        &database,
        vec![
            Box::new(|all| all.execute(INSERT, []).map(|_| 0)),
            // As SQLite does when the disk is full.
            Box::new(|all| all.execute_batch("ROLLBACK").map(|()| 0)),
            Box::new(|all| {
                let insert = INSERT.replace("x'00'", "x'01'");
                all.execute(&insert, []).map(|_| 0)
            }),
        ],
    )
    .await;
    let is_success: Vec<_> = results.iter().map(Result::is_ok).collect();
    // The last one has a transaction of its own. If the first had one, too, it stays.
    assert_eq!(is_success[1..], [false, true], "{results:?}");
    let keys = |connection: &mut Connection| {
        let query = "SELECT key, (SELECT count(*) FROM changes) FROM changes ORDER BY id DESC";
        connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?)))
    };
    let (last, count): (Vec<u8>, usize) = database.call(keys).await.unwrap();
    assert_eq!((last, count), (vec![1], 1 + usize::from(is_success[0])));
}

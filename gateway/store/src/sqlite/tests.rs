//! Opening, migrating and calling, on real files.

use std::path::PathBuf;

use super::*;
use crate::testing::PROGRAM;

mod cancelled;
mod deadline;

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
    let insert = "INSERT INTO changes (topic, key, changed_at) VALUES ('t', x'00', 0)";
    let failed = database
        .write(move |transaction| {
            transaction.execute(insert, [])?;
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
    let database = SqliteDatabase::open(&folder.file(), PROGRAM).unwrap();
    let insert = "INSERT INTO changes (topic, key, changed_at) VALUES ('t', x'00', 0)";
    let writes: Vec<_> = (0..40)
        .map(|_| {
            let database = database.clone();
            tokio::spawn(async move { database.write(move |tx| tx.execute(insert, [])).await })
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

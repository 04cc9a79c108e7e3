//! Backups, copies that are none, and restores, of real files.

use std::{thread, time::Duration};

use super::*;
use crate::{sqlite::tests::Folder, testing::PROGRAM};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Adds a row to the database.
async fn add(database: &SqliteDatabase, key: &str) {
    let insert = format!(
        "INSERT INTO changes (topic, key, changed_at) VALUES ('test', CAST('{key}' AS BLOB), 0)"
    );
    database
        .write(move |all| all.execute_batch(&insert))
        .await
        .unwrap();
}

/// Waits until the last connection has written the log into the database. A thread may still have it after a call.
fn until_closed(path: &Path) {
    let is_closed = (0..10_000).any(|_| {
        thread::sleep(Duration::from_millis(1));
        log_bytes(path) == 0
    });
    assert!(is_closed);
}

async fn keys(path: &Path) -> Vec<String> {
    let database = SqliteDatabase::open(path, PROGRAM).unwrap();
    let read = |connection: &mut Connection| {
        let mut keys = connection.prepare("SELECT CAST(key AS TEXT) FROM changes ORDER BY id")?;
        let keys = keys.query_map([], |row| row.get(0))?;
        keys.collect::<rusqlite::Result<_>>()
    };
    database.call(read).await.unwrap()
}

#[tokio::test]
async fn a_copy_of_the_file_alone_is_refused_however_much_was_written() {
    let folder = Folder::new("incomplete");
    let file = folder.file();
    let copy = file.with_file_name("copy.db");
    let database = SqliteDatabase::open(&file, PROGRAM).unwrap();
    let refused = || {
        let _ = fs::remove_file(&copy);
        fs::copy(&file, &copy).unwrap();
        let errors = [
            SqliteDatabase::open(&copy, PROGRAM).unwrap_err(),
            SqliteDatabase::open_read_only(&copy).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, OpenError::Incomplete(_)), "{error}");
            assert!(error.to_string().contains("signpost store restore"));
        }
        let restored = Restore::prepare(&file.with_file_name("new.db"), &copy);
        restored.unwrap_err();
    };
    refused();
    // Far beyond a checkpoint.
    let filler = "x".repeat(2 << 20);
    for key in [
        "a", &*filler, &*filler, &*filler, "b", &*filler, &*filler, "c",
    ] {
        add(&database, key).await;
        refused();
    }
    let log = log_bytes(&file);
    assert!(log < 3 * (4 << 20), "checkpoints are made: {log}");
    // With its log, and after the last connection was closed, it is whole.
    let _ = fs::remove_file(&copy);
    fs::copy(&file, &copy).unwrap();
    fs::copy(log_of(&file), log_of(&copy)).unwrap();
    assert_eq!(keys(&copy).await.len(), 8);
    drop(database);
    until_closed(&file);
    let closed = file.with_file_name("closed.db");
    fs::copy(&file, &closed).unwrap();
    assert_eq!(keys(&closed).await.len(), 8);
}

#[tokio::test]
async fn a_process_that_was_killed_during_a_checkpoint_leaves_a_usable_database() {
    let folder = Folder::new("killed");
    let file = folder.file();
    let database = SqliteDatabase::open(&file, PROGRAM).unwrap();
    add(&database, "a").await;
    let marked = |all: &Connection| all.execute_batch("PRAGMA user_version = 1");
    database.write(marked).await.unwrap();
    assert_eq!(keys(&file).await, ["a"]);
    drop(database);
    until_closed(&file);
    assert_eq!(keys(&file).await, ["a"]);
}

#[tokio::test]
async fn a_backup_is_whole_private_and_overwrites_nothing() {
    let folder = Folder::new("backup");
    let file = folder.file();
    let database = SqliteDatabase::open(&file, PROGRAM).unwrap();
    add(&database, "a").await;
    let saved = file.with_file_name("saved.db");
    backup(&file, &saved).unwrap();
    assert_eq!(mode(&saved), 0o600);
    assert!(matches!(backup(&file, &saved), Err(BackupError::Exists(_))));
    let missing = file.with_file_name("missing.db");
    let of_none = backup(&missing, &file.with_file_name("x.db"));
    assert!(matches!(of_none, Err(BackupError::Missing(_))));
    assert!(!missing.exists());
    assert_eq!(keys(&saved).await, ["a"]);
    let left = fs::read_dir(file.parent().unwrap()).unwrap();
    let left = left.filter(|one| {
        let name = one.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(".signpost-copy")
    });
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn a_restore_replaces_the_database_and_its_log_and_keeps_them() {
    let folder = Folder::new("restore");
    let file = folder.file();
    let saved = file.with_file_name("saved.db");
    let database = SqliteDatabase::open(&file, PROGRAM).unwrap();
    add(&database, "a").await;
    backup(&file, &saved).unwrap();
    add(&database, "b").await;
    // As a killed process leaves them.
    let log = fs::read(log_of(&file)).unwrap();
    drop(database);
    until_closed(&file);
    fs::write(log_of(&file), log).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let restore = Restore::prepare(&file, &saved).unwrap();
    let kept = restore.install(".before").unwrap().unwrap();
    assert_eq!(mode(&file), 0o640);
    assert_eq!(keys(&file).await, ["a"]);
    assert_eq!(keys(&kept).await, ["a", "b"]);
    // A database that was lost, with its log left.
    fs::remove_file(&file).unwrap();
    fs::write(log_of(&file), "left").unwrap();
    let restore = Restore::prepare(&file, &saved).unwrap();
    assert_eq!(restore.install(".lost").unwrap(), None);
    assert_eq!(
        (mode(&file), keys(&file).await),
        (0o600, vec!["a".to_owned()])
    );
}

#[tokio::test]
async fn a_restore_refuses_what_is_damaged_or_not_ours() {
    let folder = Folder::new("refused");
    let file = folder.file();
    let database = SqliteDatabase::open(&file, PROGRAM).unwrap();
    add(&database, &"x".repeat(100_000)).await;
    let saved = file.with_file_name("saved.db");
    backup(&file, &saved).unwrap();
    drop(database);
    until_closed(&file);
    let before = fs::read(&file).unwrap();
    let mut damaged = fs::read(&saved).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 20_000].fill(0x5a);
    let other = file.with_file_name("other.db");
    fs::write(&other, damaged).unwrap();
    let refused = Restore::prepare(&file, &other).unwrap_err();
    assert!(matches!(refused, BackupError::Damaged { .. }), "{refused}");
    fs::write(&other, "no database").unwrap();
    let refused = Restore::prepare(&file, &other).unwrap_err();
    assert!(matches!(refused, BackupError::Damaged { .. }), "{refused}");
    fs::remove_file(&other).unwrap();
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE notes (text TEXT)")
        .unwrap();
    let refused = Restore::prepare(&file, &other).unwrap_err();
    assert!(matches!(refused, BackupError::NotOurs(_)), "{refused}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[tokio::test]
async fn a_log_without_its_database_is_refused_and_kept() {
    let folder = Folder::new("lost");
    let file = folder.file();
    let database = SqliteDatabase::open(&file, PROGRAM).unwrap();
    add(&database, "a").await;
    let whole = fs::read(&file).unwrap();
    let log = fs::read(log_of(&file)).unwrap();
    // No connection has this one open.
    let file = file.with_file_name("target.db");
    fs::write(log_of(&file), &log).unwrap();
    for is_missing in [false, true] {
        if is_missing {
            fs::remove_file(&file).unwrap();
        } else {
            fs::write(&file, "").unwrap();
        }
        let errors = [
            SqliteDatabase::open(&file, PROGRAM).unwrap_err(),
            SqliteDatabase::open_read_only(&file).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, OpenError::Lost(_)), "{error}");
            assert!(error.to_string().contains("signpost store restore"));
        }
        assert_eq!(file.exists(), !is_missing);
        assert_eq!(fs::read(log_of(&file)).unwrap(), log);
    }
    fs::write(&file, whole).unwrap();
    assert_eq!(keys(&file).await, ["a"]);
}

#[tokio::test]
async fn a_first_start_that_was_killed_does_not_leave_the_file_unmarked() {
    let folder = Folder::new("first");
    let file = folder.file();
    let copy = file.with_file_name("copy.db");
    let database = SqliteDatabase::open(&file, PROGRAM).unwrap();
    add(&database, "a").await;
    // As if it had been killed between the migrations and its checkpoint.
    let unmarked = |connection: &mut Connection| {
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
    };
    database.call(unmarked).await.unwrap();
    add(&database, "b").await;
    fs::copy(&file, &copy).unwrap();
    fs::copy(log_of(&file), log_of(&copy)).unwrap();
    let again = SqliteDatabase::open(&copy, PROGRAM).unwrap();
    let alone = file.with_file_name("alone.db");
    fs::copy(&copy, &alone).unwrap();
    let error = SqliteDatabase::open(&alone, PROGRAM).unwrap_err();
    assert!(matches!(error, OpenError::Incomplete(_)), "{error}");
    drop(again);
    assert_eq!(keys(&copy).await, ["a", "b"]);
}

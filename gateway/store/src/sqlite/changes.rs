//! The change feed of SQLite: a writer records changes in its transaction, and every process reads new records when
//! `data_version` shows that another connection has written.

use std::{
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, params};
use tokio::sync::oneshot::error::TryRecvError;

use super::{Pooled, SqliteDatabase, pool::missing_file};
use crate::{
    StoreError,
    changes::{Change, Topic, Watch, log_lost, log_restored},
};

/// Time between two reads of `data_version`: one small read of the file's header.
const INTERVAL: Duration = Duration::from_millis(100);

/// Records a change in the transaction that makes it.
///
/// # Errors
///
/// The database's own.
pub fn record(transaction: &Connection, topic: Topic, key: &[u8]) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO changes (topic, key, changed_at) VALUES (?1, ?2, unixepoch())",
        )?
        .execute(params![topic.as_str(), key])?;
    // Each writer sweeps a few old records, so that no call has to sweep many.
    transaction
        .prepare_cached(
            "DELETE FROM changes WHERE id IN (SELECT id FROM changes ORDER BY id LIMIT 8) \
             AND changed_at < unixepoch() - 3600",
        )?
        .execute([])?;
    Ok(())
}

pub(crate) fn watch(
    database: &SqliteDatabase,
    mut on_change: impl FnMut(Change) + Send + 'static,
) -> Result<Watch, StoreError> {
    let mut watcher = Watcher::start(database.clone())?;
    let (watch, mut end) = Watch::new();
    let poll = move || {
        while end.try_recv() == Err(TryRecvError::Empty) {
            watcher.poll(&mut on_change);
            thread::sleep(INTERVAL);
        }
    };
    thread::Builder::new()
        .name("store-changes".to_owned())
        .spawn(poll)
        .map_err(|_| StoreError::Interrupted)?;
    Ok(watch)
}

struct Watcher {
    database: SqliteDatabase,
    pooled: Option<Pooled>,
    data_version: i64,
    last_id: i64,
}

impl Watcher {
    fn start(database: SqliteDatabase) -> rusqlite::Result<Self> {
        let pooled = database.dedicated_connection()?;
        let begun_at = Instant::now();
        // In this order a record that is written in between is read twice rather than never.
        let data_version = data_version(&pooled.connection)?;
        let last_id = last_id(&pooled.connection)?;
        database.counters().feed_was_read(begun_at);
        Ok(Self {
            database,
            pooled: Some(pooled),
            data_version,
            last_id,
        })
    }

    fn poll(&mut self, on_change: &mut impl FnMut(Change)) {
        let begun_at = Instant::now();
        let outcome = self.read_new_records(on_change);
        if outcome.is_ok() {
            self.database.counters().feed_was_read(begun_at);
        }
        if let Err(cause) = outcome {
            // The file may have been replaced: start over. Changes since the last read are not reported.
            if self.pooled.take().is_some() {
                log_lost(&cause.to_string());
                on_change(Change::Lost);
            }
            if let Ok(restarted) = Self::start(self.database.clone()) {
                *self = restarted;
                log_restored();
                on_change(Change::Restored);
            }
        }
    }

    fn read_new_records(&mut self, on_change: &mut impl FnMut(Change)) -> rusqlite::Result<()> {
        // In a file that was replaced, as by a restore, this connection would never see a change.
        let current = self
            .pooled
            .as_ref()
            .filter(|pooled| self.database.is_current(pooled));
        let connection = &current.ok_or_else(missing_file)?.connection;
        let data_version = data_version(connection)?;
        // It changes with each commit of another connection, in this process or another one. So most turns read a few
        // bytes of shared memory, and only a change costs a query.
        if data_version == self.data_version {
            return Ok(());
        }
        let mut statement = connection
            .prepare_cached("SELECT id, topic, key FROM changes WHERE id > ?1 ORDER BY id")?;
        let mut rows = statement.query([self.last_id])?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            let topic: String = row.get(1)?;
            // Ids have no gaps, so a gap means that records were swept before they were read here.
            let change = match Topic::from_word(&topic) {
                Some(topic) if id == self.last_id + 1 => Change::Item {
                    topic,
                    key: row.get(2)?,
                },
                _ => Change::Everything,
            };
            on_change(change);
            self.last_id = id;
        }
        self.data_version = data_version;
        Ok(())
    }
}

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}

fn last_id(connection: &Connection) -> rusqlite::Result<i64> {
    // Not from the table itself, whose last rows may have been swept.
    let query = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'changes'";
    connection.query_row(query, [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::sqlite::tests::Folder;
    use crate::testing::{CHANGE_DELAY, CHANGE_TIMEOUT, PROGRAM};

    #[tokio::test]
    async fn a_change_reaches_another_process_within_a_second() {
        let folder = Folder::new("watch");
        let ours = SqliteDatabase::open(&folder.file(), PROGRAM).unwrap();
        let theirs = SqliteDatabase::open(&folder.file(), PROGRAM).unwrap();
        let (sender, receiver) = mpsc::channel();
        let _watch = watch(&ours, move |change| sender.send(change).unwrap()).unwrap();
        // The first is recorded at any time between two polls, the others right after one.
        let mut fastest = CHANGE_TIMEOUT;
        for key in [b"one", b"two", b"six", b"ten", b"end"] {
            theirs
                .write(|tx| record(tx, Topic::Credential, key))
                .await
                .unwrap();
            let recorded_at = Instant::now();
            let expected = Change::Item {
                topic: Topic::Credential,
                key: key.to_vec(),
            };
            assert_eq!(receiver.recv_timeout(CHANGE_TIMEOUT).unwrap(), expected);
            if key != b"one" {
                fastest = fastest.min(recorded_at.elapsed());
            }
        }
        assert!(fastest < CHANGE_DELAY, "{fastest:?}");
    }

    #[tokio::test]
    async fn a_replaced_file_is_a_loss_and_a_return() {
        let folder = Folder::new("replaced");
        let file = folder.file();
        let database = SqliteDatabase::open(&file, PROGRAM).unwrap();
        let mut watcher = Watcher::start(database.clone()).unwrap();
        let mut changes = Vec::new();
        std::fs::rename(&file, file.with_extension("old")).unwrap();
        assert!(
            database
                .write(|tx| record(tx, Topic::Login, b"x"))
                .await
                .is_err(),
            "the file is missing"
        );
        watcher.poll(&mut |change| changes.push(change));
        assert_eq!(changes, [Change::Lost]);
        for name in ["db-wal", "db-shm"] {
            let _ = std::fs::remove_file(file.with_extension(name));
        }
        SqliteDatabase::open(&file, PROGRAM).unwrap();
        watcher.poll(&mut |change| changes.push(change));
        assert_eq!(changes, [Change::Lost, Change::Restored]);
        database
            .write(|tx| record(tx, Topic::Login, b"x"))
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn records_swept_before_they_were_read_mean_everything_may_have_changed() {
        let folder = Folder::new("swept");
        let database = SqliteDatabase::open(&folder.file(), PROGRAM).unwrap();
        let mut watcher = Watcher::start(database.clone()).unwrap();
        database
            .write(|tx| {
                record(tx, Topic::Login, b"old")?;
                tx.execute("DELETE FROM changes", [])?;
                record(tx, Topic::Login, b"new")
            })
            .await
            .unwrap();
        let mut changes = Vec::new();
        watcher.poll(&mut |change| changes.push(change));
        assert_eq!(changes, [Change::Everything]);
    }

    #[tokio::test]
    async fn old_records_are_swept() {
        let folder = Folder::new("sweep");
        let database = SqliteDatabase::open(&folder.file(), PROGRAM).unwrap();
        let left = database
            .write(|tx| {
                record(tx, Topic::Login, b"old")?;
                tx.execute("UPDATE changes SET changed_at = 0", [])?;
                record(tx, Topic::Login, b"new")?;
                tx.query_row("SELECT count(*) FROM changes", [], |row| {
                    row.get::<_, i64>(0)
                })
            })
            .await
            .unwrap();
        assert_eq!(left, 1);
    }
}

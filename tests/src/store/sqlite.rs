//! A stack's SQLite file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, types::ValueRef};

use super::{Lock, Store, StoreKind};
use crate::rows::Rows;

/// A file in a stack's folder; it is removed with the folder.
#[derive(Debug)]
pub struct SqliteStore {
    file: PathBuf,
}

impl SqliteStore {
    /// The file that the programs will create in a folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self {
            file: folder.join("signpost.db"),
        }
    }

    fn open(&self) -> Connection {
        Connection::open(&self.file).expect("the store is a database")
    }

    fn moved_file(&self) -> PathBuf {
        self.file.with_extension("away")
    }
}

impl Store for SqliteStore {
    fn kind(&self) -> StoreKind {
        StoreKind::Sqlite
    }

    fn address(&self) -> String {
        format!("sqlite:{}", self.file.display())
    }

    fn password(&self) -> Option<&str> {
        None
    }

    fn query(&self, sql: &str) -> Rows {
        read(&self.open(), sql).unwrap_or_else(|cause| panic!("{sql}: {cause}"))
    }

    fn find(&self, bytes: &[u8]) -> Option<String> {
        // The write-ahead log is part of the store.
        ["db", "db-wal"].into_iter().find_map(|extension| {
            let file = self.file.with_extension(extension);
            let content = fs::read(&file).unwrap_or_default();
            let is_here = content.windows(bytes.len()).any(|window| window == bytes);
            is_here.then(|| file.display().to_string())
        })
    }

    fn dump(&self) -> String {
        let own = "name NOT LIKE 'sqlite!_%' ESCAPE '!'";
        let created =
            format!("SELECT sql, name, type FROM sqlite_master WHERE {own} ORDER BY rowid");
        let (mut tables, mut others) = (String::new(), String::new());
        for object in &self.query(&created).0 {
            let [sql, name, kind] = [0, 1, 2].map(|at| object[at].as_deref().unwrap_or_default());
            if kind != "table" {
                others.extend([sql, ";\n"]);
                continue;
            }
            tables.extend([sql, ";\n"]);
            let columns = self.query(&format!(
                "SELECT 'quote(\"' || name || '\")' FROM pragma_table_info('{name}')"
            ));
            let columns = columns.values().collect::<Vec<_>>().join(" || ',' || ");
            for row in self
                .query(&format!("SELECT {columns} FROM {name}"))
                .values()
            {
                tables.push_str(&format!("INSERT INTO {name} VALUES ({row});\n"));
            }
        }
        let version = self.query("PRAGMA user_version").number();
        format!("{tables}{others}PRAGMA user_version = {version};\n")
    }

    fn load(&self, dump: &str) {
        for extension in ["db", "db-wal", "db-shm"] {
            let _ = fs::remove_file(self.file.with_extension(extension));
        }
        let loaded = self.open().execute_batch(&format!("BEGIN;\n{dump}COMMIT;"));
        loaded.expect("a dump can be loaded");
    }

    fn lock(&self) -> Lock {
        let connection = self.open();
        connection
            .execute_batch("BEGIN EXCLUSIVE")
            .expect("the lock becomes free");
        Lock(Box::new(connection))
    }

    fn fail_account_inserts(&self) {
        let full =
            "CREATE TRIGGER full BEFORE INSERT ON accounts BEGIN SELECT RAISE(ABORT, 'full'); END";
        self.query(full);
    }

    fn make_unavailable(&self) {
        fs::rename(&self.file, self.moved_file()).expect("the file exists");
    }

    fn make_available(&self) {
        fs::rename(self.moved_file(), &self.file).expect("the file was moved away");
    }
}

fn read(connection: &Connection, sql: &str) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|at| row.get_ref(at).map(text));
        all.push(values.collect::<rusqlite::Result<_>>()?);
    }
    Ok(Rows(all))
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Some(hex::encode(bytes)),
    }
}

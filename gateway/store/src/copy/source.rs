//! The SQLite file that is copied, locked against writes.

use std::path::Path;

use rusqlite::{Connection, Statement, params_from_iter};

use super::CopyError;
use crate::{
    SqliteDatabase,
    schema::{SIGNPOST, StoredSchema},
};

/// A connection in a transaction that holds the write lock.
pub(super) struct Source {
    connection: Connection,
}

impl Source {
    /// Migrates the file, so that it has the target's columns, and locks it.
    pub(super) fn open(path: &Path, program: &str) -> Result<Self, CopyError> {
        if !path.is_file() {
            return Err(CopyError::NoSource {
                path: path.to_owned(),
            });
        }
        let database = SqliteDatabase::open(path, program)?;
        let connection = database.dedicated_connection()?.connection;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        Ok(Self { connection })
    }

    /// What was migrated: Signpost's own first, then each version's.
    pub(super) fn schemas(&self) -> rusqlite::Result<Vec<StoredSchema>> {
        let query = "SELECT owner, name, sqlite, postgres, oldest, program FROM migrations \
                     ORDER BY owner <> ?1, owner, number";
        let mut statement = self.connection.prepare(query)?;
        let mut rows = statement.query([SIGNPOST.owner])?;
        let mut all: Vec<StoredSchema> = Vec::new();
        while let Some(row) = rows.next()? {
            let owner: String = row.get(0)?;
            if all.last().is_none_or(|last| last.owner != owner) {
                all.push(StoredSchema {
                    owner,
                    ..StoredSchema::default()
                });
            }
            if let Some(last) = all.last_mut() {
                last.migrations
                    .push([row.get(1)?, row.get(2)?, row.get(3)?]);
                last.oldest = last.oldest.max(row.get(4)?);
                last.program = row.get(5)?;
            }
        }
        Ok(all)
    }

    /// The tables of the database in the order of their creation, except SQLite's own.
    pub(super) fn tables(&self) -> rusqlite::Result<Vec<String>> {
        let query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
                     ORDER BY rowid";
        self.names(query, &[])
    }

    /// The tables of a version, in an order in which none refers to a later one, unless they do so in a circle.
    pub(super) fn tables_of(&self, schema: &StoredSchema) -> rusqlite::Result<Vec<String>> {
        let mut waiting = self.tables()?;
        waiting.retain(|name| schema.has(name));
        let mut sorted = Vec::new();
        while !waiting.is_empty() {
            // Stays 0 if all of them refer to each other in a circle, so that the loop ends.
            let mut next = 0;
            for (index, table) in waiting.iter().enumerate() {
                let parents = "SELECT \"table\" FROM pragma_foreign_key_list(?1)";
                let parents = self.names(parents, &[table])?;
                let is_waiting = |parent: &String| parent != table && waiting.contains(parent);
                if !parents.iter().any(is_waiting) {
                    next = index;
                    break;
                }
            }
            sorted.push(waiting.remove(next));
        }
        Ok(sorted)
    }

    fn names(&self, query: &str, values: &[&str]) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare(query)?;
        let names = statement.query_map(params_from_iter(values), |row| row.get(0))?;
        names.collect()
    }

    pub(super) fn columns(&self, table: &str) -> rusqlite::Result<Vec<String>> {
        let query = "SELECT name FROM pragma_table_info(?1) ORDER BY cid";
        self.names(query, &[table])
    }

    /// The statement that returns all rows of a table.
    pub(super) fn rows(&self, table: &str, columns: &[String]) -> rusqlite::Result<Statement<'_>> {
        let columns = quoted(columns);
        self.connection
            .prepare(&format!("SELECT {columns} FROM {table}"))
    }

    pub(super) fn count(&self, table: &str) -> rusqlite::Result<u64> {
        let query = format!("SELECT count(*) FROM {table}");
        self.connection.query_row(&query, [], |row| row.get(0))
    }

    /// The largest number ever assigned to a column that counts: numbers of deleted rows must not be reused either.
    pub(super) fn last(&self, table: &str, column: &str) -> rusqlite::Result<i64> {
        let query = format!(
            "SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{table}'), 0), \
             coalesce((SELECT max(\"{column}\") FROM {table}), 0))"
        );
        self.connection.query_row(&query, [], |row| row.get(0))
    }
}

/// Columns for a statement: a name can be a word of SQL.
pub(super) fn quoted(columns: &[String]) -> String {
    let columns: Vec<_> = columns.iter().map(|name| format!("\"{name}\"")).collect();
    columns.join(", ")
}

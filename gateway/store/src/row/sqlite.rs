//! Rows of SQLite.

use rusqlite::{Row, types::Type};

use super::StoredRow;

impl StoredRow for Row<'_> {
    type Error = rusqlite::Error;

    fn unknown(column: &'static str) -> rusqlite::Error {
        rusqlite::Error::FromSqlConversionFailure(
            0,
            Type::Text,
            format!("{column} holds an unknown value").into(),
        )
    }

    fn text(&self, column: &'static str) -> rusqlite::Result<&str> {
        Ok(self.get_ref(column)?.as_str()?)
    }

    fn optional_text(&self, column: &'static str) -> rusqlite::Result<Option<&str>> {
        Ok(self.get_ref(column)?.as_str_or_null()?)
    }

    fn number(&self, column: &'static str) -> rusqlite::Result<i64> {
        self.get(column)
    }

    fn optional_number(&self, column: &'static str) -> rusqlite::Result<Option<i64>> {
        self.get(column)
    }

    fn flag(&self, column: &'static str) -> rusqlite::Result<bool> {
        self.get(column)
    }

    fn optional_bytes(&self, column: &'static str) -> rusqlite::Result<Option<&[u8]>> {
        Ok(self.get_ref(column)?.as_blob_or_null()?)
    }
}

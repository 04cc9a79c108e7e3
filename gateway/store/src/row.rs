//! Reading columns by name from rows of either database, so that one function reads both.

mod postgres;
mod sqlite;

use std::str::FromStr;

use crate::Timestamp;

/// A row of either database.
///
/// # Errors
///
/// Every method fails if the column is missing or has another type. Methods without `optional` fail on null.
pub trait StoredRow {
    /// The error of reading a column: the database's own.
    type Error;

    /// The error for a column with a value that no release writes.
    fn unknown(column: &'static str) -> Self::Error;

    /// Reads a text.
    fn text(&self, column: &'static str) -> Result<&str, Self::Error>;

    /// Reads a text that may be null.
    fn optional_text(&self, column: &'static str) -> Result<Option<&str>, Self::Error>;

    /// Reads a number: an id, or milliseconds. Both databases have only signed ones.
    fn number(&self, column: &'static str) -> Result<i64, Self::Error>;

    /// Reads a number that may be null.
    fn optional_number(&self, column: &'static str) -> Result<Option<i64>, Self::Error>;

    /// Reads a time.
    fn time(&self, column: &'static str) -> Result<Timestamp, Self::Error> {
        self.number(column).map(Timestamp::from_millis)
    }

    /// Reads a time that may be null.
    fn optional_time(&self, column: &'static str) -> Result<Option<Timestamp>, Self::Error> {
        let millis = self.optional_number(column)?;
        Ok(millis.map(Timestamp::from_millis))
    }

    /// Reads a boolean.
    fn flag(&self, column: &'static str) -> Result<bool, Self::Error>;

    /// Reads bytes of any length that may be null.
    fn optional_bytes(&self, column: &'static str) -> Result<Option<&[u8]>, Self::Error>;

    /// Reads bytes of any length.
    fn bytes(&self, column: &'static str) -> Result<&[u8], Self::Error> {
        let bytes = self.optional_bytes(column)?;
        bytes.ok_or_else(|| Self::unknown(column))
    }

    /// Reads exactly `N` bytes, for example a hash, that may be null.
    fn optional_array<const N: usize>(
        &self,
        column: &'static str,
    ) -> Result<Option<[u8; N]>, Self::Error> {
        let bytes = self.optional_bytes(column)?.map(TryInto::try_into);
        bytes.transpose().map_err(|_| Self::unknown(column))
    }

    /// Reads exactly `N` bytes, for example a hash.
    fn array<const N: usize>(&self, column: &'static str) -> Result<[u8; N], Self::Error> {
        let bytes = self.bytes(column)?.try_into();
        bytes.map_err(|_| Self::unknown(column))
    }

    /// Reads a text and parses it.
    fn parsed<T: FromStr>(&self, column: &'static str) -> Result<T, Self::Error> {
        let parsed = self.text(column)?.parse();
        parsed.map_err(|_| Self::unknown(column))
    }

    /// Reads a text that may be null and parses it.
    fn optional_parsed<T: FromStr>(&self, column: &'static str) -> Result<Option<T>, Self::Error> {
        let parsed = self.optional_text(column)?.map(str::parse).transpose();
        parsed.map_err(|_| Self::unknown(column))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::{Store, StoreError, testing::TestStore};

    const QUERY: &str = "SELECT 'abc' AS word, CAST(NULL AS text) AS absent, CAST(7 AS bigint) AS number, \
                         CAST('12' AS text) AS digits";

    fn read<R: StoredRow>(row: &R) -> Result<(), R::Error> {
        assert_eq!(row.text("word")?, "abc");
        assert_eq!(row.optional_text("word")?, Some("abc"));
        assert_eq!(row.optional_text("absent")?, None);
        assert!(row.text("absent").is_err() && row.text("missing").is_err());
        assert_eq!(row.number("number")?, 7);
        assert_eq!(row.optional_number("number")?, Some(7));
        assert_eq!(row.parsed::<u8>("digits")?, 12);
        assert!(row.parsed::<u8>("word").is_err());
        assert_eq!(row.optional_parsed::<u8>("absent")?, None);
        assert!(row.number("word").is_err());
        Ok(())
    }

    #[tokio::test]
    async fn columns_are_read_by_name_from_either_database() {
        match TestStore::chosen().open().await {
            Store::Sqlite(database) => {
                let seen =
                    database.call(|connection| connection.query_row(QUERY, [], |row| read(row)));
                seen.await.unwrap();
            }
            Store::Postgres(database) => {
                let session = database.session().await.unwrap();
                read(&session.query_one(QUERY, &[]).await.unwrap()).unwrap();
            }
        }
    }

    #[test]
    fn bytes_of_another_length_are_rejected() {
        let connection = Connection::open_in_memory().unwrap();
        let query = "SELECT x'010203' AS three, CAST(NULL AS blob) AS absent, 1 AS yes";
        let seen = connection.query_row(query, [], |row| {
            assert_eq!(row.bytes("three")?, [1, 2, 3]);
            assert_eq!(row.array::<3>("three")?, [1, 2, 3]);
            assert_eq!(row.optional_array::<3>("absent")?, None);
            assert!(row.array::<4>("three").is_err() && row.array::<3>("absent").is_err());
            assert!(row.optional_array::<2>("three").is_err() && row.bytes("absent").is_err());
            assert!(row.flag("yes")?);
            Ok(())
        });
        seen.unwrap();
    }

    #[test]
    fn an_unknown_value_is_reported_by_its_column() {
        let error = <tokio_postgres::Row as StoredRow>::unknown("state");
        assert!(matches!(error, StoreError::Malformed("state")));
        let error = <rusqlite::Row<'_> as StoredRow>::unknown("state");
        assert!(error.to_string().contains("state"), "{error}");
    }
}

//! Reading our own types out of a row, whichever database it is of: columns by their names, in one function for both.

mod postgres;
mod sqlite;

use std::str::FromStr;

/// A row, as far as our columns go.
///
/// # Errors
///
/// Every method fails if there is no such column, or if it holds something else; those that are not `optional`, if it
/// is null.
pub trait StoredRow {
    /// What reading a column fails with: the database's own error.
    type Error;

    /// The error for a column that holds what no release of ours has written.
    fn unknown(column: &'static str) -> Self::Error;

    /// A text.
    fn text(&self, column: &'static str) -> Result<&str, Self::Error>;

    /// A text, or null.
    fn optional_text(&self, column: &'static str) -> Result<Option<&str>, Self::Error>;

    /// A number: an id, or milliseconds. Both databases have signed ones only.
    fn number(&self, column: &'static str) -> Result<i64, Self::Error>;

    /// A number, or null.
    fn optional_number(&self, column: &'static str) -> Result<Option<i64>, Self::Error>;

    /// Yes or no.
    fn flag(&self, column: &'static str) -> Result<bool, Self::Error>;

    /// Bytes of any length, or null.
    fn optional_bytes(&self, column: &'static str) -> Result<Option<&[u8]>, Self::Error>;

    /// Bytes of any length.
    fn bytes(&self, column: &'static str) -> Result<&[u8], Self::Error> {
        let bytes = self.optional_bytes(column)?;
        bytes.ok_or_else(|| Self::unknown(column))
    }

    /// Exactly `N` bytes, or null: a hash.
    fn optional_array<const N: usize>(
        &self,
        column: &'static str,
    ) -> Result<Option<[u8; N]>, Self::Error> {
        let bytes = self.optional_bytes(column)?.map(TryInto::try_into);
        bytes.transpose().map_err(|_| Self::unknown(column))
    }

    /// Exactly `N` bytes: a hash.
    fn array<const N: usize>(&self, column: &'static str) -> Result<[u8; N], Self::Error> {
        let bytes = self.bytes(column)?.try_into();
        bytes.map_err(|_| Self::unknown(column))
    }

    /// A text that `FromStr` makes something of.
    fn parsed<T: FromStr>(&self, column: &'static str) -> Result<T, Self::Error> {
        let parsed = self.text(column)?.parse();
        parsed.map_err(|_| Self::unknown(column))
    }

    /// The same, or null.
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
    fn bytes_have_the_length_that_is_asked_for() {
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
    fn what_nobody_wrote_is_named_by_its_column() {
        let error = <tokio_postgres::Row as StoredRow>::unknown("state");
        assert!(matches!(error, StoreError::Malformed("state")));
        let error = <rusqlite::Row<'_> as StoredRow>::unknown("state");
        assert!(error.to_string().contains("state"), "{error}");
    }
}

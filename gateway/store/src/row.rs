//! Reading columns by name from rows of either database, so that one function reads both.

use std::{
    fmt::{self, Display},
    str::FromStr,
};

use signpost_protocol::app::{AppId, AppIdent};

use crate::{StoreError, Timestamp};

/// A row of either database.
pub enum Row<'r> {
    /// A row of SQLite.
    Sqlite(&'r rusqlite::Row<'r>),
    /// A row of Postgres.
    Postgres(&'r tokio_postgres::Row),
}

/// Prints no column: a row may hold names and addresses of people.
impl fmt::Debug for Row<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Row(…)")
    }
}

impl Row<'_> {
    /// Reads a column.
    ///
    /// # Errors
    ///
    /// The column is missing, has another type, or holds a value that no release writes.
    pub fn get<T: Column>(&self, column: &'static str) -> Result<T, StoreError> {
        self.read(column, column)
    }

    fn read<T: Column>(
        &self,
        index: impl rusqlite::RowIndex + tokio_postgres::row::RowIndex + Display,
        column: &'static str,
    ) -> Result<T, StoreError> {
        let stored = match self {
            Self::Sqlite(row) => row.get(index)?,
            Self::Postgres(row) => row.try_get(index)?,
        };
        T::from_stored(stored).ok_or(StoreError::Malformed(column))
    }

    /// Reads a text and parses it.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub fn parsed<T: FromStr>(&self, column: &'static str) -> Result<T, StoreError> {
        self.get(column).map(|Parsed(value)| value)
    }
}

/// What a column holds.
pub trait Column: Sized {
    /// The type that both databases have.
    type Stored: rusqlite::types::FromSql + for<'r> tokio_postgres::types::FromSql<'r>;

    /// Converts a stored value; `None` if no release writes it.
    fn from_stored(stored: Self::Stored) -> Option<Self>;
}

/// A value that is stored as text and parsed when it is read.
#[derive(Debug)]
pub struct Parsed<T>(pub T);

impl<T: FromStr> Column for Parsed<T> {
    type Stored = String;

    fn from_stored(text: String) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

/// `None` is null.
impl<T: Column> Column for Option<T> {
    type Stored = Option<T::Stored>;

    fn from_stored(stored: Self::Stored) -> Option<Self> {
        match stored {
            Some(stored) => T::from_stored(stored).map(Some),
            None => Some(None),
        }
    }
}

/// Exactly `N` bytes, for example a hash.
impl<const N: usize> Column for [u8; N] {
    type Stored = Vec<u8>;

    fn from_stored(bytes: Vec<u8>) -> Option<Self> {
        bytes.try_into().ok()
    }
}

/// Each type, its stored type, and the conversion.
macro_rules! columns {
    ($($type:ty, $stored:ty, $convert:expr;)*) => {
        $(impl Column for $type {
            type Stored = $stored;

            fn from_stored(stored: $stored) -> Option<Self> {
                $convert(stored)
            }
        })*
    };
}

columns! {
    i64, i64, Some;
    u64, i64, |number: i64| number.try_into().ok();
    bool, bool, Some;
    String, String, Some;
    Vec<u8>, Vec<u8>, Some;
    Timestamp, i64, |millis| Some(Self::from_millis(millis));
    AppId, i64, |id| Some(Self::new(id));
    AppIdent, String, |ident: String| ident.parse().ok();
}

/// What a statement returns, read from rows of either database.
pub trait FromRow: Sized + Send + 'static {
    /// Reads a row.
    ///
    /// # Errors
    ///
    /// A column is missing, or holds a value that no release writes.
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError>;
}

/// Rows whose number alone matters.
impl FromRow for () {
    fn from_row(_: &Row<'_>) -> Result<Self, StoreError> {
        Ok(())
    }
}

/// A list is no column: another query fills it.
impl<T: Send + 'static> FromRow for Vec<T> {
    fn from_row(_: &Row<'_>) -> Result<Self, StoreError> {
        Ok(Self::new())
    }
}

/// Rows with one column.
impl<T: Column + Send + 'static> FromRow for (T,) {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        row.read(0, "the only column").map(|value| (value,))
    }
}

/// Rows with two columns.
impl<T: Column + Send + 'static, U: Column + Send + 'static> FromRow for (T, U) {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        Ok((
            row.read(0, "the first column")?,
            row.read(1, "the second column")?,
        ))
    }
}

/// Reads each field of a struct from the column with its name. The fields after a semicolon are read from the whole
/// row.
#[macro_export]
macro_rules! from_row {
    ($type:ident { $($field:ident),* $(,)? $(; $($part:ident),*)? }) => {
        impl $crate::FromRow for $type {
            fn from_row(row: &$crate::Row<'_>) -> Result<Self, $crate::StoreError> {
                Ok(Self {
                    $($field: row.get(stringify!($field))?,)*
                    $($($part: $crate::FromRow::from_row(row)?,)*)?
                })
            }
        }
    };
}

#[cfg(test)]
mod both_stores {
    use rusqlite::Connection;

    use super::*;
    use crate::testing::TestStore;

    const QUERY: &str = "SELECT 'abc' AS word, CAST(NULL AS text) AS absent, CAST(7 AS bigint) AS number, \
                         CAST('12' AS text) AS digits";

    struct AsExpected;

    impl FromRow for AsExpected {
        fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
            assert_eq!(row.get::<String>("word")?, "abc");
            assert_eq!(row.get::<Option<String>>("word")?.as_deref(), Some("abc"));
            assert_eq!(row.get::<Option<String>>("absent")?, None);
            assert!(row.get::<String>("absent").is_err() && row.get::<String>("missing").is_err());
            assert_eq!(row.get::<i64>("number")?, 7);
            assert_eq!(row.get::<Option<i64>>("number")?, Some(7));
            assert_eq!(row.parsed::<u8>("digits")?, 12);
            assert!(row.parsed::<u8>("word").is_err());
            assert!(row.get::<Option<Parsed<u8>>>("absent")?.is_none());
            assert!(row.get::<i64>("word").is_err());
            Ok(Self)
        }
    }

    #[tokio::test]
    async fn columns_are_read_by_name_from_either_database() {
        let test = TestStore::chosen();
        let store = test.open().await;
        let read = store.row::<AsExpected>(QUERY, Vec::new()).await;
        assert!(read.unwrap().is_some());
    }

    #[test]
    fn bytes_of_another_length_are_rejected() {
        let connection = Connection::open_in_memory().unwrap();
        let query = "SELECT x'010203' AS three, CAST(NULL AS blob) AS absent, 1 AS yes";
        let seen = connection.query_row(query, [], |row| {
            let row = Row::Sqlite(row);
            assert_eq!(row.get::<Vec<u8>>("three").unwrap(), [1, 2, 3]);
            assert_eq!(row.get::<[u8; 3]>("three").unwrap(), [1, 2, 3]);
            assert_eq!(row.get::<Option<[u8; 3]>>("absent").unwrap(), None);
            let missing = row.get::<[u8; 4]>("three").unwrap_err();
            assert!(matches!(missing, StoreError::Malformed("three")));
            assert!(row.get::<[u8; 3]>("absent").is_err());
            assert!(row.get::<Option<[u8; 2]>>("three").is_err());
            assert!(row.get::<Vec<u8>>("absent").is_err());
            assert!(row.get::<bool>("yes").unwrap());
            Ok(())
        });
        seen.unwrap();
    }
}

//! Reading our own types out of SQLite's columns.

use rusqlite::{Row, types::Type};

use crate::{clock::Timestamp, secret::LENGTH};

/// What the store holds in `column` is nothing we ever wrote.
pub(crate) fn invalid(column: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(
        0,
        Type::Text,
        format!("{column} holds an unknown value").into(),
    )
}

/// A column that is made of text by `FromStr`.
pub(crate) fn parsed<T: std::str::FromStr>(
    row: &Row<'_>,
    column: &'static str,
) -> rusqlite::Result<T> {
    row.get_ref(column)?
        .as_str()?
        .parse()
        .map_err(|_| invalid(column))
}

/// A point in time.
pub(crate) fn time(row: &Row<'_>, column: &'static str) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

/// A point in time, or none.
pub(crate) fn optional_time(
    row: &Row<'_>,
    column: &'static str,
) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row
        .get::<_, Option<i64>>(column)?
        .map(Timestamp::from_millis))
}

/// A hash, or none.
pub(crate) fn optional_hash(
    row: &Row<'_>,
    column: &'static str,
) -> rusqlite::Result<Option<[u8; LENGTH]>> {
    row.get(column)
}

//! Reading our own types out of a store's columns, whichever store it is.

pub(crate) mod postgres;
mod sqlite;

use std::str::FromStr;

use crate::{clock::Timestamp, secret::LENGTH};

/// A row, as far as our columns go. Every method fails where the column is missing or holds something else.
pub(crate) trait StoredRow {
    /// The database's own.
    type Error;

    /// What the store holds in `column` is nothing we ever wrote.
    fn unknown(column: &'static str) -> Self::Error;

    fn text(&self, column: &'static str) -> Result<&str, Self::Error>;

    fn optional_text(&self, column: &'static str) -> Result<Option<&str>, Self::Error>;

    fn number(&self, column: &'static str) -> Result<i64, Self::Error>;

    fn optional_number(&self, column: &'static str) -> Result<Option<i64>, Self::Error>;

    fn flag(&self, column: &'static str) -> Result<bool, Self::Error>;

    fn optional_hash(&self, column: &'static str) -> Result<Option<[u8; LENGTH]>, Self::Error>;

    fn hash(&self, column: &'static str) -> Result<[u8; LENGTH], Self::Error> {
        self.optional_hash(column)?
            .ok_or_else(|| Self::unknown(column))
    }

    /// A column that is made of text by `FromStr`.
    fn parsed<T: FromStr>(&self, column: &'static str) -> Result<T, Self::Error> {
        let parsed = self.text(column)?.parse();
        parsed.map_err(|_| Self::unknown(column))
    }

    fn optional_parsed<T: FromStr>(&self, column: &'static str) -> Result<Option<T>, Self::Error> {
        let parsed = self.optional_text(column)?.map(str::parse).transpose();
        parsed.map_err(|_| Self::unknown(column))
    }

    fn time(&self, column: &'static str) -> Result<Timestamp, Self::Error> {
        self.number(column).map(Timestamp::from_millis)
    }

    fn optional_time(&self, column: &'static str) -> Result<Option<Timestamp>, Self::Error> {
        let millis = self.optional_number(column)?;
        Ok(millis.map(Timestamp::from_millis))
    }
}

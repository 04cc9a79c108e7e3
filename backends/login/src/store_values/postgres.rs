//! Postgres' columns, and its numbers: it knows signed ones only.

use signpost_store::StoreError;
use tokio_postgres::Row;

use super::StoredRow;
use crate::secret::LENGTH;

impl StoredRow for Row {
    type Error = StoreError;

    fn unknown(column: &'static str) -> StoreError {
        StoreError::Malformed(column)
    }

    fn text(&self, column: &'static str) -> Result<&str, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn optional_text(&self, column: &'static str) -> Result<Option<&str>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn number(&self, column: &'static str) -> Result<i64, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn optional_number(&self, column: &'static str) -> Result<Option<i64>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn flag(&self, column: &'static str) -> Result<bool, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn optional_hash(&self, column: &'static str) -> Result<Option<[u8; LENGTH]>, StoreError> {
        let bytes: Option<&[u8]> = self.try_get(column)?;
        let hash = bytes.map(TryInto::try_into).transpose();
        hash.map_err(|_| Self::unknown(column))
    }
}

/// How many rows a statement was about.
pub(crate) fn count(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

//! Rows of Postgres.

use tokio_postgres::Row;

use super::StoredRow;
use crate::StoreError;

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

    fn optional_bytes(&self, column: &'static str) -> Result<Option<&[u8]>, StoreError> {
        Ok(self.try_get(column)?)
    }
}

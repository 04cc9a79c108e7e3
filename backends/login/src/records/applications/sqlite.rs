//! Applications in SQLite.

use async_trait::async_trait;
use rusqlite::OptionalExtension;
use signpost_protocol::app::AppId;
use signpost_store::{SqliteDatabase, StoreError};

use super::{
    Application, ApplicationStore,
    row::{COLUMNS, application_from_row},
};

/// Applications in a SQLite file; the gateway writes them.
#[derive(Debug)]
pub(crate) struct SqliteApplications(SqliteDatabase);

impl SqliteApplications {
    /// Over an open database.
    #[must_use]
    pub(crate) fn new(database: SqliteDatabase) -> Self {
        Self(database)
    }
}

#[async_trait]
impl ApplicationStore for SqliteApplications {
    async fn find(&self, id: AppId) -> Result<Option<Application>, StoreError> {
        self.0
            .call(move |connection| {
                let query = format!("SELECT {COLUMNS} FROM applications WHERE id = ?1");
                connection
                    .prepare_cached(&query)?
                    .query_row([id.get()], |row| application_from_row(id, row))
                    .optional()
            })
            .await
    }
}

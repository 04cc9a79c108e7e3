//! Applications in Postgres.

use async_trait::async_trait;
use signpost_protocol::app::AppId;
use signpost_store::{PostgresDatabase, StoreError};

use super::{
    Application, ApplicationStore,
    row::{COLUMNS, application_from_row},
};

/// Applications in a Postgres database; the gateway writes them.
#[derive(Debug)]
pub(crate) struct PostgresApplications {
    database: PostgresDatabase,
    find: String,
}

impl PostgresApplications {
    /// Over an open database.
    #[must_use]
    pub(crate) fn new(database: PostgresDatabase) -> Self {
        let find = format!("SELECT {COLUMNS} FROM applications WHERE id = $1");
        Self { database, find }
    }
}

#[async_trait]
impl ApplicationStore for PostgresApplications {
    async fn find(&self, id: AppId) -> Result<Option<Application>, StoreError> {
        let session = self.database.session().await?;
        let row = session.query_opt(&self.find, &[&id.get()]).await?;
        row.map(|row| application_from_row(id, &row)).transpose()
    }
}

//! A connection in use: statements prepared once, and none waited for longer than is configured.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use deadpool_postgres::Object;
use tokio_postgres::{Row, types::ToSql};

use crate::StoreError;

/// Parameters of a statement.
pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// How much longer than the server itself we wait, so that its own word about a slow statement arrives.
const GRACE: Duration = Duration::from_millis(500);

/// A connection out of the pool. One that did not answer in time does not go back there.
pub struct Session {
    client: Option<Object>,
    statement: Duration,
    is_silent: AtomicBool,
}

impl Session {
    pub(super) fn new(client: Object, statement: Duration) -> Self {
        Self {
            client: Some(client),
            statement,
            is_silent: AtomicBool::new(false),
        }
    }

    /// All rows.
    ///
    /// # Errors
    ///
    /// The server answers with an error or not in time, or the connection breaks; this holds for all that follow.
    pub async fn query(&self, sql: &str, values: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        let client = self.client();
        self.in_time(async {
            let statement = client.prepare_cached(sql).await?;
            client.query(&statement, values).await
        })
        .await
    }

    /// The one row, if there is any.
    ///
    /// # Errors
    ///
    /// As [`Self::query`]; or there are several.
    pub async fn query_opt(
        &self,
        sql: &str,
        values: Parameters<'_>,
    ) -> Result<Option<Row>, StoreError> {
        let client = self.client();
        self.in_time(async {
            let statement = client.prepare_cached(sql).await?;
            client.query_opt(&statement, values).await
        })
        .await
    }

    /// The one row.
    ///
    /// # Errors
    ///
    /// As [`Self::query`]; or there is none, or several.
    pub async fn query_one(&self, sql: &str, values: Parameters<'_>) -> Result<Row, StoreError> {
        let client = self.client();
        self.in_time(async {
            let statement = client.prepare_cached(sql).await?;
            client.query_one(&statement, values).await
        })
        .await
    }

    /// How many rows were changed, or given back.
    ///
    /// # Errors
    ///
    /// As [`Self::query`].
    pub async fn execute(&self, sql: &str, values: Parameters<'_>) -> Result<u64, StoreError> {
        let client = self.client();
        self.in_time(async {
            let statement = client.prepare_cached(sql).await?;
            client.execute(&statement, values).await
        })
        .await
    }

    fn client(&self) -> &Object {
        self.client
            .as_ref()
            .expect("the connection is taken by drop only")
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        match tokio::time::timeout(self.statement + GRACE, work).await {
            Ok(done) => Ok(done?),
            Err(_) => {
                self.is_silent.store(true, Ordering::Relaxed);
                Err(StoreError::TimedOut)
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if *self.is_silent.get_mut()
            && let Some(client) = self.client.take()
        {
            // Whoever got it next would wait behind the answer that did not come.
            drop(Object::take(client));
        }
    }
}

/// Silent: a connection knows its password.
impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Session(…)")
    }
}

//! A connection in use: statements prepared once, and none waited for longer than is configured.
//!
//! A call may be dropped while the server works on its statement. The connection is in use until the statement has
//! ended, so its place in the pool is, too: otherwise the next call would wait behind that statement, or callers that
//! leave at once would make more connections than the pool has. The statement itself is not cancelled, which would take
//! another connection; `statement_timeout` bounds it.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use deadpool_postgres::Object;
use tokio::{runtime::Handle, time::timeout};
use tokio_postgres::{Row, types::ToSql};

use crate::StoreError;

/// Parameters of a statement.
pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// How much longer than the server itself we wait, so that its own word about a slow statement arrives.
const GRACE: Duration = Duration::from_millis(500);

/// A connection out of the pool. One with a statement in flight goes back there when that has ended, and not at all if
/// that takes too long.
pub struct Session {
    client: Option<Object>,
    statement: Duration,
    /// Calls in flight, dropped ones included.
    in_flight: AtomicUsize,
    is_silent: AtomicBool,
}

impl Session {
    pub(super) fn new(client: Object, statement: Duration) -> Self {
        Self {
            client: Some(client),
            statement,
            in_flight: AtomicUsize::new(0),
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
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let Ok(done) = timeout(self.statement + GRACE, work).await else {
            self.is_silent.store(true, Ordering::Relaxed);
            return Err(StoreError::TimedOut);
        };
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        Ok(done?)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(client) = self.client.take().map(Unanswered::of) else {
            return;
        };
        if *self.is_silent.get_mut() {
            // The next call would wait behind the answer that did not come.
            drop(client);
        } else if *self.in_flight.get_mut() == 0 {
            client.give_back();
        } else if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(client.await_answers(self.statement + GRACE));
        }
    }
}

/// A connection that is not known to be free. Dropped, it is closed and leaves the pool.
struct Unanswered(Option<Object>);

impl Unanswered {
    fn of(client: Object) -> Self {
        Self(Some(client))
    }

    /// Answers come in order, so after that of an empty statement nothing is in flight.
    async fn await_answers(self, longest: Duration) {
        let client = self.0.as_ref().expect("given back only below");
        if let Ok(Ok(_)) = timeout(longest, client.simple_query("")).await {
            self.give_back();
        }
    }

    fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
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

//! A pooled connection in use: prepares each statement once, applies the timeout, and repeats what conflicted.
//!
//! A call may be dropped while the server executes its statement. The connection stays in use, and keeps its slot in
//! the pool, until the statement has ended. Otherwise the next call would wait behind that statement, or dropped calls
//! would open more connections than the pool allows. The statement is not cancelled, which would take another
//! connection;
//! `statement_timeout` limits it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool_postgres::Object;
use tokio::{runtime::Handle, time::timeout};
use tokio_postgres::{
    Row,
    error::SqlState,
    types::{ToSql, Type},
};

use super::{
    Abilities, Shared,
    connect::{is_conflict, is_of_other_session},
};
use crate::{
    StoreError,
    statistics::{Statistics, in_micros},
};

/// Parameters of a statement.
pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Margin above the server's own statement timeout, so that its error arrives first.
const GRACE: Duration = Duration::from_millis(500);

/// Attempts of a statement that conflicts with other ones, as engines that serialize transactions report them.
const ATTEMPTS: u32 = 10;

/// A parameter and its type.
type Typed<'a> = (&'a (dyn ToSql + Sync), Type);
/// The types of parameters, by the text of their statement.
pub(super) type Types = Arc<Mutex<HashMap<String, Arc<[Type]>>>>;

/// A connection from the pool. If a statement is in flight when it is dropped, it returns to the pool when that ends,
/// or is closed if that takes too long.
pub struct Session {
    client: Option<Object>,
    statement: Duration,
    /// Calls in flight, dropped ones included.
    in_flight: AtomicUsize,
    /// Closed when it is dropped.
    is_unusable: AtomicBool,
    /// The wait for the connection in microseconds, until the first call has added it to its duration.
    waited: AtomicU64,
    statistics: Arc<Statistics>,
    abilities: Arc<OnceLock<Abilities>>,
    types: Types,
    /// How often all connections were closed, and how often when this one was taken.
    closings: (Arc<AtomicUsize>, usize),
}

impl Session {
    pub(super) fn new(client: Object, shared: &Shared, waited: Duration, closings: usize) -> Self {
        Self {
            client: Some(client),
            statement: shared.settings.statement,
            in_flight: AtomicUsize::new(0),
            is_unusable: AtomicBool::new(false),
            waited: AtomicU64::new(in_micros(waited)),
            statistics: Arc::clone(&shared.statistics),
            abilities: Arc::clone(&shared.abilities),
            types: Arc::clone(&shared.types),
            closings: (Arc::clone(&shared.closings), closings),
        }
    }

    /// Returns all rows.
    ///
    /// # Errors
    ///
    /// The server returns an error or does not answer in time, or the connection is lost.
    pub async fn query(&self, sql: &str, values: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        let client = self.client();
        self.with_timeout(|| async {
            match self.typed(sql, values).await? {
                Some(typed) => client.query_typed(sql, &typed).await,
                None => {
                    let statement = client.prepare_cached(sql).await?;
                    client.query(&statement, values).await
                }
            }
        })
        .await
    }

    /// Returns the only row.
    ///
    /// # Errors
    ///
    /// As [`Self::query`], or there are no or several rows.
    pub async fn query_one(&self, sql: &str, values: Parameters<'_>) -> Result<Row, StoreError> {
        let mut rows = self.query(sql, values).await?;
        let row = rows.pop().filter(|_| rows.is_empty());
        row.ok_or(StoreError::Malformed("the number of rows"))
    }

    /// Writes; returns the number of rows changed or returned.
    ///
    /// # Errors
    ///
    /// As [`Self::query`].
    pub async fn execute(&self, sql: &str, values: Parameters<'_>) -> Result<u64, StoreError> {
        let client = self.client();
        self.with_timeout(|| async {
            match self.typed(sql, values).await? {
                Some(typed) => client.execute_typed(sql, &typed).await,
                None => {
                    let statement = client.prepare_cached(sql).await?;
                    client.execute(&statement, values).await
                }
            }
        })
        .await
        .inspect(|_| self.statistics.server_takes_writes())
    }

    /// The parameters with their types, if a pooler between keeps no prepared statement. The server names the types once
    /// for each text: in a transaction, which keeps the connection to it.
    async fn typed<'a>(
        &self,
        sql: &str,
        values: Parameters<'a>,
    ) -> Result<Option<Vec<Typed<'a>>>, tokio_postgres::Error> {
        if !self.abilities.get().is_some_and(Abilities::is_pooled) {
            return Ok(None);
        }
        let known = self
            .types
            .lock()
            .expect("no thread panics")
            .get(sql)
            .cloned();
        let types = match known {
            Some(types) => types,
            None => {
                // If the call is dropped meanwhile, the connection must not return to the pool.
                self.is_unusable.store(true, Ordering::Relaxed);
                let client = self.client();
                client.batch_execute("BEGIN").await?;
                let described = client.prepare(sql).await;
                let types = described.map(|statement| Arc::from(statement.params()));
                client.batch_execute("COMMIT").await?;
                self.is_unusable.store(false, Ordering::Relaxed);
                let types: Arc<[Type]> = types?;
                let mut all = self.types.lock().expect("no thread panics");
                all.insert(sql.to_owned(), Arc::clone(&types));
                types
            }
        };
        Ok(Some(
            values.iter().copied().zip(types.iter().cloned()).collect(),
        ))
    }

    /// Runs a query that reads `tables`, and fails if the server takes no writes, or none of this role.
    ///
    /// # Errors
    ///
    /// As [`Self::query`], or [`StoreError::NotWritable`].
    pub(super) async fn probe(&self, tables: &str) -> Result<(), StoreError> {
        // A replica, or a primary after a failover, answers reads: only this setting says that it takes no writes.
        let probe = format!(
            "{tables}, current_setting('transaction_read_only') = 'on', CAST(current_user AS text), \
             has_table_privilege('logins', 'INSERT') OR has_table_privilege('applications', 'INSERT')"
        );
        let row = self.query_one(&probe, &[]).await?;
        if row.try_get(1)? {
            self.leave();
            return Err(StoreError::NotWritable("the database is read-only".into()));
        }
        if !row.try_get::<_, bool>(3)? {
            let role: String = row.try_get(2)?;
            let reason = format!("the database role {role} may only read");
            return Err(StoreError::NotWritable(reason.into()));
        }
        self.statistics.server_takes_writes();
        Ok(())
    }

    /// The next connection asks the resolver again, and may find another server.
    fn leave(&self) {
        self.statistics.server_was_left();
        self.close_all();
    }

    /// Closes this connection and all that are idle; those in use once they no longer are.
    fn close_all(&self) {
        self.closings.0.fetch_add(1, Ordering::Relaxed);
        self.is_unusable.store(true, Ordering::Relaxed);
        if let Some(pool) = Object::pool(self.client()) {
            pool.retain(|_, _| false);
        }
    }

    fn client(&self) -> &Object {
        self.client
            .as_ref()
            .expect("the connection is taken by drop only")
    }

    async fn with_timeout<T, W: Future<Output = Result<T, tokio_postgres::Error>>>(
        &self,
        work: impl Fn() -> W,
    ) -> Result<T, StoreError> {
        let begun_at = Instant::now();
        // Only the first call of a session has waited for its connection.
        let waited = Duration::from_micros(self.waited.swap(0, Ordering::Relaxed));
        // Until the response is here: a call that is dropped in between stays counted, and `drop` waits for it.
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let work = async {
            let mut repetitions = 1..ATTEMPTS;
            loop {
                match work().await {
                    Err(error) if self.may_repeat(error.code()) && repetitions.next().is_some() => {
                    }
                    done => return done,
                }
            }
        };
        // The server's own timeout comes first. This one is for a server or a network that no longer answers.
        let done = timeout(self.statement + GRACE, work).await;
        let is_success = matches!(done, Ok(Ok(_)));
        self.statistics
            .count_call(waited + begun_at.elapsed(), is_success);
        let Ok(done) = done else {
            // Its response may still come, and the next statement would wait for it. If the server or its machine is frozen,
            // all other connections to it are, too.
            self.close_all();
            return Err(StoreError::TimedOut);
        };
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let done = done.map_err(StoreError::from);
        if done.as_ref().is_err_and(StoreError::is_of_connection) {
            self.leave();
        }
        done
    }

    /// Whether the server has not executed the statement, or has rolled it back, and a repetition may succeed. Each call is
    /// one statement.
    fn may_repeat(&self, state: Option<&SqlState>) -> bool {
        let is_pooled = is_of_other_session(state);
        if let Some(abilities) = self.abilities.get().filter(|_| is_pooled) {
            abilities.note_pooler();
        }
        is_pooled || is_conflict(state)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(client) = self.client.take().map(Waiting::new) else {
            return;
        };
        let (closings, at_start) = &self.closings;
        if *self.is_unusable.get_mut() || closings.load(Ordering::Relaxed) != *at_start {
            // Closed: the next call would wait behind the missing answer, or have a server that takes no writes.
            drop(client);
        } else if *self.in_flight.get_mut() == 0 {
            client.return_to_pool();
        } else if let Ok(runtime) = Handle::try_current() {
            // Without a runtime nothing can wait: `client` is dropped, which closes the connection.
            runtime.spawn(client.await_responses(self.statement + GRACE));
        }
    }
}

/// A connection that may have a statement in flight. If it is dropped, it is closed and removed from the pool.
struct Waiting(Option<Object>);

impl Waiting {
    fn new(client: Object) -> Self {
        Self(Some(client))
    }

    /// Returns the connection to the pool once it is free.
    ///
    /// Answers arrive in order, so after the response to an empty statement nothing is in flight.
    async fn await_responses(self, limit: Duration) {
        let client = self.0.as_ref().expect("returned to the pool only below");
        if let Ok(Ok(_)) = timeout(limit, client.simple_query("")).await {
            self.return_to_pool();
        }
    }

    fn return_to_pool(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            // Detached from the pool, to which an object that is only dropped would return.
            drop(Object::take(client));
        }
    }
}

// Prints nothing: a connection knows its password.
signpost_protocol::hide_in_debug!(Session);

//! A blocking connection to Postgres for tests, usable inside and outside of async code.

use std::{sync::mpsc, thread};

use tokio::{runtime, task};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, SimpleQueryRow};

use crate::rows::{Row, Rows};

type Outcome = Result<Rows, tokio_postgres::Error>;
type Query = (String, mpsc::Sender<Outcome>);

/// A connection. When dropped, it is closed and an open transaction is rolled back.
#[derive(Debug)]
pub struct Session {
    queries: mpsc::Sender<Query>,
}

impl Session {
    /// Connects.
    ///
    /// # Panics
    ///
    /// When that fails.
    #[must_use]
    pub fn open(address: &str) -> Self {
        Self::try_open(address).unwrap_or_else(|cause| panic!("cannot connect: {cause:?}"))
    }

    /// Connects, if it can.
    ///
    /// # Errors
    ///
    /// The connection is refused, or the server rejects it.
    ///
    /// # Panics
    ///
    /// When no thread can be started.
    pub fn try_open(address: &str) -> Result<Self, tokio_postgres::Error> {
        let (queries, receiver) = mpsc::channel::<Query>();
        let (connected, outcome) = mpsc::channel();
        let address = address.to_owned();
        // A thread of its own: the caller may be inside a runtime, which must not block on another runtime.
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(async {
                let client = match connect(&address).await {
                    Ok(client) => client,
                    Err(cause) => return connected.send(Err(cause)).unwrap_or_default(),
                };
                connected.send(Ok(())).unwrap_or_default();
                while let Ok((sql, response)) = receiver.recv() {
                    response
                        .send(run_query(&client, &sql).await)
                        .unwrap_or_default();
                }
            });
        });
        let outcome = outcome.recv().expect("the thread reports the outcome");
        outcome.map(|()| Self { queries })
    }

    /// Runs one or several statements, and returns the result.
    ///
    /// # Panics
    ///
    /// When the server reports an error, or the connection is closed.
    pub fn query(&self, sql: &str) -> Rows {
        self.try_query(sql)
            .unwrap_or_else(|cause| panic!("{sql}: {cause:?}"))
    }

    /// Runs one or several statements, and returns the result.
    ///
    /// # Errors
    ///
    /// The server reports an error, or the connection is closed.
    ///
    /// # Panics
    ///
    /// When the connection's thread has panicked.
    pub fn try_query(&self, sql: &str) -> Outcome {
        let (response, outcome) = mpsc::channel();
        let query = (sql.to_owned(), response);
        self.queries.send(query).expect("the thread listens");
        outcome.recv().expect("the thread answers")
    }
}

async fn connect(address: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    // A closed connection is noticed by the next query.
    task::spawn(connection);
    Ok(client)
}

async fn run_query(client: &Client, sql: &str) -> Outcome {
    let messages = client.simple_query(sql).await?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(read(row)),
        _ => None,
    });
    Ok(Rows(rows.collect()))
}

fn read(row: &SimpleQueryRow) -> Row {
    let value = |at| {
        let text: &str = row.get(at)?;
        // Bytes are received as `\x` and hex digits.
        Some(text.strip_prefix("\\x").unwrap_or(text).to_owned())
    };
    (0..row.len()).map(value).collect()
}

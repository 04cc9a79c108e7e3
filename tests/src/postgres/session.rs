//! A connection to Postgres for tests, which may wait: blocking, and good inside and outside of async code.

use std::{sync::mpsc, thread};

use tokio::{runtime, task};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, SimpleQueryRow};

use crate::rows::{Row, Rows};

type Outcome = Result<Rows, tokio_postgres::Error>;
type Question = (String, mpsc::Sender<Outcome>);

/// A connection; it closes, and an open transaction is rolled back, when this is dropped.
#[derive(Debug)]
pub struct Session {
    questions: mpsc::Sender<Question>,
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
    /// Nobody listens there, or the server refuses.
    ///
    /// # Panics
    ///
    /// When there can be no further thread.
    pub fn try_open(address: &str) -> Result<Self, tokio_postgres::Error> {
        let (questions, asked) = mpsc::channel::<Question>();
        let (connected, outcome) = mpsc::channel();
        let address = address.to_owned();
        // A thread of its own: the caller may be inside a runtime, where nothing may wait for another one.
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async {
                let client = match connect(&address).await {
                    Ok(client) => client,
                    Err(cause) => return connected.send(Err(cause)).unwrap_or_default(),
                };
                connected.send(Ok(())).unwrap_or_default();
                while let Ok((sql, answer)) = asked.recv() {
                    answer.send(ask(&client, &sql).await).unwrap_or_default();
                }
            });
        });
        let outcome = outcome.recv().expect("the thread says how it went");
        outcome.map(|()| Self { questions })
    }

    /// What one or several statements answer.
    ///
    /// # Panics
    ///
    /// When the server refuses, or is gone.
    pub fn query(&self, sql: &str) -> Rows {
        self.try_query(sql)
            .unwrap_or_else(|cause| panic!("{sql}: {cause:?}"))
    }

    /// What one or several statements answer.
    ///
    /// # Errors
    ///
    /// The server refuses, or is gone.
    ///
    /// # Panics
    ///
    /// When the connection's thread has.
    pub fn try_query(&self, sql: &str) -> Outcome {
        let (answer, outcome) = mpsc::channel();
        let question = (sql.to_owned(), answer);
        self.questions.send(question).expect("the thread listens");
        outcome.recv().expect("the thread answers")
    }
}

async fn connect(address: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    // Its end is seen by whoever asks next.
    task::spawn(connection);
    Ok(client)
}

async fn ask(client: &Client, sql: &str) -> Outcome {
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
        // Bytes come as `\x` and digits.
        Some(text.strip_prefix("\\x").unwrap_or(text).to_owned())
    };
    (0..row.len()).map(value).collect()
}

//! What the report reads from the store.

use signpost_kit::clock::{StoredTime, Timestamp};
use signpost_store::{Store, StoreError, StoredRow};

use super::day::Day;

/// Everything that the store knows of a period.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredUsage {
    /// When the first gateway began to count; `None` if none has.
    pub began_at: Option<Timestamp>,
    /// The requests.
    pub counts: Vec<StoredCount>,
    /// The last clients; some may not have been seen in the period.
    pub clients: Vec<StoredClient>,
    /// The applications that have requests or a default version.
    pub applications: Vec<StoredApp>,
}

/// The requests of a version, an application and a source.
#[derive(Clone, Debug)]
pub(crate) struct StoredCount {
    /// The version's name.
    pub version: String,
    /// The application, or one of the constants beside [`super::NO_APPLICATION`].
    pub application: i64,
    /// Whether the requests were signed.
    pub is_signed: bool,
    /// The word of the source.
    pub source: String,
    /// Their number.
    pub requests: u64,
}

/// The last client of a version and an application.
#[derive(Clone, Debug)]
pub(crate) struct StoredClient {
    /// The version's name.
    pub version: String,
    /// The application.
    pub application: i64,
    /// Whether its requests were signed.
    pub is_signed: bool,
    /// The application's ident.
    pub ident: Option<String>,
    /// When it was seen, to the interval of batches.
    pub last_seen: Timestamp,
    /// Its address.
    pub address: Option<String>,
    /// Its user agent.
    pub user_agent: Option<String>,
}

/// An application.
#[derive(Clone, Debug)]
pub(crate) struct StoredApp {
    /// Its internal id.
    pub id: i64,
    /// Its ident.
    pub ident: String,
    /// `active` or `disabled`.
    pub state: String,
    /// The version of its requests that name none.
    pub default_version: Option<String>,
}

/// Reads the days from `first` to `last`, both included.
///
/// # Errors
///
/// The store is unavailable.
pub(crate) async fn read(store: &Store, first: Day, last: Day) -> Result<StoredUsage, StoreError> {
    let (first, last) = (first.number(), last.number());
    let of_period = format!("day BETWEEN {first} AND {last}");
    let counts = format!(
        "SELECT version, application, is_signed, source, CAST(sum(requests) AS bigint) AS requests \
         FROM usage_counts WHERE {of_period} GROUP BY version, application, is_signed, source"
    );
    let clients = "SELECT version, application, is_signed, ident, last_seen, address, user_agent FROM usage_clients";
    let applications = format!(
        "SELECT id, ident, state, default_version FROM applications WHERE default_version IS NOT NULL \
         OR id IN (SELECT application FROM usage_counts WHERE {of_period})"
    );
    match store {
        Store::Sqlite(database) => {
            let usage = database.call(move |connection| {
                // One transaction, so that all parts are of one moment.
                let all = connection.transaction()?;
                Ok(StoredUsage {
                    began_at: rows(&all, BEGAN_AT, |row| row.time("began_at"))?.pop(),
                    counts: rows(&all, &counts, |row| count_from_row(row))?,
                    clients: rows(&all, clients, |row| client_from_row(row))?,
                    applications: rows(&all, &applications, |row| app_from_row(row))?,
                })
            });
            usage.await
        }
        Store::Postgres(database) => {
            let session = database.session().await?;
            let began_at = session.query_opt(BEGAN_AT, &[]).await?;
            let began_at = began_at.map(|row| row.time("began_at")).transpose()?;
            let counts = session.query(&counts, &[]).await?;
            let clients = session.query(clients, &[]).await?;
            let applications = session.query(&applications, &[]).await?;
            Ok(StoredUsage {
                began_at,
                counts: counts
                    .iter()
                    .map(count_from_row)
                    .collect::<Result<_, _>>()?,
                clients: clients
                    .iter()
                    .map(client_from_row)
                    .collect::<Result<_, _>>()?,
                applications: applications
                    .iter()
                    .map(app_from_row)
                    .collect::<Result<_, _>>()?,
            })
        }
    }
}

const BEGAN_AT: &str = "SELECT began_at FROM usage_start";

fn rows<T>(
    connection: &rusqlite::Connection,
    query: &str,
    read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| read(row))?;
    rows.collect()
}

fn count_from_row<R: StoredRow>(row: &R) -> Result<StoredCount, R::Error> {
    Ok(StoredCount {
        version: row.text("version")?.to_owned(),
        application: row.number("application")?,
        is_signed: row.flag("is_signed")?,
        source: row.text("source")?.to_owned(),
        requests: u64::try_from(row.number("requests")?).unwrap_or(0),
    })
}

fn client_from_row<R: StoredRow>(row: &R) -> Result<StoredClient, R::Error> {
    Ok(StoredClient {
        version: row.text("version")?.to_owned(),
        application: row.number("application")?,
        is_signed: row.flag("is_signed")?,
        ident: row.optional_text("ident")?.map(str::to_owned),
        last_seen: row.time("last_seen")?,
        address: row.optional_text("address")?.map(str::to_owned),
        user_agent: row.optional_text("user_agent")?.map(str::to_owned),
    })
}

fn app_from_row<R: StoredRow>(row: &R) -> Result<StoredApp, R::Error> {
    Ok(StoredApp {
        id: row.number("id")?,
        ident: row.text("ident")?.to_owned(),
        state: row.text("state")?.to_owned(),
        default_version: row.optional_text("default_version")?.map(str::to_owned),
    })
}

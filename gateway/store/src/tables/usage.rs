//! Counted requests and last clients, as the reports read them. The gateway writes them; days are numbered since 1970-01-01.

use std::ops::RangeInclusive;

use signpost_protocol::version::Version;

use crate::{FromRow, Store, StoreError, Timestamp, Value, from_row, values};

/// Everything that the store knows of a period.
#[derive(Clone, Debug, Default)]
pub struct StoredUsage {
    /// When the first gateway began to count; `None` if none has.
    pub began_at: Option<Timestamp>,
    /// Requests by version, application and source.
    pub counts: Vec<StoredCount>,
    /// The last clients; some may not have been seen in the period.
    pub clients: Vec<StoredClient>,
    /// The applications that have requests, a default version or an extension.
    pub applications: Vec<StoredApp>,
}

/// The requests of a version, an application and a source.
#[derive(Clone, Debug)]
pub struct StoredCount {
    /// The version's name.
    pub version: String,
    /// The application's internal id, from 1 on; 0: of callbacks, -1: of applications for which a batch had no room.
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
pub struct StoredClient {
    /// The version's name.
    pub version: String,
    /// Internal id, with 0 and -1 as in [`StoredCount::application`].
    pub application: i64,
    /// Whether its requests were signed.
    pub is_signed: bool,
    /// Ident of the application, kept after the application is deleted.
    pub ident: Option<String>,
    /// When it was seen, to the interval of batches.
    pub last_seen: Timestamp,
    /// Address of the client.
    pub address: Option<String>,
    /// User agent of the client's request.
    pub user_agent: Option<String>,
}

/// An application with requests, a default version or an extension.
#[derive(Clone, Debug)]
pub struct StoredApp {
    /// Primary key of the application.
    pub id: i64,
    /// Ident in the application header of requests.
    pub ident: String,
    /// Name for people, on pages and in lists.
    pub name: String,
    /// `active` or `disabled`.
    pub state: String,
    /// The version of its requests that name none.
    pub default_version: Option<String>,
    /// JSON: until when it may use versions that end.
    pub extensions: Option<String>,
}

/// One application, and the versions to look for: both keys of the tables, which also find few rows among many.
#[derive(Clone, Debug)]
pub struct Only {
    /// The application's internal id.
    pub application: i64,
    /// The names of the versions.
    pub versions: Vec<Version>,
}

impl Only {
    /// The condition, without the days.
    fn condition(&self) -> String {
        // The names of versions have no quotes.
        let versions = self.versions.iter().map(|version| format!("'{version}'"));
        let versions = versions.collect::<Vec<_>>().join(", ");
        format!(
            "version IN ({versions}) AND application = {}",
            self.application
        )
    }
}

const APPS: &str =
    "SELECT id, ident, name, state, default_version, extensions FROM applications WHERE";

/// Reads these days, of all applications or of one.
///
/// # Errors
///
/// The store is unavailable.
pub async fn read(
    store: &Store,
    days: RangeInclusive<i64>,
    only: Option<&Only>,
) -> Result<StoredUsage, StoreError> {
    let (first, last) = (days.start(), days.end());
    let of_period = format!("day BETWEEN {first} AND {last}");
    let Some(only) = only else {
        // Neither OR nor UNION: for both, SQLite reads every application.
        let apps = format!(
            "{APPS} id IN (SELECT id FROM applications WHERE default_version IS NOT NULL \
             UNION ALL SELECT id FROM applications WHERE extensions IS NOT NULL \
             UNION ALL SELECT application FROM usage_counts WHERE {of_period})"
        );
        return read_where(store, &of_period, "true", &apps).await;
    };
    // By each day, the primary key finds them.
    let days = days.map(|day| day.to_string());
    let days = days.collect::<Vec<_>>().join(", ");
    let (of_app, apps) = (
        only.condition(),
        format!("{APPS} id = {}", only.application),
    );
    read_where(
        store,
        &format!("day IN ({days}) AND {of_app}"),
        &of_app,
        &apps,
    )
    .await
}

/// Reads what these conditions choose of counts and clients, and what this query finds of applications.
async fn read_where(
    store: &Store,
    counts: &str,
    clients: &str,
    apps: &str,
) -> Result<StoredUsage, StoreError> {
    // In Postgres, the sum of `bigint` is `numeric`, hence the cast.
    let counts = format!(
        "SELECT version, application, is_signed, source, CAST(sum(requests) AS bigint) AS requests \
         FROM usage_counts WHERE {counts} GROUP BY version, application, is_signed, source"
    );
    let clients = format!(
        "SELECT version, application, is_signed, ident, last_seen, address, user_agent \
         FROM usage_clients WHERE {clients}"
    );
    let began_at = store.row::<(_,)>("SELECT began_at FROM usage_start", Vec::new());
    Ok(StoredUsage {
        began_at: began_at.await?.map(|(began_at,)| began_at),
        counts: store.rows(&counts, Vec::new()).await?,
        clients: store.rows(&clients, Vec::new()).await?,
        applications: store.rows(apps, Vec::new()).await?,
    })
}

/// The requests of a path and an application.
#[derive(Clone, Debug)]
pub struct StoredUser {
    /// The version's name.
    pub version: String,
    /// The method.
    pub method: String,
    /// The path's pattern.
    pub path: String,
    /// Internal id, with 0 and -1 as in [`StoredCount::application`].
    pub application: i64,
    /// Ident of the application, kept after the application is deleted.
    pub ident: Option<String>,
    /// Its requests.
    pub requests: u64,
    /// When the last one was counted.
    pub last_seen: Timestamp,
}

/// Which paths.
#[derive(Clone, Debug, Default)]
pub struct OfPaths<'w> {
    /// The first day. Of a path that was used since `since`, the whole days count.
    pub day: i64,
    /// Only paths that were used since then, in ms.
    pub since: i64,
    /// Only of this version.
    pub version: Option<&'w str>,
    /// Only of the application with this internal id.
    pub application: Option<i64>,
    /// Only requests that the version's own backends served.
    pub is_own: bool,
}

impl OfPaths<'_> {
    /// The condition, and its values. The second is `since`: a text with the time in it would be another prepared statement
    /// for each report.
    fn condition(&self) -> (String, Vec<Value>) {
        let (mut all, mut values) = ("day >= $1".to_owned(), values![self.day, self.since]);
        if let Some(version) = self.version {
            values.push(version.into());
            all += &format!(" AND version = ${}", values.len());
        }
        if let Some(application) = self.application {
            values.push(application.into());
            all += &format!(" AND application = ${}", values.len());
        }
        if self.is_own {
            all += " AND NOT is_bridged";
        }
        (all, values)
    }
}

/// The paths that clients used, by version, method and path: `requests`, of them `client_errors`, `server_errors` (also those
/// without a response) and `bridged` (served by another version's backend); `applications`, `last_seen`.
///
/// # Errors
///
/// The store is unavailable.
pub async fn read_paths<T: FromRow>(store: &Store, of: &OfPaths<'_>) -> Result<Vec<T>, StoreError> {
    let (condition, values) = of.condition();
    let sum =
        |when: &str| format!("CAST(sum(CASE WHEN {when} THEN requests ELSE 0 END) AS bigint)");
    let sums = [
        ("TRUE", "requests"),
        ("class = '4xx'", "client_errors"),
        ("class IN ('5xx', 'none')", "server_errors"),
        ("is_bridged", "bridged"),
    ];
    let sums = sums.map(|(when, name)| format!("{} AS {name}", sum(when)));
    let sql = format!(
        "SELECT version, method, path, {}, max(last_seen) AS last_seen, \
         count(DISTINCT CASE WHEN application > 0 THEN application END) AS applications \
         FROM usage_paths WHERE {condition} GROUP BY version, method, path \
         HAVING max(last_seen) >= $2 ORDER BY version, method, path",
        sums.join(", ")
    );
    store.rows(&sql, values).await
}

/// Who used them: the applications with the most requests first, at most `limit` rows.
///
/// # Errors
///
/// The store is unavailable.
pub async fn read_path_users(
    store: &Store,
    of: &OfPaths<'_>,
    limit: u32,
) -> Result<Vec<StoredUser>, StoreError> {
    let (condition, values) = of.condition();
    let users = format!(
        "SELECT version, method, path, application, CAST(sum(requests) AS bigint) AS requests, \
         max(last_seen) AS last_seen FROM usage_paths WHERE {condition} \
         GROUP BY version, method, path, application HAVING max(last_seen) >= $2 \
         ORDER BY 5 DESC, 1, 2, 3, 4 LIMIT {limit}"
    );
    let sql = format!(
        "SELECT users.*, COALESCE((SELECT ident FROM applications WHERE id = users.application), \
         (SELECT max(ident) FROM usage_clients WHERE application = users.application)) AS ident \
         FROM ({users}) AS users ORDER BY requests DESC, version, method, path, application"
    );
    store.rows(&sql, values).await
}

/// The internal id of an application.
///
/// # Errors
///
/// The store is unavailable.
pub async fn application_id(store: &Store, ident: &str) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT id FROM applications WHERE ident = $1";
    let row = store.row::<(i64,)>(sql, values![ident]).await?;
    Ok(row.map(|(id,)| id))
}

/// The number of applications with requests to a version since this day.
///
/// # Errors
///
/// The store is unavailable.
pub async fn count_users(store: &Store, version: &str, day: i64) -> Result<u64, StoreError> {
    // Internal ids of applications begin at 1.
    let sql = "SELECT count(DISTINCT application) AS number FROM usage_counts \
               WHERE version = $1 AND day >= $2 AND application > 0";
    let row = store.row::<(i64,)>(sql, values![version, day]).await?;
    Ok(row.map_or(0, |(number,)| u64::try_from(number).unwrap_or_default()))
}

/// Whether a report would have at least `number` clients and applications that have a default version, or about as many.
///
/// # Errors
///
/// The store is unavailable.
pub async fn is_large(store: &Store, number: u32) -> Result<bool, StoreError> {
    // The limit is inside: to know that a table is large, not all of it must be counted.
    let count = |rows: &str| {
        format!("(SELECT count(*) FROM (SELECT 1 FROM {rows} LIMIT {number}) AS counted)")
    };
    let clients = count("usage_clients");
    let pinned = count("applications WHERE default_version IS NOT NULL");
    let sum = format!("SELECT {clients} + {pinned} AS number");
    let row = store.row::<(i64,)>(&sum, Vec::new()).await?;
    Ok(row.is_some_and(|(rows,)| rows >= i64::from(number)))
}

from_row!(StoredCount {
    version,
    application,
    is_signed,
    source,
    requests
});
from_row!(StoredUser {
    version,
    method,
    path,
    application,
    ident,
    requests,
    last_seen
});
from_row!(StoredClient {
    version,
    application,
    is_signed,
    ident,
    last_seen,
    address,
    user_agent
});
from_row!(StoredApp {
    id,
    ident,
    name,
    state,
    default_version,
    extensions
});

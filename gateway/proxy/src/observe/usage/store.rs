//! The tables `usage_start`, `usage_counts`, `usage_clients`, `usage_paths` and `usage_writers`, in both databases: writing.
//!
//! A batch is written in one transaction together with its number, so that it counts once: a write whose outcome is
//! unknown is repeated with the same number, and the store ignores it if it was committed.

use signpost_kit::clock::Timestamp;
use signpost_protocol::version::VersionSource;
use signpost_store::{Store, StoreError, values};

use super::{Day, KEEP_DAYS, batch::Batch};
use crate::observe::metrics::labels::STATUS_CLASSES;

/// Length of a writer's id: random, so that no two processes have the same.
pub(super) const ID_BYTES: usize = 16;

/// Limit of the rows of a table that are deleted at once, so that no statement takes long.
pub(super) const MAX_DELETED: usize = 10_000;

/// Records when counting began, unless a gateway has done so before.
///
/// # Errors
///
/// The store is unavailable.
pub(super) async fn begin(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    let insert =
        "INSERT INTO usage_start (one, began_at) VALUES (1, $1) ON CONFLICT (one) DO NOTHING";
    store.execute(insert, values![now]).await.map(drop)
}

// Changes no row if the store has this number already: `write_once` then adds nothing of the batch.
const GUARD: &str = "INSERT INTO usage_writers (id, sequence, written_at) VALUES ($1, $2, $3) \
    ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence, written_at = excluded.written_at \
    WHERE usage_writers.sequence < excluded.sequence";

// Added, since each gateway counts for itself. Ordered, since two transactions that lock the same rows in other orders
// would wait for each other.
const COUNT: &str = "INSERT INTO usage_counts (day, version, application, is_signed, source, requests) \
    SELECT given.* FROM {given} ORDER BY 1, 2, 3, 4, 5 \
    ON CONFLICT (day, version, application, is_signed, source) \
    DO UPDATE SET requests = usage_counts.requests + excluded.requests";

// An older batch, which a gateway writes late, must not replace the client of a newer one.
const REPLACE: &str = "INSERT INTO usage_clients \
    (version, application, is_signed, ident, last_seen, address, user_agent) \
    SELECT given.* FROM {given} ORDER BY 1, 2, 3 \
    ON CONFLICT (version, application, is_signed) DO UPDATE SET ident = excluded.ident, \
    last_seen = excluded.last_seen, address = excluded.address, user_agent = excluded.user_agent \
    WHERE usage_clients.last_seen <= excluded.last_seen";

const COUNT_PATH: &str = "INSERT INTO usage_paths \
    (day, version, application, is_bridged, method, path, class, requests, last_seen) \
    SELECT given.* FROM {given} ORDER BY 1, 2, 3, 4, 5, 6, 7 \
    ON CONFLICT (day, version, application, is_bridged, method, path, class) \
    DO UPDATE SET requests = usage_paths.requests + excluded.requests, \
    last_seen = CASE WHEN excluded.last_seen > usage_paths.last_seen THEN excluded.last_seen ELSE usage_paths.last_seen END";

/// Adds the batch with this number of a writer, which numbers its batches from 1, unless the store has it already.
///
/// # Errors
///
/// The store is unavailable. The batch may have been added: repeat it with the same number.
pub(super) async fn add(
    store: &Store,
    (writer, sequence): (&[u8; ID_BYTES], i64),
    batch: &Batch,
    now: Timestamp,
) -> Result<(), StoreError> {
    let guard = values![writer, sequence, now];
    store
        .write_once(
            (GUARD, guard),
            vec![counts(batch), clients(batch), paths(batch)],
        )
        .await
}

/// The rows of the counts.
fn counts(batch: &Batch) -> signpost_store::Batch {
    let counts = batch.counts.iter().flat_map(|(key, counts)| {
        by_source(counts).map(|(source, requests)| {
            let (day, version) = (key.day.number(), key.version.as_str());
            values![
                day,
                version,
                key.application,
                key.is_signed,
                source,
                requests
            ]
        })
    });
    signpost_store::Batch {
        sql: COUNT.to_owned(),
        columns: "day bigint, version text, application bigint, is_signed boolean, source text, requests bigint",
        rows: counts.collect(),
    }
}

/// The rows of the clients.
fn clients(batch: &Batch) -> signpost_store::Batch {
    let clients = batch
        .clients
        .iter()
        .map(|((version, application, is_signed), client)| {
            values![
                version.as_str(),
                *application,
                *is_signed,
                client.ident.as_ref().map(|ident| ident.as_str()),
                client.last_seen,
                client.address.map(|address| address.to_string()),
                client.user_agent.as_str(),
            ]
        });
    signpost_store::Batch {
        sql: REPLACE.to_owned(),
        columns: "version text, application bigint, is_signed boolean, ident text, last_seen bigint, address text, \
                  user_agent text",
        rows: clients.collect(),
    }
}

/// The rows of the paths.
fn paths(batch: &Batch) -> signpost_store::Batch {
    let rows = batch.paths.iter().flat_map(|(key, counts)| {
        let classes = STATUS_CLASSES.into_iter().zip(counts.by_class);
        let classes = classes.filter(|(_, requests)| *requests > 0);
        classes.map(|(class, requests)| {
            values![
                key.day.number(),
                key.version.as_str(),
                key.application,
                key.is_bridged,
                key.method.as_str(),
                &*key.pattern,
                class,
                i64::try_from(requests).unwrap_or(i64::MAX),
                counts.last_seen,
            ]
        })
    });
    signpost_store::Batch {
        sql: COUNT_PATH.to_owned(),
        columns: "day bigint, version text, application bigint, is_bridged boolean, method text, path text, class text, \
                  requests bigint, last_seen bigint",
        rows: rows.collect(),
    }
}

/// Deletes what is older than [`KEEP_DAYS`]. `true` if there may be more.
///
/// # Errors
///
/// The store is unavailable.
pub(super) async fn delete_old(store: &Store, now: Timestamp) -> Result<bool, StoreError> {
    let first = Day::at(now).minus(KEEP_DAYS - 1);
    let (day, time) = (first.number(), first.begin().as_millis());
    let counts = "day, version, application, is_signed, source";
    let clients = "version, application, is_signed";
    let paths = "day, version, application, is_bridged, method, path, class";
    let mut has_more = false;
    for (table, key, is_old, first) in [
        ("usage_counts", counts, "day < $1", day),
        ("usage_clients", clients, "last_seen < $1", time),
        ("usage_paths", paths, "day < $1", day),
        ("usage_writers", "id", "written_at < $1", time),
    ] {
        let deleted = store
            .delete_some((table, key), (is_old, values![first]), MAX_DELETED)
            .await?;
        has_more |= deleted >= MAX_DELETED;
    }
    Ok(has_more)
}

/// The counts that are not 0, with the words of their sources.
fn by_source(counts: &[u64]) -> impl Iterator<Item = (&'static str, i64)> {
    let counts = VersionSource::ALL.iter().zip(counts);
    let counts = counts.filter(|(_, count)| **count > 0);
    counts.map(|(source, count)| (source.as_str(), i64::try_from(*count).unwrap_or(i64::MAX)))
}

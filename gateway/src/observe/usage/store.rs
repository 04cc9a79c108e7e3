//! The tables `usage_start`, `usage_counts`, `usage_clients` and `usage_writers`, in both databases: writing.
//!
//! A batch is written in one transaction together with its number, so that it counts once: a write whose outcome is
//! unknown is repeated with the same number, and the store ignores it if it was committed.

use std::sync::Arc;

use rusqlite::{Transaction, params};
use signpost_kit::clock::Timestamp;
use signpost_store::{
    PostgresDatabase, Store, StoreError,
    postgres::{Parameters, row_count},
};

use super::{KEEP_DAYS, SOURCES, batch::Batch, day::Day};

/// Length of a writer's id: random, so that no two processes have the same.
pub(super) const ID_BYTES: usize = 16;

/// Limit of the rows of a table that are deleted at once, so that no statement takes long.
pub(super) const MAX_DELETED: usize = 10_000;

/// The number of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchNumber {
    /// The process.
    pub writer: [u8; ID_BYTES],
    /// Its batches are numbered from 1.
    pub sequence: i64,
}

/// Records when counting began, unless a gateway has done so before.
///
/// # Errors
///
/// The store is unavailable.
pub(super) async fn begin(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    let now = now.as_millis();
    match store {
        Store::Sqlite(database) => {
            let insert = "INSERT INTO usage_start (one, began_at) VALUES (1, ?1) ON CONFLICT (one) DO NOTHING";
            let begun = database.write(move |all| all.execute(insert, [now]));
            begun.await.map(drop)
        }
        Store::Postgres(database) => {
            let insert = "INSERT INTO usage_start (one, began_at) VALUES (1, $1) ON CONFLICT (one) DO NOTHING";
            let session = database.session().await?;
            session.execute(insert, &[&now]).await.map(drop)
        }
    }
}

/// Adds a batch, unless the store has it already.
///
/// # Errors
///
/// The store is unavailable. The batch may have been added: repeat it with the same number.
pub(super) async fn add(
    store: &Store,
    number: BatchNumber,
    batch: &Arc<Batch>,
    now: Timestamp,
) -> Result<(), StoreError> {
    match store {
        Store::Sqlite(database) => {
            let batch = Arc::clone(batch);
            database
                .write(move |all| add_in_sqlite(all, number, &batch, now))
                .await
        }
        Store::Postgres(database) => add_in_postgres(database, number, batch, now).await,
    }
}

fn add_in_sqlite(
    all: &Transaction<'_>,
    number: BatchNumber,
    batch: &Batch,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let BatchNumber { writer, sequence } = number;
    let is_new = all
        .prepare_cached(
            "INSERT INTO usage_writers (id, sequence, written_at) VALUES (?1, ?2, ?3) \
             ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence, written_at = excluded.written_at \
             WHERE usage_writers.sequence < excluded.sequence",
        )?
        .execute(params![&writer[..], sequence, now.as_millis()])?
        > 0;
    if !is_new {
        return Ok(());
    }
    let mut add = all.prepare_cached(
        "INSERT INTO usage_counts (day, version, application, is_signed, source, requests) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (day, version, application, is_signed, source) \
         DO UPDATE SET requests = requests + excluded.requests",
    )?;
    for (key, counts) in batch.counts() {
        let (day, version) = (key.day.number(), key.version.as_str());
        for (source, requests) in by_source(counts) {
            add.execute(params![
                day,
                version,
                key.application,
                key.is_signed,
                source,
                requests
            ])?;
        }
    }
    let mut replace = all.prepare_cached(
        "INSERT INTO usage_clients (version, application, is_signed, ident, last_seen, address, user_agent) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (version, application, is_signed) DO UPDATE \
         SET ident = excluded.ident, last_seen = excluded.last_seen, address = excluded.address, \
         user_agent = excluded.user_agent WHERE usage_clients.last_seen <= excluded.last_seen",
    )?;
    for ((version, application, is_signed), client) in batch.clients() {
        replace.execute(params![
            version.as_str(),
            application,
            is_signed,
            client.ident.as_ref().map(|ident| ident.as_str()),
            client.last_seen.as_millis(),
            client.address.map(|address| address.to_string()),
            client.user_agent
        ])?;
    }
    Ok(())
}

/// One statement: the writer's row is locked first, so that a repetition waits for the first attempt, and adds nothing
/// if that was committed.
const ADD_IN_POSTGRES: &str = "\
    WITH new AS ( \
        INSERT INTO usage_writers (id, sequence, written_at) VALUES ($1, $2, $3) \
        ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence, written_at = excluded.written_at \
        WHERE usage_writers.sequence < excluded.sequence RETURNING 1 AS one \
    ), counted AS ( \
        INSERT INTO usage_counts (day, version, application, is_signed, source, requests) \
        SELECT used.* FROM unnest($4::bigint[], $5::text[], $6::bigint[], $7::boolean[], $8::text[], $9::bigint[]) \
        AS used (day, version, application, is_signed, source, requests), new \
        ORDER BY used.day, used.version, used.application, used.is_signed, used.source \
        ON CONFLICT (day, version, application, is_signed, source) \
        DO UPDATE SET requests = usage_counts.requests + excluded.requests \
    ), seen AS ( \
        INSERT INTO usage_clients (version, application, is_signed, ident, last_seen, address, user_agent) \
        SELECT used.* FROM unnest($10::text[], $11::bigint[], $12::boolean[], $13::text[], $14::bigint[], \
        $15::text[], $16::text[]) \
        AS used (version, application, is_signed, ident, last_seen, address, user_agent), new \
        ORDER BY used.version, used.application, used.is_signed \
        ON CONFLICT (version, application, is_signed) DO UPDATE SET ident = excluded.ident, \
        last_seen = excluded.last_seen, address = excluded.address, user_agent = excluded.user_agent \
        WHERE usage_clients.last_seen <= excluded.last_seen \
    ) SELECT count(*) AS added FROM new";

async fn add_in_postgres(
    database: &PostgresDatabase,
    number: BatchNumber,
    batch: &Batch,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (mut days, mut versions, mut applications) = (Vec::new(), Vec::new(), Vec::new());
    let (mut signed, mut sources, mut requests) = (Vec::new(), Vec::new(), Vec::new());
    for (key, counts) in batch.counts() {
        for (source, count) in by_source(counts) {
            days.push(key.day.number());
            versions.push(key.version.as_str());
            applications.push(key.application);
            signed.push(key.is_signed);
            sources.push(source);
            requests.push(count);
        }
    }
    let clients: Vec<_> = batch.clients().collect();
    let of_clients = clients.iter().map(|((version, ..), _)| version.as_str());
    let client_versions: Vec<_> = of_clients.collect();
    let client_applications: Vec<_> = clients.iter().map(|((_, id, _), _)| *id).collect();
    let client_signed: Vec<_> = clients.iter().map(|((.., signed), _)| *signed).collect();
    let seen = || clients.iter().map(|(_, client)| client);
    let ident = |ident: &Option<_>| ident.as_ref().map(ToString::to_string);
    let idents: Vec<_> = seen().map(|client| ident(&client.ident)).collect();
    let last_seen = seen().map(|client| client.last_seen.as_millis());
    let last_seen: Vec<_> = last_seen.collect();
    let address = |address: std::net::IpAddr| address.to_string();
    let addresses: Vec<_> = seen().map(|client| client.address.map(address)).collect();
    let agents: Vec<_> = seen().map(|client| client.user_agent.as_str()).collect();
    let BatchNumber { writer, sequence } = number;
    let session = database.session().await?;
    let (writer, now) = (&writer[..], now.as_millis());
    let values: Parameters<'_> = &[
        &writer,
        &sequence,
        &now,
        &days,
        &versions,
        &applications,
        &signed,
        &sources,
        &requests,
        &client_versions,
        &client_applications,
        &client_signed,
        &idents,
        &last_seen,
        &addresses,
        &agents,
    ];
    session.query_one(ADD_IN_POSTGRES, values).await.map(drop)
}

/// Deletes what is older than [`KEEP_DAYS`]. `true` if there may be more.
///
/// # Errors
///
/// The store is unavailable.
pub(super) async fn delete_old(store: &Store, now: Timestamp) -> Result<bool, StoreError> {
    let first = Day::at(now).minus(KEEP_DAYS - 1);
    let (day, time) = (first.number(), first.begin().as_millis());
    // The limit is a literal, so that the plan can use an index. Another gateway may delete the same rows: waiting for
    // it could become a deadlock.
    let skip = match store {
        Store::Sqlite(_) => "",
        Store::Postgres(_) => " FOR UPDATE SKIP LOCKED",
    };
    let delete = |table: &str, key: &str, is_old: String| {
        format!(
            "DELETE FROM {table} WHERE ({key}) IN \
             (SELECT {key} FROM {table} WHERE {is_old} LIMIT {MAX_DELETED}{skip})"
        )
    };
    let counts = "day, version, application, is_signed, source";
    let clients = "version, application, is_signed";
    let statements = [
        delete("usage_counts", counts, format!("day < {day}")),
        delete("usage_clients", clients, format!("last_seen < {time}")),
        delete("usage_writers", "id", format!("written_at < {time}")),
    ];
    let mut has_more = false;
    for statement in statements {
        let deleted = match store {
            Store::Sqlite(database) => {
                let deleted = database.write(move |all| all.execute(&statement, []));
                deleted.await?
            }
            Store::Postgres(database) => {
                let session = database.session().await?;
                row_count(session.execute(&statement, &[]).await?)
            }
        };
        has_more |= deleted >= MAX_DELETED;
    }
    Ok(has_more)
}

/// The counts that are not 0, with the words of their sources.
fn by_source(counts: &[u64]) -> impl Iterator<Item = (&'static str, i64)> {
    let counts = SOURCES.iter().zip(counts);
    let counts = counts.filter(|(_, count)| **count > 0);
    counts.map(|(source, count)| (source.as_str(), i64::try_from(*count).unwrap_or(i64::MAX)))
}

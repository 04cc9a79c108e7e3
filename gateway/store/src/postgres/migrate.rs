//! Migrations on a server, by one process at a time.

use std::time::Duration;

use refinery::Runner;
use tokio_postgres::Client;

use super::changes::is_unavailable;
use crate::OpenError;

/// Number of the advisory lock: the bytes of "signpost", so that no other program uses it.
const LOCK: i64 = 0x7369_676e_706f_7374;
/// Attempts without advisory locks: one process migrates; the attempts of the others fail, and they retry.
const ATTEMPTS: u32 = 5;
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

mod embedded {
    refinery::embed_migrations!("migrations/postgres");
}

pub(super) fn runner() -> Runner {
    embedded::migrations::runner().set_grouped(true)
}

/// Applies the missing migrations. Neither a migration nor the wait for another process has a timeout.
pub(super) async fn migrate(
    client: &mut Client,
    server: &str,
    migrations: &Runner,
) -> Result<(), OpenError> {
    let refused = |cause: tokio_postgres::Error| OpenError::Server {
        server: server.to_owned(),
        cause: cause.into(),
    };
    client
        .batch_execute("SET statement_timeout = 0")
        .await
        .map_err(refused)?;
    let is_locked = match lock(client).await {
        Ok(()) => true,
        Err(error) if is_unavailable(&error) => false,
        Err(error) => return Err(refused(error)),
    };
    let attempts = if is_locked { 1 } else { ATTEMPTS };
    let migrated = try_migrate(client, migrations, attempts).await;
    if is_locked {
        let unlocked = client
            .execute("SELECT pg_advisory_unlock($1)", &[&LOCK])
            .await;
        unlocked.map_err(refused)?;
    }
    migrated.map_err(|cause| OpenError::Migration {
        database: server.to_owned(),
        cause,
    })
}

async fn lock(client: &Client) -> Result<(), tokio_postgres::Error> {
    let tried = client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]);
    if tried.await?.try_get(0)? {
        return Ok(());
    }
    tracing::info!("another process is migrating the database: waiting for it to finish");
    client
        .execute("SELECT pg_advisory_lock($1)", &[&LOCK])
        .await
        .map(drop)
}

async fn try_migrate(
    client: &mut Client,
    migrations: &Runner,
    attempts: u32,
) -> Result<(), refinery::Error> {
    for _ in 1..attempts {
        if migrations.run_async(client).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
    migrations.run_async(client).await.map(drop)
}

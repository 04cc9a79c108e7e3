//! `signpost store backup` and `signpost store restore`.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use clap::Args;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_management::{doctor::samples::shell, reports::inspect::check_master_key};
use signpost_proxy::{Config, program::Applications, rfc3339};
use signpost_store::{
    StoreAddress,
    sqlite::backup::{self, Restore},
};

use crate::cli::print_line;

#[derive(Debug, Args)]
pub(in crate::cli) struct BackupFile {
    /// The backup.
    file: PathBuf,
    /// The gateway's configuration file, which names the store.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    config: PathBuf,
}

pub(super) fn backup(arguments: &BackupFile) -> anyhow::Result<ExitCode> {
    let (file, config) = (&arguments.file, Config::load(&arguments.config)?);
    let database = match &config.store.address {
        StoreAddress::Sqlite(path) => path,
        server @ StoreAddress::Postgres(_) => bail!(
            "the store is {server}: back it up with Postgres' own tools, for example\n  \
             pg_dump --format=custom --file={} --dbname={server}{}\n\
             Continuous archiving (pg_basebackup and WAL) can restore any moment",
            file.display(),
            as_user(server)
        ),
    };
    backup::backup(database, file)?;
    print_line(&format!(
        "sqlite:{} is in {}",
        database.display(),
        file.display()
    ));
    if let Applications::Multi(_) = &config.applications {
        print_line("the master key is not in it: keep a copy of that apart");
    }
    Ok(ExitCode::SUCCESS)
}

/// The option for the address' user, which a message has not otherwise.
fn as_user(server: &StoreAddress) -> String {
    let user = server
        .user()
        .map(|user| format!(" --username={}", shell(user)));
    user.unwrap_or_default()
}

pub(super) async fn restore(arguments: &BackupFile) -> anyhow::Result<ExitCode> {
    let (file, config) = (&arguments.file, Config::load(&arguments.config)?);
    let database = match &config.store.address {
        StoreAddress::Sqlite(path) => path,
        server @ StoreAddress::Postgres(_) => bail!(
            "the store is {server}: stop all gateways and backends, then restore it with Postgres' own tools, for \
             example into an empty database\n  \
             pg_restore --exit-on-error --single-transaction --no-owner --dbname={server}{} {}",
            as_user(server),
            file.display()
        ),
    };
    let restore = Restore::prepare(database, file)?;
    if let (Applications::Multi(multi), Some(store)) = (&config.applications, restore.store()?) {
        let checked = check_master_key(&store, multi).await;
        checked.with_context(|| format!("{} does not fit the master key", file.display()))?;
    }
    let now = SystemClock.now();
    let (time, millis) = (rfc3339(now).replace(':', "-"), now.as_millis() % 1000);
    let replaced = restore.install(&format!(".replaced-{time}-{millis:03}"))?;
    print_line(&format!(
        "sqlite:{} has what is in {}",
        database.display(),
        file.display()
    ));
    if let Some(replaced) = replaced {
        print_line(&format!(
            "the database before is {}: delete it, and its -wal, when it is no longer needed",
            replaced.display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

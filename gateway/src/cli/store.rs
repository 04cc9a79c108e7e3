//! `signpost store …`: copies, backs up and restores the whole database.

mod backup;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::bail;
use clap::{Args, Subcommand};
use signpost_kit::secret::SecretSource;
use signpost_release::RELEASE;
use signpost_store::{
    PostgresAddress, PostgresSettings, StoreAddress,
    copy::{CopiedTable, copy},
    sqlite::backup::process_using,
};

use super::{
    print_error, print_line,
    source::{address_setting, read_address, read_secret},
};

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Copy everything from SQLite to Postgres, or nothing.
    ///
    /// Stop all gateways and backends first. The target must be empty; after an interrupted copy it still is, and the
    /// command can be repeated. The source does not change.
    ///
    /// Other users of the machine can see the command line. If the address contains a password, give it as env:NAME or
    /// file:PATH, or give the password separately with --to-password.
    Copy(Copy),
    /// Write a copy of the SQLite database to a new file, while programs use the database.
    ///
    /// Only the file's owner may read it. The master key is not in it: keep that apart.
    Backup(backup::BackupFile),
    /// Replace the SQLite database by a backup, which is checked before. Nothing is lost: the database before stays beside it.
    ///
    /// Stop all gateways and backends first.
    Restore(backup::BackupFile),
}

#[derive(Debug, Args)]
pub(super) struct Copy {
    /// The SQLite file: sqlite:PATH, or env:NAME or file:PATH of such an address.
    #[arg(long, value_name = "ADDRESS")]
    from: SecretSource,
    /// The Postgres database: postgres://USER@HOST:PORT/DATABASE, or env:NAME or file:PATH of such an address with its
    /// password.
    #[arg(long, value_name = "ADDRESS")]
    to: SecretSource,
    /// The Postgres password, as env:NAME or file:PATH.
    #[arg(long, value_name = "SOURCE")]
    to_password: Option<SecretSource>,
    /// PEM file of the root certificates for sslmode=verify-full, instead of the system's.
    #[arg(long, value_name = "FILE")]
    to_root_certificate: Option<PathBuf>,
}

pub(super) async fn run(command: StoreCommand) -> anyhow::Result<ExitCode> {
    let arguments = match command {
        StoreCommand::Copy(arguments) => arguments,
        StoreCommand::Backup(arguments) => return backup::backup(&arguments),
        StoreCommand::Restore(arguments) => return backup::restore(&arguments).await,
    };
    let (file, server) = arguments.pair()?;
    let settings = PostgresSettings {
        root_certificate: arguments.to_root_certificate.clone(),
        ..PostgresSettings::default()
    };
    warn_if_open(&file);
    let begun = Instant::now();
    print_line(&format!(
        "copying sqlite:{} to {server} in one transaction",
        file.display()
    ));
    let on_table = |table: &CopiedTable| print_line(&line(table));
    let program = format!("signpost {RELEASE}");
    let copied = copy(&file, &server, &settings, &program, on_table).await?;
    print_line(&format!(
        "copied in {:.1} s; all row counts match",
        begun.elapsed().as_secs_f32()
    ));
    if !copied.left_out.is_empty() {
        print_error(&format!(
            "warning: not copied, since they belong neither to Signpost nor to a version: {}",
            copied.left_out.join(", ")
        ));
    }
    print_next_steps(
        &address_setting(&arguments.to, &server),
        &file,
        &copied.tables,
    );
    Ok(ExitCode::SUCCESS)
}

impl Copy {
    fn pair(&self) -> anyhow::Result<(PathBuf, PostgresAddress)> {
        let from = read_address(&self.from, "--from")?;
        let mut to = read_address(&self.to, "--to")?;
        if let Some(password) = &self.to_password {
            to = to.with_password(read_secret(password, "--to-password", "password")?.expose());
        }
        if let Some(weakness) = to.weakness() {
            print_error(&format!("warning: {weakness}"));
        }
        match (from, to) {
            (StoreAddress::Sqlite(file), StoreAddress::Postgres(server)) => Ok((file, server)),
            (from, to) => {
                bail!("from {from} to {to}: only sqlite: can be copied, and only to postgres:")
            }
        }
    }
}

/// Warns if a process has the database open: what it writes from now on is not copied.
fn warn_if_open(file: &Path) {
    if let Ok(Some(process)) = process_using(file) {
        print_error(&format!(
            "warning: process {process} has {} open: what it writes after the copy is lost. Stop all gateways and \
             backends; if one of them ran during the copy, repeat it into a new database",
            file.display()
        ));
    }
}

fn line(table: &CopiedTable) -> String {
    let CopiedTable { name, rows, .. } = table;
    let note = match table.replaced {
        0 => String::new(),
        texts => format!("  (U+0000 replaced by U+FFFD in {texts} texts)"),
    };
    format!("{name:14}{rows:>12}{note}")
}

fn print_next_steps(store: &str, file: &Path, tables: &[CopiedTable]) {
    print_line("Before you start anything again:");
    print_line(&format!(
        "- in the configuration of all gateways and backends, set store = {store}"
    ));
    let has_applications = tables
        .iter()
        .any(|table| table.name == "applications" && table.rows > 0);
    if has_applications {
        print_line(&format!(
            "- in [applications] of all gateways, set master_key = \"file:PATH\" or \"env:NAME\" to the key used so far, which \
             encrypts the applications' keys. By default it is in {}",
            file.with_extension("key").display()
        ));
    }
}

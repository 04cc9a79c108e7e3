//! `signpost store …`: the database as a whole.

#![allow(
    clippy::doc_markdown,
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    reason = "these comments are the help that a terminal shows"
)]

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::bail;
use clap::{Args, Subcommand};
use signpost_store::{
    PostgresAddress, PostgresSettings, StoreAddress,
    copy::{CopiedTable, copy, process_using},
};

use super::{
    address::{AddressSource, PasswordSource},
    print_error, print_line,
};

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Move everything from SQLite to Postgres: all of it, or nothing.
    ///
    /// Stop all gateways and backends first. The target must be empty; when the copy is interrupted it still is, and
    /// the command can be run again. The source keeps what it has.
    ///
    /// Everybody on a machine can see its command lines: give an address that holds a password by env:NAME or
    /// file:PATH, or leave the password out of it and give that by --to-password.
    Copy(Copy),
}

#[derive(Debug, Args)]
pub(super) struct Copy {
    /// The SQLite file: sqlite:PATH, or env:NAME or file:PATH that holds this.
    #[arg(long, value_name = "ADDRESS")]
    from: AddressSource,
    /// The Postgres database: postgres://USER@HOST:PORT/DATABASE, or env:NAME or file:PATH that holds this, password
    /// and all.
    #[arg(long, value_name = "ADDRESS")]
    to: AddressSource,
    /// The password there: env:NAME or file:PATH.
    #[arg(long, value_name = "SOURCE")]
    to_password: Option<PasswordSource>,
    /// The certificates that sslmode=verify-full trusts, in PEM, instead of the system's.
    #[arg(long, value_name = "FILE")]
    to_root_certificate: Option<PathBuf>,
}

pub(super) async fn run(command: StoreCommand) -> anyhow::Result<ExitCode> {
    let StoreCommand::Copy(arguments) = command;
    let (file, server) = arguments.pair()?;
    let settings = PostgresSettings {
        root_certificate: arguments.to_root_certificate.clone(),
        ..PostgresSettings::default()
    };
    warn_of_users(&file);
    let begun = Instant::now();
    print_line(&format!(
        "copying sqlite:{} to {server}; nothing is there until all of it is",
        file.display()
    ));
    let tables = copy(&file, &server, &settings, |table| print_line(&line(table))).await?;
    print_line(&format!(
        "copied and counted in {:.1} s",
        begun.elapsed().as_secs_f32()
    ));
    say_what_next(&arguments.to.in_a_file(&server), &file, &tables);
    Ok(ExitCode::SUCCESS)
}

impl Copy {
    fn pair(&self) -> anyhow::Result<(PathBuf, PostgresAddress)> {
        let from = self.from.read("--from")?;
        let mut to = self.to.read("--to")?;
        if let Some(password) = &self.to_password {
            to = to.with_password(password.read("--to-password")?.expose());
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

/// What they write from now on, nobody copies.
fn warn_of_users(file: &Path) {
    if let Some(process) = process_using(file) {
        print_error(&format!(
            "warning: process {process} has {} open: what it writes after the copy is lost. Stop all gateways and \
             backends, and copy into a new database if one of them ran meanwhile",
            file.display()
        ));
    }
}

fn line(table: CopiedTable) -> String {
    let CopiedTable {
        name,
        rows,
        replaced,
    } = table;
    let note = match replaced {
        0 => String::new(),
        texts => format!("  ({texts} texts held U+0000, which is U+FFFD now)"),
    };
    format!("{name:14}{rows:>12}{note}")
}

fn say_what_next(store: &str, file: &Path, tables: &[CopiedTable]) {
    print_line("Before anything is started again:");
    print_line(&format!(
        "- in the files of all gateways and backends: store = {store}"
    ));
    let has_applications = tables
        .iter()
        .any(|table| table.name == "applications" && table.rows > 0);
    if has_applications {
        print_line(&format!(
            "- in [applications] of all gateways: master_key = \"file:PATH\" or \"env:NAME\", the very key that they had; \
             the applications' keys are sealed under it. Unless they named another, it is in {}",
            file.with_extension("key").display()
        ));
    }
}

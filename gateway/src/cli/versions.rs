//! `signpost versions …`: the versions, their dates, and their backends.

#![allow(
    clippy::doc_markdown,
    reason = "these comments are the help that a terminal shows"
)]

mod list;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum VersionsCommand {
    /// List the versions of the configuration file with their dates, and their backends with the running gateway's view of
    /// their health.
    List(list::ListArguments),
}

pub(super) fn run(command: &VersionsCommand) -> anyhow::Result<ExitCode> {
    match command {
        VersionsCommand::List(arguments) => list::run(arguments),
    }
}

//! `signpost versions …`: the versions, their dates and backends, and who uses them.

mod list;
mod report;

use std::process::ExitCode;

use clap::Subcommand;

use self::{list::ListArguments, report::Report};

#[derive(Debug, Subcommand)]
pub(super) enum VersionsCommand {
    /// List the versions of the configuration file with their dates, and their backends with the running gateway's view of
    /// their health.
    List(ListArguments),
    /// Report who uses each version, and what retiring it would break (multi-application mode).
    ///
    /// Gateways write their counts to the store every 5 seconds to every minute, and keep them for 90 days (UTC).
    Report(Report),
}

pub(super) async fn run(command: VersionsCommand) -> anyhow::Result<ExitCode> {
    match command {
        VersionsCommand::List(arguments) => list::run(&arguments),
        VersionsCommand::Report(report) => report.run().await,
    }
}

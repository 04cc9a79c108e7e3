//! `signpost versions …`: the versions, their dates and backends, and who uses them.

pub(super) mod contracts;
pub(super) mod diff;
mod drain;
mod list;
mod report;
mod retire;
mod shift;

use std::{path::Path, process::ExitCode};

use anyhow::bail;
use clap::Subcommand;
use signpost_management::operations::{
    backends::{DrainInput, UndrainInput},
    versions::{ReportInput, RetirementInput},
};
use signpost_protocol::version::Version;
use signpost_proxy::{Config, ServedVersion};

use self::{diff::DiffArguments, drain::OfFile, list::ListArguments, shift::ShiftArguments};
use super::operation::Told;

#[derive(Debug, Subcommand)]
pub(super) enum VersionsCommand {
    /// List the versions of the configuration file with their dates, and their backends with the running gateway's view of
    /// their health.
    List(ListArguments),
    /// Report who uses each version, and what retiring it would break (multi-application mode).
    ///
    /// Gateways write their counts to the store every 5 seconds to every minute, and keep them for 90 days (UTC).
    Report(Told<ReportInput>),
    /// Show what differs between two versions, by the responses to copies of requests, and for which applications
    /// (multi-application mode). Exit code 0 if every route was seen and nothing differs, otherwise 1.
    ///
    /// With --openapi, compare two OpenAPI documents instead, without the configuration. Exit code 0 if nothing breaks clients of
    /// the old one, 1 if something does, 2 if a document cannot be read. With --changes, 3 if an operation that breaks has no
    /// change, otherwise 0.
    Diff(DiffArguments),
    /// Check all stages of a version's retirement, and print what is open: who uses it, what is compared, proven and bridged, its
    /// brown-outs, and what happens at the date (multi-application mode). Changes nothing. Exit code 0 if nothing is open, otherwise 1.
    Retire(Told<RetirementInput>),
    /// Move a version to another address without a failed request: add it, wait until it is healthy, remove the old ones, and
    /// wait until they have no request in flight. If a step fails, the file is restored; exit code 0 or 1.
    Shift(ShiftArguments),
    /// Take an address of a backend out for a time, at all gateways of the store: it gets no new requests, and its requests in
    /// flight finish (multi-application mode).
    Drain(OfFile<DrainInput>),
    /// End that before its time.
    Undrain(OfFile<UndrainInput>),
}

pub(super) async fn run(command: VersionsCommand) -> anyhow::Result<ExitCode> {
    match command {
        VersionsCommand::List(arguments) => list::run(&arguments),
        VersionsCommand::Report(told) => report::run(told).await,
        VersionsCommand::Diff(arguments) => arguments.run().await,
        VersionsCommand::Retire(told) => retire::run(told).await,
        VersionsCommand::Shift(arguments) => shift::run(&arguments).await,
        VersionsCommand::Drain(arguments) => drain::drain(arguments).await,
        VersionsCommand::Undrain(arguments) => drain::undrain(arguments).await,
    }
}

/// The configured version with this name. An error names `file`, which the configuration is from.
pub(super) fn configured<'c>(
    config: &'c Config,
    file: &Path,
    name: &Version,
) -> anyhow::Result<&'c ServedVersion> {
    let Some(version) = config.versions.named(name.as_str().as_bytes()) else {
        let known: Vec<_> = config
            .versions
            .iter()
            .map(|version| version.name().as_str())
            .collect();
        bail!(
            "there is no version {name}; {} has {}",
            file.display(),
            known.join(", ")
        );
    };
    Ok(version)
}

//! `signpost bridge …`: whether a version's changes make another version's responses its own, and a draft of them.

mod draft;

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::{Args, Subcommand};
use signpost_kit::clock::{Clock, SystemClock};
use signpost_management::reports::shadows::{Diff, Wanted};
use signpost_protocol::version::Version;
use signpost_proxy::{restart_proof, rfc3339};

use super::{
    print_line,
    table::printable,
    versions::{
        configured,
        contracts::compare_files,
        diff::{Period, exit_code, open, print},
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum BridgeCommand {
    /// Check the changes of a version that still has its backend: whether the responses of its shadow, changed, are those that its
    /// clients got. Exit code 0 if every path that clients used was seen, or is named as unproven, and nothing differs; otherwise 1.
    Check(CheckArguments),
    /// Print changes to begin with, by what differs: names, places and forms of values. What it cannot know stands in comments: a
    /// step, a converter, or look at it.
    /// With --openapi, by two OpenAPI documents, before there is any traffic.
    Draft(DraftArguments),
}

#[derive(Debug, Args)]
pub(super) struct DraftArguments {
    #[command(flatten)]
    bridge: BridgeArguments,
    /// Compare the OpenAPI documents of the version and of the one that serves its clients, instead of responses.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    openapi: Option<Vec<PathBuf>>,
}

#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    #[command(flatten)]
    bridge: BridgeArguments,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Begin the proof anew, and check nothing: earlier pairs do not count any more.
    #[arg(long)]
    restart: bool,
}

#[derive(Debug, Args)]
pub(super) struct BridgeArguments {
    /// The version that shall lose its backend. It has a shadow.
    version: Version,
    #[command(flatten)]
    period: Period,
    /// The gateway's configuration file, which names the store.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    config: PathBuf,
}

pub(super) async fn run(command: BridgeCommand) -> anyhow::Result<ExitCode> {
    match command {
        BridgeCommand::Check(arguments) if arguments.restart => restart(&arguments.bridge).await,
        BridgeCommand::Check(arguments) => check(&arguments.bridge, arguments.json).await,
        BridgeCommand::Draft(arguments) => match &arguments.openapi {
            Some(files) => Ok(draft_by_documents(&arguments.bridge.version, files)),
            None => draft(&arguments.bridge).await,
        },
    }
}

async fn check(arguments: &BridgeArguments, as_json: bool) -> anyhow::Result<ExitCode> {
    let diff = read(arguments, true).await?;
    print(&diff, as_json)?;
    Ok(exit_code(&diff))
}

async fn restart(arguments: &BridgeArguments) -> anyhow::Result<ExitCode> {
    let (config, store) = open(&arguments.config).await?;
    let version = configured(&config, &arguments.config, &arguments.version)?.name();
    let now = SystemClock.now();
    restart_proof(&store, version.as_str(), now).await?;
    print_line(&format!(
        "the proof of {version} begins at {}: gateways learn it within seconds",
        rfc3339(now)
    ));
    Ok(ExitCode::SUCCESS)
}

async fn draft(arguments: &BridgeArguments) -> anyhow::Result<ExitCode> {
    let diff = read(arguments, false).await?;
    if diff.pairs == 0 {
        bail!(
            "no pairs without changes since then: remove the changes of {} for a while, or widen --since",
            arguments.version
        );
    }
    for line in draft::lines(&diff) {
        print_line(&line);
    }
    Ok(ExitCode::SUCCESS)
}

fn draft_by_documents(version: &Version, files: &[PathBuf]) -> ExitCode {
    match compare_files(files, [version.as_str(); 2]) {
        Ok(report) => {
            for line in draft::lines_by_documents(&report, version.as_str()) {
                print_line(&printable(&line));
            }
            ExitCode::SUCCESS
        }
        Err(code) => code,
    }
}

/// Reads what differs between the version and its shadow, with its changes or without.
async fn read(arguments: &BridgeArguments, is_changed: bool) -> anyhow::Result<Diff> {
    let (config, store) = open(&arguments.config).await?;
    let version = configured(&config, &arguments.config, &arguments.version)?;
    let changes = version.changes().filter(|_| is_changed);
    if is_changed && changes.is_none() {
        bail!(
            "{} has no changes to check: signpost versions diff shows what differs without",
            arguments.version
        );
    }
    let Some(shadow) = version.shadow() else {
        bail!(
            "{} has no [versions.{0}.shadow]: without copies of its requests nothing can be compared",
            arguments.version
        );
    };
    let wanted = Wanted {
        version,
        to: &shadow.to,
        changes: changes.map(|changes| &**changes),
        since: arguments.period.since,
    };
    Ok(Diff::read(&store, &wanted).await?)
}

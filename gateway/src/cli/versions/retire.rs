//! `signpost versions retire`: whether a version can be retired, on one page.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use signpost_kit::clock::{Clock, SystemClock, Timestamp};
use signpost_management::reports::retirement::Retirement;
use signpost_protocol::version::Version;
use signpost_proxy::{Config, program::raise_statement_timeout, rfc3339};

use crate::cli::{
    CommonOptions,
    operation::on_many,
    print_line, since,
    table::{printable, printable_json},
    versions::configured,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct RetireArguments {
    /// The version.
    version: Version,
    /// When it shall be retired, for example 2026-12-01 or 2026-12-01T10:00:00Z. Default: its sunset.
    #[arg(long, value_name = "DATE", value_parser = since)]
    at: Option<Timestamp>,
    #[command(flatten)]
    common: CommonOptions,
}

pub(super) async fn run(arguments: &RetireArguments) -> anyhow::Result<ExitCode> {
    let common = &arguments.common;
    let mut config = Config::load(&common.config)?;
    raise_statement_timeout(&mut config.store);
    let because = "who uses a version is counted in the store of [applications]";
    let store = on_many(&config, &common.config, because).await?.store;
    let version = configured(&config, &common.config, &arguments.version)?;
    let now = SystemClock.now();
    let read = Retirement::read(&store, &config.versions, version, arguments.at, now);
    let retirement = read.await?;
    if common.json {
        print_line(&printable_json(&json!(retirement).to_string()));
    } else {
        print(&retirement);
    }
    Ok(ExitCode::from(u8::from(!retirement.is_ready)))
}

fn print(retirement: &Retirement) {
    for stage in &retirement.stages {
        print_line(&printable(&format!("{:11}{}", stage.stage, stage.says)));
        for open in &stage.open {
            print_line(&printable(&format!("{:11}open: {open}", "")));
        }
    }
    let at = retirement.at.map(|at| format!(" at {}", rfc3339(at)));
    let can = if retirement.is_ready {
        "can"
    } else {
        "cannot yet"
    };
    let (name, at) = (&retirement.version, at.unwrap_or_default());
    print_line(&format!("\n{name} {can} be retired{at}"));
}

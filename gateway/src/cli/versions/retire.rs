//! `signpost versions retire`: whether a version can be retired, on one page.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use signpost_kit::clock::{Clock, SystemClock, Timestamp};
use signpost_management::reports::{retirement::Retirement, shadows::Diff};
use signpost_protocol::version::Version;
use signpost_proxy::{Config, program::raise_statement_timeout, rfc3339};

use crate::cli::{
    CommonOptions,
    operation::on_many,
    print_line, since,
    table::{printable, printable_json},
    versions::{
        configured,
        diff::{count, coverage_lines},
        report::{applications, path_lines},
    },
};

/// Limit of the paths on the page.
const MAX_PATHS: usize = 15;

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
        for line in lines(&retirement) {
            print_line(&printable(&line));
        }
    }
    Ok(ExitCode::from(u8::from(!retirement.is_ready())))
}

fn lines(of: &Retirement) -> Vec<String> {
    let name = &of.version;
    let at = of.at.map_or_else(
        || "at no date yet".to_owned(),
        |at| format!("at {}", rfc3339(at)),
    );
    let all = &of.used.requests;
    let last = all
        .last_seen
        .map(|last| format!(", the last at {}", rfc3339(last)));
    let mut lines = vec![
        format!("Retire {name} {at}: it is {} now", of.stage),
        String::new(),
        format!(
            "used       {} by {} in {} days{}; by {} in the last 7",
            count(all.requests, "request", "requests"),
            count(applications(&of.used), "application", "applications"),
            of.days,
            last.unwrap_or_default(),
            count(of.users_lately, "application", "applications"),
        ),
    ];
    let shown = &of.paths[..of.paths.len().min(MAX_PATHS)];
    if !shown.is_empty() {
        lines.extend(path_lines(shown));
    }
    if of.paths.len() > MAX_PATHS {
        lines.push(format!(
            "  and {} paths more: --json has all",
            of.paths.len() - MAX_PATHS
        ));
    }
    lines.push(format!(
        "compared   {}",
        compared(of.compared.as_ref(), of.bridge.as_deref())
    ));
    lines.push(match &of.bridge {
        Some(to) => {
            let bridged = of.paths.iter().map(|path| path.bridged).sum();
            format!(
                "bridged    to {to}: {}",
                count(bridged, "request", "requests")
            )
        }
        None => "bridged    no".to_owned(),
    });
    let coverage = of.coverage.iter().flat_map(coverage_lines);
    lines.extend(coverage.enumerate().map(|(number, line)| match number {
        0 => format!("proven     {line}"),
        _ => format!("           {line}"),
    }));
    let ahead = of.brownouts_ahead.iter().map(|one| &*one.start);
    let ahead = ahead.collect::<Vec<_>>().join(", ");
    let ahead = if ahead.is_empty() {
        "none ahead".to_owned()
    } else {
        format!("ahead: {ahead}")
    };
    lines.push(format!(
        "brown-outs {} passed, {ahead}",
        of.brownouts_passed
    ));
    lines.push(format!("then       {}", of.then));
    lines.push(String::new());
    lines.extend(of.open.iter().map(|open| format!("open: {open}")));
    lines.push(match of.open.len() as u64 {
        0 => format!("{name} can be retired"),
        open => format!(
            "{name} cannot be retired yet: {}",
            count(open, "point is open", "points are open")
        ),
    });
    lines
}

fn compared(diff: Option<&Diff>, bridge: Option<&str>) -> String {
    match (diff, bridge) {
        (Some(diff), _) => format!(
            "with {}{}: {}, {} in {} differ, for {}",
            diff.to,
            if diff.is_bridged { ", changed" } else { "" },
            count(diff.pairs, "pair", "pairs"),
            diff.differing_paths,
            count(diff.paths as u64, "path", "paths"),
            count(
                diff.applications.differing.len() as u64,
                "application",
                "applications"
            ),
        ),
        (None, Some(_)) => "before the bridge".to_owned(),
        (None, None) => "with nothing: it has no shadow".to_owned(),
    }
}

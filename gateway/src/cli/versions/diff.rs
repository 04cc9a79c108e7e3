//! `signpost versions diff`: what differs between two versions, by the responses to copies of requests.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde_json::json;
use signpost_kit::clock::Timestamp;
use signpost_management::reports::{
    coverage::{number_of, shown},
    paths::PathUsage,
    shadows::{Diff, PathDiff, RouteDiff, Wanted},
};
use signpost_protocol::version::Version;
use signpost_proxy::{Config, Day, rfc3339};
use signpost_store::{Store, tables::usage::OfPaths};

use crate::cli::{
    CommonOptions,
    operation::on_many,
    print_line, since,
    table::{count, printable, printable_json, table_lines},
    versions::{configured, contracts},
};

/// Limit of the applications and paths that are named.
const MAX_NAMED: usize = 50;

#[derive(Debug, Args)]
pub(in crate::cli) struct DiffArguments {
    /// The version whose clients got the responses.
    version: Version,
    /// The version that got the copies.
    to: Version,
    /// Compare the OpenAPI documents of both versions: 3.0 or 3.1, JSON or YAML.
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"])]
    openapi: Option<Vec<PathBuf>>,
    /// List the operations that break and that no change of the version takes.
    #[arg(long, requires = "openapi")]
    changes: bool,
    /// Say who has used each operation that breaks, since --since (multi-application mode).
    #[arg(long, requires = "openapi")]
    used: bool,
    #[command(flatten)]
    period: Period,
    #[command(flatten)]
    common: CommonOptions,
}

/// Which hours a report is about.
#[derive(Debug, Args)]
pub(in crate::cli) struct Period {
    /// Only pairs since a time, for example 2026-12-01 or 2026-12-01T10:00:00Z, or of the last time: 7d, 12h or 30m. The hour that it
    /// is in counts as a whole. Pairs are kept for 30 days.
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = since)]
    pub(in crate::cli) since: Timestamp,
}

impl DiffArguments {
    pub(in crate::cli) async fn run(&self) -> anyhow::Result<ExitCode> {
        if let Some(files) = &self.openapi {
            return self.compare_documents(files).await;
        }
        let (config, store) = open(&self.common.config).await?;
        let wanted = Wanted {
            version: configured(&config, &self.common.config, &self.version)?,
            to: &self.to,
            changes: None,
            since: self.period.since,
        };
        let diff = Diff::read(&store, &wanted).await?;
        print(&diff, self.common.json)?;
        Ok(exit_code(&diff))
    }

    async fn compare_documents(&self, files: &[PathBuf]) -> anyhow::Result<ExitCode> {
        let versions = [&self.version, &self.to];
        let report = match contracts::compare_files(files, versions.map(Version::as_str)) {
            Ok(report) => report,
            Err(code) => return Ok(code),
        };
        let file = &self.common.config;
        let config = self.changes.then(|| Config::load(file)).transpose()?;
        let changes = match &config {
            Some(config) => Some(configured(config, file, &self.version)?.changes()),
            None => None,
        };
        let changes = changes.map(|changes| changes.map(|changes| &**changes));
        let used = match self.used {
            true => Some(self.used_paths().await?),
            false => None,
        };
        let beside = (changes, used.as_deref());
        Ok(contracts::print(
            &report,
            versions,
            beside,
            self.common.json,
        ))
    }

    /// The paths of the version that clients used.
    async fn used_paths(&self) -> anyhow::Result<Vec<PathUsage>> {
        let (_, store) = open(&self.common.config).await?;
        let (version, since) = (self.version.as_str(), self.period.since);
        let of = OfPaths {
            day: Day::at(since).number(),
            since: since.as_millis(),
            version: Some(version),
            ..OfPaths::default()
        };
        let paths = PathUsage::read(&store, &of).await?.remove(version);
        Ok(paths.unwrap_or_default())
    }
}

/// The configuration, and its store.
pub(in crate::cli) async fn open(file: &Path) -> anyhow::Result<(Config, Store)> {
    let config = Config::load(file)?;
    let because = "what differs between versions is kept in the store of [applications]";
    let store = on_many(&config, file, because).await?.store;
    Ok((config, store))
}

/// 0 if there are pairs of every entry, and none differs; otherwise 1.
pub(in crate::cli) fn exit_code(diff: &Diff) -> ExitCode {
    match diff.is_proof() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

pub(in crate::cli) fn print(diff: &Diff, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        print_line(&printable_json(&json!(diff).to_string()));
    } else {
        for line in lines(diff) {
            print_line(&printable(&line));
        }
    }
    Ok(())
}

fn lines(diff: &Diff) -> Vec<String> {
    let bridged = if diff.is_bridged {
        ", changed as configured"
    } else {
        ""
    };
    let mut lines = vec![format!(
        "{} as it is, and {} by copies of the same requests{bridged}, since {}",
        diff.version,
        diff.to,
        rfc3339(diff.since)
    )];
    for route in &diff.routes {
        lines.push(String::new());
        lines.extend(route_lines(route));
    }
    lines.push(String::new());
    let coverage = diff.coverage.iter();
    lines.extend(coverage.flat_map(|coverage| coverage.lines()));
    lines.push(summary(diff));
    if !diff.unseen.is_empty() {
        let unseen = diff.unseen.join(", ");
        lines.push(format!(
            "{} not seen: {unseen}",
            count(diff.unseen.len() as u64, "route was", "routes were")
        ));
    }
    let apps = &diff.applications;
    if !apps.differing.is_empty() {
        let named = shown(apps.differing.iter(), MAX_NAMED);
        lines.push(format!("they are {named}"));
    }
    lines
}

/// One line, which says it all.
fn summary(diff: &Diff) -> String {
    let apps = &diff.applications;
    if diff.pairs == 0 {
        return "no pairs: nothing was compared".to_owned();
    }
    let beyond = if apps.has_more { "at least " } else { "" };
    let breaks = match apps.differing.len() {
        0 if diff.differing_paths == 0 => String::new(),
        breaking => format!(
            "; breaks for {beyond}{breaking} of {} applications",
            apps.users.max(apps.compared as u64)
        ),
    };
    format!(
        "{} compared, {}; {} differ{breaks}",
        number_of(diff.paths as u64, "path"),
        number_of(diff.pairs, "pair"),
        diff.differing_paths
    )
}

const HEADS: [&str; 8] = [
    "PATH", "PAIRS", "MISSING", "EXTRA", "TYPE", "VALUE", "HERE", "THERE",
];

fn route_lines(route: &RouteDiff) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {}, {} differ",
        route.route,
        number_of(route.pairs, "pair"),
        route.differing
    )];
    for rename in &route.renames {
        let (from, to, equal, of) = (&rename.from, &rename.to, rename.equal, rename.of);
        lines.push(format!("  equal: {from} → {to}, {equal} of {of}"));
    }
    let rows = route.differences.iter().take(MAX_NAMED).map(path_row);
    if !route.differences.is_empty() {
        lines.extend(
            table_lines(HEADS, rows, 1..6)
                .into_iter()
                .map(|line| format!("  {line}")),
        );
    }
    if route.differences.len() > MAX_NAMED {
        lines.push(format!(
            "  and {} paths more: --json has all",
            route.differences.len() - MAX_NAMED
        ));
    }
    if !route.noise.is_empty() {
        let noise = route.noise.iter().map(|one| &one.path);
        lines.push(format!("  differs by itself: {}", shown(noise, MAX_NAMED)));
    }
    if route.uncompared > 0 {
        lines.push(format!(
            "  {} could not be compared: a response is too large, broken off, or encoded in an unknown way",
            number_of(route.uncompared, "request")
        ));
    }
    if route.beyond_limit > 0 {
        lines.push(format!(
            "  {} pairs have paths beyond the limit, which are not told apart",
            route.beyond_limit
        ));
    }
    lines
}

fn path_row(diff: &PathDiff) -> [String; HEADS.len()] {
    let [here, there] = diff.shapes.clone().unwrap_or_default();
    let number = |number: u64| match number {
        0 => String::new(),
        number => number.to_string(),
    };
    [
        diff.path.clone(),
        number(diff.seen),
        number(diff.missing),
        number(diff.extra),
        number(diff.other_type),
        number(diff.value),
        here,
        there,
    ]
}

//! `signpost versions report`: who uses each version, and what retiring it would break.

#![allow(
    clippy::doc_markdown,
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    reason = "these comments are the help that a terminal shows"
)]

mod summary;
mod text;

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::Args;
use serde_json::json;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::version::Version;
use signpost_store::Store;

use self::{
    summary::{Known, Period, Summary},
    text::lines,
};
use crate::{
    cli::print_line,
    config::{Applications, Config},
    directory::apps::open::raise_statement_timeout,
    observe::usage::{KEEP_DAYS, day::Day, stored},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct Report {
    /// Report one version only.
    #[arg(long, value_name = "NAME")]
    version: Option<Version>,
    /// The last days to report, today included (UTC).
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=i64::from(KEEP_DAYS)))]
    days: u16,
    /// The gateway's configuration file, which names the store.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    config: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Report {
    pub(in crate::cli) async fn run(&self) -> anyhow::Result<ExitCode> {
        let mut config = Config::load(&self.config)?;
        if let Applications::Single(_) = &config.applications {
            bail!(
                "{} serves a single application: the gateway then has no store, and counts no requests. With \
                 [applications] instead of [application] it does",
                self.config.display()
            );
        }
        raise_statement_timeout(&mut config.store);
        let store = Store::open(&config.store).await?;
        let last = Day::at(SystemClock.now());
        let period = Period {
            days: self.days,
            first: last.minus(self.days - 1),
            last,
        };
        let usage = stored::read(&store, period.first, period.last).await?;
        let mut summary = Summary::new(&usage, period, &Known::from_versions(&config.versions));
        if let Some(version) = &self.version {
            summary.retain(version.as_str());
            if summary.versions.is_empty() {
                bail!(
                    "version {version} is not configured, and no request went to it in the last {} days",
                    self.days
                );
            }
        }
        if self.json {
            print_line(&json!(summary).to_string());
        } else {
            for line in lines(&summary) {
                print_line(&line);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

//! `signpost versions report`: who uses each version, and what retiring it would break.

mod text;

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde_json::json;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_management::reports::usage::Summary;
use signpost_protocol::version::Version;
use signpost_proxy::{Config, KEEP_USAGE_DAYS as KEEP_DAYS, program::raise_statement_timeout};
use signpost_store::Store;

use self::text::lines;
use crate::cli::{CommonOptions, many, print_line};

#[derive(Debug, Args)]
pub(in crate::cli) struct Report {
    /// Report one version only.
    #[arg(long, value_name = "NAME")]
    version: Option<Version>,
    /// The last days to report, today included (UTC).
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=i64::from(KEEP_DAYS)))]
    days: u16,
    #[command(flatten)]
    common: CommonOptions,
}

impl Report {
    pub(in crate::cli) async fn run(&self) -> anyhow::Result<ExitCode> {
        let mut config = Config::load(&self.common.config)?;
        let because = "the gateway then has no store, and counts no requests. With [applications] instead of [application] it \
                       does";
        many(&config, &self.common.config, because)?;
        raise_statement_timeout(&mut config.store);
        let store = Store::open(&config.store).await?;
        let now = SystemClock.now();
        let mut summary = Summary::read(&store, self.days, now, &config.versions, None).await?;
        if let Some(version) = &self.version {
            summary
                .versions
                .retain(|one| one.version == version.as_str());
            if summary.versions.is_empty() {
                bail!(
                    "version {version} is not configured, and no request went to it in the last {} days",
                    self.days
                );
            }
        }
        if self.common.json {
            print_line(&json!(summary).to_string());
        } else {
            for line in lines(&summary) {
                print_line(&line);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests;

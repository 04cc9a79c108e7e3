//! `signpost versions report`: who uses each version, and what retiring it would break.

mod text;

use std::process::ExitCode;

use serde_json::json;
use signpost_management::operations::versions::{ReportInput, report};
use signpost_proxy::{Config, program::raise_statement_timeout};

use self::text::lines;
use crate::cli::{
    operation::{Told, on_many},
    print_line,
};

pub(super) async fn run(Told { input, common }: Told<ReportInput>) -> anyhow::Result<ExitCode> {
    let mut config = Config::load(&common.config)?;
    raise_statement_timeout(&mut config.store);
    let because = "the gateway then has no store, and counts no requests. With [applications] instead of [application] it does";
    let context = on_many(&config, &common.config, because).await?;
    let summary = report(&context, &config.versions, input).await?;
    if common.json {
        print_line(&json!(summary).to_string());
    } else {
        for line in lines(&summary) {
            print_line(&line);
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;

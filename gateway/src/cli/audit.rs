//! `signpost audit`: who changed what.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use signpost_kit::clock::Timestamp;
use signpost_management::administration::{
    apps::MAX_PAGE,
    audit::{self, AuditItem},
};
use signpost_proxy::{Config, rfc3339};
use signpost_store::{Store, tables::audit::Filter};

use super::{
    CommonOptions, many, print_error, print_line, since,
    table::{print_table, printable_json},
};

#[derive(Debug, Args)]
pub(super) struct AuditArguments {
    /// Only changes since a time, for example 2026-12-01 or 2026-12-01T10:00:00Z, or in the last time: 7d, 12h or 30m.
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
    /// Only changes by this user or token.
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Only changes of this application, account (`provider/username`), token, address of a backend, `configuration` or
    /// `master-key`.
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// Maximum number of changes.
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=MAX_PAGE as i64))]
    limit: u16,
    /// The next page: the number of the last change of the page before.
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    #[command(flatten)]
    common: CommonOptions,
}

pub(super) async fn run(arguments: AuditArguments) -> anyhow::Result<ExitCode> {
    let store = open(&arguments.common).await?;
    let filter = Filter {
        actor: arguments.actor,
        subject: arguments.subject,
        since: arguments.since,
        before: arguments.before,
        ..Filter::default()
    };
    let limit = usize::from(arguments.limit);
    let (rows, has_more) = audit::page(&store, filter, limit).await?;
    if arguments.common.json {
        print_line(&printable_json(&json!(rows).to_string()));
    } else {
        let heads = [
            "ID", "TIME", "ACTOR", "FROM", "ACTION", "SUBJECT", "REVISION", "CHANGES", "REASON",
        ];
        print_table(heads, rows.iter().map(cells));
    }
    if let (true, Some(last)) = (has_more, rows.last()) {
        print_error(&format!("more changes follow: --before {}", last.id));
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the configured store.
pub(super) async fn open(common: &CommonOptions) -> anyhow::Result<Store> {
    let config = Config::load(&common.config)?;
    many(&config, &common.config, "nothing is changed by commands")?;
    Ok(Store::open(&config.store).await?)
}

fn cells(row: &AuditItem) -> [String; 9] {
    [
        row.id.to_string(),
        rfc3339(row.at),
        row.actor.clone(),
        row.origin.clone(),
        row.action.clone(),
        row.subject.clone(),
        row.revision.to_string(),
        row.changes.to_string(),
        row.reason.clone().unwrap_or_default(),
    ]
}

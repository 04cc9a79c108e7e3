//! `signpost audit`: who changed what.

use std::process::ExitCode;

use signpost_management::{
    administration::audit::AuditItem,
    operations::audit::{AuditSearch, LIST},
};
use signpost_proxy::rfc3339;

use super::{
    operation::{Told, on_store},
    print_error,
    table::print_list,
};

pub(super) async fn run(arguments: Told<AuditSearch>) -> anyhow::Result<ExitCode> {
    let Told { input, common } = arguments;
    let list = on_store(&LIST, (), input, &common).await?;
    let heads = [
        "ID", "TIME", "ACTOR", "FROM", "ACTION", "SUBJECT", "REVISION", "CHANGES", "REASON",
    ];
    print_list(&list.items, heads, cells, common.json);
    if let Some(last) = list.next {
        print_error(&format!("more changes follow: --before {last}"));
    }
    Ok(ExitCode::SUCCESS)
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

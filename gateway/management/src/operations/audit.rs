//! The audit: who changed what.

use clap::{Args, builder::TypedValueParser};
use serde::Deserialize;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_proxy::parse_since;
use signpost_store::tables::audit::Filter;
use utoipa::ToSchema;

use super::{
    Context, Face, Input, Operation, Result,
    input::{After, Limit, List, Text},
    problem::ApiError,
};
use crate::administration::audit::{AuditItem, page};

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&LIST)
}

/// Which actions.
#[derive(Args, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditSearch {
    /// Only those since a date, since a time of RFC 3339, or in the last time: `7d`, `12h` or `30m`.
    #[arg(
        long,
        value_name = "TIME",
        value_parser = since,
        help = "Only changes since a time, for example 2026-12-01 or 2026-12-01T10:00:00Z, or in the last time: 7d, 12h or 30m"
    )]
    pub since: Option<String>,
    /// Only those by this user or token.
    #[arg(long, value_name = "NAME", help = "Only changes by this user or token")]
    pub actor: Option<String>,
    /// Only those of this subject: an application, an account as `provider/username`, a token, a backend's address,
    /// `configuration` or `master-key`.
    #[arg(
        long,
        value_name = "SUBJECT",
        help = "Only changes of this application, account (`provider/username`), token, address of a backend, `configuration` or `master-key`"
    )]
    pub subject: Option<String>,
    /// Maximum number of items.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t,
        help = "Maximum number of changes"
    )]
    #[serde(default)]
    #[schema(value_type = u16, minimum = 1, maximum = 1000)]
    pub limit: Limit,
    /// The `next` of the page before.
    #[arg(
        long = "before",
        value_name = "ID",
        value_parser = clap::value_parser!(i64).map(|id| Text(After(id))),
        help = "The next page: the number of the last change of the page before"
    )]
    #[schema(value_type = Option<String>)]
    pub after: Option<Text<After>>,
}

impl Input for AuditSearch {}

/// Checks a command's `--since`; the operation reads it.
fn since(text: &str) -> Result<String, String> {
    let since = parse_since(text, SystemClock.now());
    since.map_err(|allowed| format!("allowed: {allowed}"))?;
    Ok(text.to_owned())
}

/// Lists what was changed.
pub const LIST: Operation<(), AuditSearch, List<AuditItem>> = Operation::read(
    "/api/v1/audit",
    "Lists what was changed, newest first.",
    |context, target, input| Box::pin(list(context, target, input)),
);

async fn list(context: &Context, (): (), input: AuditSearch) -> Result<List<AuditItem>> {
    let since = input.since.map(|text| {
        let since = parse_since(&text, context.caller.at);
        since.map_err(|allowed| ApiError::invalid("since", allowed))
    });
    let filter = Filter {
        actor: input.actor,
        subject: input.subject,
        since: since.transpose()?,
        before: input.after.map(|Text(After(id))| id),
        ..Filter::default()
    };
    let page = page(&context.store, filter, input.limit.into()).await?;
    Ok(List::new(page, |item| item.id.to_string()))
}

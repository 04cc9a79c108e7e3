//! `/api/v1/audit`: who changed what.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header};
use serde::Deserialize;
use signpost_store::tables::audit::Filter;

use super::{
    ApiError, Shared,
    body::{List, Params, limit},
};
use crate::{
    config::parse_since,
    directory::{
        audit::{AuditItem, page},
        printable::printable_json,
    },
};

/// Which actions.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditParams {
    /// Only those since a date, since a time of RFC 3339, or in the last time: `7d`, `12h` or `30m`.
    since: Option<String>,
    /// Only those by this user or token.
    actor: Option<String>,
    /// Only those of this subject: an application, a token, a backend's address, `configuration` or `master-key`.
    subject: Option<String>,
    /// Maximum number of items.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u16>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// Lists what was changed, newest first.
#[utoipa::path(get, path = "/api/v1/audit", tag = "audit", params(AuditParams), responses((status = OK, body = List<AuditItem>)))]
pub(super) async fn list(
    State(api): State<Shared>,
    Params(params): Params<AuditParams>,
) -> Result<Response, ApiError> {
    let now = api.current.load().state.clock.now();
    let since = params.since.map(|text| {
        let allowed = "a date, a time of RFC 3339 with a time zone, or a duration as 7d, 12h, 30m";
        parse_since(&text, now).ok_or_else(|| ApiError::invalid("since", allowed))
    });
    let before = params.after.map(|after| after.parse());
    let filter = Filter {
        actor: params.actor,
        subject: params.subject,
        since: since.transpose()?,
        before: before
            .transpose()
            .map_err(|_| ApiError::invalid("after", "the next of a page"))?,
        ..Filter::default()
    };
    let (items, has_more) = page(api.store(), filter, limit(params.limit)?).await?;
    let last = items.last().filter(|_| has_more);
    let next = last.map(|item| item.id.to_string());
    let list = serde_json::to_string(&List { items, next }).map_err(ApiError::internal)?;
    let json = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, json)], printable_json(&list)).into_response())
}

//! `/api/v1/audit`: who changed what.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header};
use serde::Deserialize;
use signpost_proxy::parse_since;
use signpost_store::tables::audit::Filter;

use super::{
    ApiError, Shared,
    body::{List, Params, after, limit},
};
use crate::administration::{
    audit::{AuditItem, page},
    printable::printable_json,
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
    /// Only those of this subject: an application, an account as `provider/username`, a token, a backend's address,
    /// `configuration` or `master-key`.
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
        let since = parse_since(&text, now);
        since.map_err(|allowed| ApiError::invalid("since", allowed))
    });
    let filter = Filter {
        actor: params.actor,
        subject: params.subject,
        since: since.transpose()?,
        before: after(params.after.as_deref())?,
        ..Filter::default()
    };
    let page = page(api.store(), filter, limit(params.limit)?).await?;
    let list = List::new(page, |item| item.id.to_string());
    let list = serde_json::to_string(&list).map_err(ApiError::internal)?;
    let json = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, json)], printable_json(&list)).into_response())
}

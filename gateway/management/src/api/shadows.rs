//! `/api/v1/versions/diff`: what differs between a version and the one that gets copies of its requests.

use std::{sync::Arc, time::Duration};

use axum::{Extension, Json, extract::State, response::IntoResponse};
use serde::Deserialize;
use signpost_kit::server::listener::UntilSent;
use signpost_proxy::{KEEP_SHADOW_DAYS as KEEP_DAYS, parse_since};

use super::{ApiError, Shared, body::Params, versions::place_of_report};
use crate::reports::shadows::{Diff, Wanted};

/// Which pairs.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffParams {
    /// The version whose clients got the responses; it has a shadow.
    version: String,
    /// Only pairs since a date, since a time of RFC 3339, or of the last time: `7d`, `12h` or `30m`. By default all that are kept.
    since: Option<String>,
    /// Only pairs to which the present changes of the version were applied; by default those without any changes.
    changed: Option<bool>,
}

/// Reports what differs between a version and its shadow, and for which applications.
#[utoipa::path(get, path = "/api/v1/versions/diff", tag = "versions", params(DiffParams), responses((status = OK, description = "The report.", body = Diff)))]
pub(super) async fn diff(
    State(api): State<Shared>,
    Params(params): Params<DiffParams>,
) -> Result<impl IntoResponse, ApiError> {
    let place = place_of_report()?;
    let gateway = api.current.load_full();
    let (versions, now) = (&gateway.policy.backends.versions, gateway.state.clock.now());
    let version = versions.named(params.version.as_bytes());
    let with_shadow = version.and_then(|version| Some((version, version.shadow()?)));
    let allowed = "a version with a shadow";
    let (version, shadow) = with_shadow.ok_or_else(|| ApiError::invalid("version", allowed))?;
    let since = match &params.since {
        Some(text) => {
            let since = parse_since(text, now);
            since.map_err(|allowed| ApiError::invalid("since", allowed))?
        }
        None => now.minus(Duration::from_secs(u64::from(KEEP_DAYS) * 86_400)),
    };
    let changes = version.changes().filter(|_| params.changed == Some(true));
    if params.changed == Some(true) && changes.is_none() {
        return Err(ApiError::invalid(
            "changed",
            "only of a version with changes",
        ));
    }
    let wanted = Wanted {
        version,
        to: &shadow.to,
        changes: changes.map(|changes| &**changes),
        since,
    };
    let diff = Diff::read(api.store(), &wanted).await?;
    let until_sent = UntilSent(Arc::new(place));
    Ok((Extension(until_sent), Json(diff)))
}

//! `/api/v1/versions`: the versions with their backends, and who uses them.

use std::{sync::Arc, time::Duration};

use axum::{Extension, Json, extract::State, response::IntoResponse};
use serde::Deserialize;
use signpost_kit::server::listener::UntilSent;
use signpost_proxy::{AppStore as _, KEEP_USAGE_DAYS as KEEP_DAYS, usage_rows};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    ApiError, Shared,
    body::{List, PageParams, Params, known_ident},
    problem::Code,
};
use crate::reports::{usage::Summary, versions::ListedVersion};

/// Days of a report, if a call names no number.
const DEFAULT_DAYS: u16 = 30;

/// Limit on what a report reads of clients and applications: some 10 MB of JSON.
const MAX_ROWS: u32 = 20_000;

/// A report of many applications takes memory until it is sent: so many at a time.
pub(super) const MAX_REPORTS: usize = 4;
static REPORTS: Semaphore = Semaphore::const_new(MAX_REPORTS);
/// When a call that gets no report should try again.
const RETRY: Duration = Duration::from_secs(5);

/// Lists the versions with their dates, and their backends as this gateway sees them.
#[utoipa::path(get, path = "/api/v1/versions", tag = "versions", params(PageParams), responses((status = OK, description = "The versions.", body = List<ListedVersion>)))]
pub(super) async fn list(
    State(api): State<Shared>,
    Params(page): Params<PageParams>,
) -> Result<Json<List<ListedVersion>>, ApiError> {
    let gateway = api.current.load();
    let (backends, now) = (&gateway.policy.backends, gateway.state.clock.now());
    let versions = ListedVersion::all(&backends.versions, &backends.status(), now);
    Ok(Json(page.of(versions, |version| &version.version)?))
}

/// Which report.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportParams {
    /// The last days to report, today included (UTC); by default 30.
    #[param(minimum = 1, maximum = 90)]
    days: Option<u16>,
    /// Only this version.
    version: Option<String>,
    /// Only the application with this ident, in versions that are configured.
    app: Option<String>,
}

/// Reports who uses each version, and what retiring it would break. Of very many applications, only the command does.
#[utoipa::path(get, path = "/api/v1/versions/report", tag = "versions", params(ReportParams), responses((status = OK, description = "The report.", body = Summary)))]
pub(super) async fn report(
    State(api): State<Shared>,
    Params(params): Params<ReportParams>,
) -> Result<impl IntoResponse, ApiError> {
    let days = params.days.unwrap_or(DEFAULT_DAYS);
    if !(1..=KEEP_DAYS).contains(&days) {
        return Err(ApiError::invalid("days", format!("1 to {KEEP_DAYS}")));
    }
    let place = place_of_report()?;
    let app = match &params.app {
        Some(ident) => Some(internal_id(&api, ident).await?),
        None if usage_rows::is_large(api.store(), MAX_ROWS).await? => {
            return Err(Code::ReportTooLarge.into());
        }
        None => None,
    };
    let gateway = api.current.load_full();
    let (versions, now) = (&gateway.policy.backends.versions, gateway.state.clock.now());
    let mut summary = Summary::read(api.store(), days, now, versions, app).await?;
    if let Some(version) = &params.version {
        summary.versions.retain(|one| one.version == *version);
        if summary.versions.is_empty() {
            return Err(ApiError::invalid(
                "version",
                "one that is configured, or has requests in these days",
            ));
        }
    }
    let until_sent = UntilSent(Arc::new(place));
    Ok((Extension(until_sent), Json(summary)))
}

/// A place among the reports that are made at a time.
pub(super) fn place_of_report() -> Result<SemaphorePermit<'static>, ApiError> {
    let busy = |_| ApiError::from(Code::RateLimited).retry_after(RETRY);
    REPORTS.try_acquire().map_err(busy)
}

async fn internal_id(api: &Shared, ident: &str) -> Result<i64, ApiError> {
    let found = api.apps.find(known_ident(ident)?).await?;
    let app = found.ok_or_else(|| ApiError::from(Code::AppNotFound))?;
    Ok(app.id.get())
}

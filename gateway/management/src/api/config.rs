//! `/api/v1/config`: the configuration in effect, and its reload. Files stay the only truth: nothing here edits them.

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::{Value, json};
use signpost_kit::{
    config::{Problem, Setting},
    reload::{ReloadError, Report},
};
use signpost_store::tables::audit::add;
use utoipa::ToSchema;

use super::{
    ApiError, Shared,
    body::{Input, List, PageParams, Params, Why},
    caller::Caller,
    problem::Code,
};
use crate::administration::audit;

/// Lists every key of this gateway's configuration with its value in effect; secrets are hidden.
#[utoipa::path(get, path = "/api/v1/config", tag = "config", params(PageParams), responses((status = OK, description = "The settings.", body = List<Setting>)))]
pub(super) async fn list(
    State(api): State<Shared>,
    Params(page): Params<PageParams>,
) -> Result<Json<List<Setting>>, ApiError> {
    let settings = api.reload.settings().iter().cloned().collect();
    Ok(Json(page.of(settings, |setting| &setting.key)?))
}

/// What a reload would do.
#[derive(Serialize, ToSchema)]
pub(super) struct Check {
    /// What is wrong with the files; a reload would be rejected.
    problems: Vec<Problem>,
    /// What a reload would change; null if it would be rejected.
    report: Option<Report>,
}

/// Has this gateway read its files, and compares them with the configuration in effect.
#[utoipa::path(get, path = "/api/v1/config/check", tag = "config", responses((status = OK, description = "What a reload would do.", body = Check)))]
pub(super) async fn check(State(api): State<Shared>) -> Result<Json<Check>, ApiError> {
    Ok(Json(match api.reload.compare().await {
        Ok(report) => Check {
            problems: Vec::new(),
            report: Some(report),
        },
        Err(ReloadError::Rejected(error)) => Check {
            problems: error.problems,
            report: None,
        },
        Err(error @ ReloadError::Ended) => return Err(error.into()),
    }))
}

/// Reloads this gateway's configuration from its files. Keys that need a new process keep their values. The audit has what is
/// to change before it is done, and in a further row what became of it, if that is something else.
#[utoipa::path(post, path = "/api/v1/config/reload", tag = "config", request_body = Why, responses((status = OK, description = "What was changed.", body = Report)))]
pub(super) async fn reload(
    State(api): State<Shared>,
    caller: Caller,
    Input(why): Input<Why>,
) -> Result<Json<Report>, ApiError> {
    let author = caller.author(why.reason.as_deref())?;
    let expected = api.reload.compare().await?;
    let number = api.current.load().policy.generation + 1;
    let row = |changes: &Value| audit::of_reload(changes, number, author.clone(), caller.at);
    let announced = audit::changes_of(&expected.changed);
    // First: without its row, nothing is reloaded.
    add(api.store(), row(&announced)).await?;
    let done = api.reload.reload().await;
    let outcome = match &done {
        // The files may have changed meanwhile.
        Ok(report) => audit::changes_of(&report.changed),
        Err(_) => json!({"outcome": "rejected"}),
    };
    if outcome != announced
        && let Err(error) = add(api.store(), row(&outcome)).await
    {
        tracing::warn!(cause = %error.in_short(), %outcome, "the audit lacks a reload's outcome");
    }
    Ok(Json(done?))
}

impl From<ReloadError> for ApiError {
    fn from(error: ReloadError) -> Self {
        match error {
            ReloadError::Rejected(error) => {
                Self::from(Code::ConfigInvalid).member("problems", json!(error.problems))
            }
            ReloadError::Ended => Code::GatewayStopping.into(),
        }
    }
}

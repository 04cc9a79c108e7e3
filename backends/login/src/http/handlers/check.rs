//! `POST` or `GET /check` `token` (`wait`): the status of a polling login. CONTRACT 8.

use std::time::Duration;

use axum::{Json, extract::State};
use serde::Serialize;

use crate::{
    error::LoginError,
    flow::{self, CheckedStatus},
    http::{
        request::{CallingApplication, Parameters},
        views::{LoginResultView, Views},
    },
    service::HandlerContext,
};

/// Maximum of `wait`. CONTRACT 8.
const MAX_WAIT_SECONDS: u64 = 30;

/// The response, always 200 for a known token.
#[derive(Serialize)]
#[serde(bound = "")]
pub(crate) struct CheckResponse<V: Views> {
    status: &'static str,
    /// Seconds until the status changes to `expired`.
    expires_in: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<LoginResultView<V>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// Returns the status; with `wait`, as soon as it changes or the wait has passed.
pub(crate) async fn check<V: Views>(
    State(context): State<HandlerContext>,
    CallingApplication(application): CallingApplication,
    parameters: Parameters,
) -> Result<Json<CheckResponse<V>>, LoginError> {
    let service = &context.service;
    let token = parameters.required("token")?;
    let wait = parameters.number("wait", 0..=MAX_WAIT_SECONDS)?;
    let wait = Duration::from_secs(wait.unwrap_or(0));
    let checked = flow::check(service, token, application.id, wait).await?;
    let now = service.now();
    let response = |status, login, reason| CheckResponse {
        status,
        expires_in: checked.responds_until.seconds_from(now),
        login,
        reason,
    };
    Ok(Json(match checked.status {
        CheckedStatus::Pending => response("pending", None, None),
        CheckedStatus::Complete(result) => {
            response("complete", Some(LoginResultView::new(&result, now)), None)
        }
        CheckedStatus::Failed(reason) => response("failed", None, Some(reason.as_str())),
        CheckedStatus::Expired => response("expired", None, None),
    }))
}

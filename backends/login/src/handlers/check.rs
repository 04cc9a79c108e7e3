//! `POST` or `GET /check` `token` (`wait`): the status of a polling login. CONTRACT 8.

use std::time::Duration;

use axum::{Json, extract::State};
use serde::Serialize;

use crate::{
    error::{LoginError, ParamRule},
    flow::{self, CheckedStatus},
    request::{CallingApplication, Parameters},
    service::HandlerContext,
    views::{LoginResultView, Views},
};

/// Maximum of `wait`. CONTRACT 8.
const MAX_WAIT_SECONDS: u64 = 30;

/// The response, always 200 for a known token.
#[derive(Serialize)]
#[serde(bound = "")]
pub(crate) struct CheckAnswer<V: Views> {
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
) -> Result<Json<CheckAnswer<V>>, LoginError> {
    let service = &context.service;
    let token = parameters.required("token")?;
    let wait = wait(parameters.optional("wait")?)?;
    let checked = flow::check(service, token, application.id, wait).await?;
    let now = service.now();
    let answer = |status, login, reason| CheckAnswer {
        status,
        expires_in: checked.answers_until.seconds_from(now),
        login,
        reason,
    };
    Ok(Json(match checked.status {
        CheckedStatus::Pending => answer("pending", None, None),
        CheckedStatus::Complete(result) => {
            answer("complete", Some(LoginResultView::new(&result, now)), None)
        }
        CheckedStatus::Failed(reason) => answer("failed", None, Some(reason.as_str())),
        CheckedStatus::Expired => answer("expired", None, None),
    }))
}

fn wait(given: Option<&str>) -> Result<Duration, LoginError> {
    let seconds = match given {
        None => Some(0),
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        Some(_) => None,
    };
    let invalid = || LoginError::ParamInvalid {
        name: "wait",
        rule: ParamRule::Values(format!("0–{MAX_WAIT_SECONDS}")),
    };
    seconds
        .filter(|seconds| *seconds <= MAX_WAIT_SECONDS)
        .map(Duration::from_secs)
        .ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_is_0_to_30_seconds() {
        assert_eq!(wait(None).unwrap(), Duration::ZERO);
        assert_eq!(wait(Some("0")).unwrap(), Duration::ZERO);
        assert_eq!(wait(Some("30")).unwrap(), Duration::from_secs(30));
        for bad in ["", "31", "-1", "+1", "1.5", "x", "99999999999999999999"] {
            assert!(wait(Some(bad)).is_err(), "{bad}");
        }
    }
}

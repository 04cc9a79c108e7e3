//! `/check` and `POST /user/login`: the outcome of a login, for the client. CONTRACT 8.

use std::time::Duration;

use axum::{Json, extract::State};
use serde::Serialize;
use signpost_kit::clock::Timestamp;

use crate::{
    error::LoginError,
    flow::{self, CheckedStatus, LoginResult, redeem_ticket, redeem_token},
    http::{
        HandlerContext, Views,
        request::{ClaimedApplication, Parameters},
    },
};

/// The login result of CONTRACT 8, with the account as the version shows it.
#[derive(Serialize)]
#[serde(bound = "")]
pub(crate) struct LoginResultView<V: Views> {
    account: V::Account,
    authorization: String,
    expires_in: u64,
    created: bool,
}

impl<V: Views> LoginResultView<V> {
    pub(crate) fn new(result: &LoginResult, now: Timestamp) -> Self {
        Self {
            account: (&result.account).into(),
            authorization: result.credential.encode().to_string(),
            expires_in: result.expires_at.seconds_from(now),
            created: result.created,
        }
    }
}

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

/// `POST` or `GET /check` `token` (`wait`): returns the status; with `wait`, as soon as it changes or the wait has passed.
pub(crate) async fn check<V: Views>(
    State(context): State<HandlerContext>,
    application: ClaimedApplication,
    parameters: Parameters,
) -> Result<Json<CheckResponse<V>>, LoginError> {
    let service = &context.service;
    let token = parameters.required("token")?;
    let wait = parameters.number("wait", 0..=MAX_WAIT_SECONDS)?;
    let wait = Duration::from_secs(wait.unwrap_or(0));
    let checked = flow::check(service, token, application.id(), wait).await?;
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

/// `POST /user/login` `ticket` or `token`: returns the result, once for a ticket, repeatedly for a token until the outcome expires.
pub(crate) async fn user_login<V: Views>(
    State(context): State<HandlerContext>,
    application: ClaimedApplication,
    parameters: Parameters,
) -> Result<Json<LoginResultView<V>>, LoginError> {
    let service = &context.service;
    let result = match (
        parameters.optional("ticket")?,
        parameters.optional("token")?,
    ) {
        (Some(ticket), None) => redeem_ticket(service, ticket, application.id()).await?,
        (None, Some(token)) => redeem_token(service, token, application.id()).await?,
        (None, None) => return Err(LoginError::ParamMissing { name: "ticket" }),
        (Some(_), Some(_)) => return Err(LoginError::only_one("ticket", "ticket, token")),
    };
    Ok(Json(LoginResultView::new(&result, service.now())))
}

//! `/check` and `POST /user/login`: the outcome of a login, for the client. CONTRACT 8.

use std::time::Duration;

use axum::{extract::State, response::Response};
use signpost_protocol::challenge::Challenge;

use super::json;
use crate::{
    error::LoginError,
    flow::{self, redeem_ticket, redeem_token},
    http::{
        Context, Version,
        request::{ClaimedApplication, Parameters},
    },
};

/// Maximum of `wait`. CONTRACT 8.
pub(super) const MAX_WAIT_SECONDS: u64 = 30;

/// `POST` or `GET /check` `token` (`wait`): returns the status, always 200 for a known token; with `wait`, as soon as it changes or the wait has passed.
pub(crate) async fn check<V: Version>(
    State(context): State<Context>,
    application: ClaimedApplication,
    parameters: Parameters,
) -> Result<Response, LoginError> {
    let service = &context.service;
    let token = parameters.required("token")?;
    let wait = parameters.number("wait", 0..=MAX_WAIT_SECONDS)?;
    let wait = Duration::from_secs(wait.unwrap_or(0));
    let check = flow::check(service, token, application.id(), wait).await?;
    Ok(json(V::check(&check)))
}

/// `POST /user/login` `ticket` or `token`: returns the result, once for a ticket, repeatedly for a token until the outcome expires.
pub(crate) async fn user_login<V: Version>(
    State(context): State<Context>,
    application: ClaimedApplication,
    parameters: Parameters,
) -> Result<Response, LoginError> {
    let service = &context.service;
    let result = match (
        parameters.optional("ticket")?,
        parameters.optional("token")?,
    ) {
        (Some(ticket), None) => {
            let (pattern, parse) = (Challenge::VERIFIER_PATTERN, Challenge::of_verifier);
            let bound = (ticket, parameters.of_form("code_verifier", pattern, parse)?);
            redeem_ticket(service, bound, application.id()).await?
        }
        (None, Some(token)) => redeem_token(service, token, application.id()).await?,
        (None, None) => return Err(LoginError::ParamMissing { name: "ticket" }),
        (Some(_), Some(_)) => return Err(LoginError::only_one("ticket", "ticket, token")),
    };
    Ok(json(V::login_result(&result)))
}

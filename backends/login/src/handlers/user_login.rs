//! `POST /user/login` `ticket` or `token`: the login result. CONTRACT 8.

use axum::{Json, extract::State};

use crate::{
    error::LoginError,
    flow::{redeem_ticket, redeem_token},
    request::{Caller, Parameters},
    service::Serving,
    views::{LoginResultView, Views},
};

/// Hands out the result: for a ticket once, for a token as long as it answers.
pub(crate) async fn user_login<V: Views>(
    State(serving): State<Serving>,
    Caller(application): Caller,
    parameters: Parameters,
) -> Result<Json<LoginResultView<V>>, LoginError> {
    let service = &serving.service;
    let result = match (
        parameters.optional("ticket")?,
        parameters.optional("token")?,
    ) {
        (Some(ticket), None) => redeem_ticket(service, ticket, application.id).await?,
        (None, Some(token)) => redeem_token(service, token, application.id).await?,
        (None, None) => return Err(LoginError::ParamMissing { name: "ticket" }),
        (Some(_), Some(_)) => {
            return Err(LoginError::ParamInvalid {
                name: "ticket",
                allowed: "`ticket` | `token`".to_owned(),
            });
        }
    };
    Ok(Json(LoginResultView::new(&result, service.now())))
}

//! `POST /user/login` `ticket` or `token`: returns the login result. CONTRACT 8.

use axum::{Json, extract::State};

use crate::{
    error::{LoginError, ParamRule},
    flow::{redeem_ticket, redeem_token},
    http::{
        request::{CallingApplication, Parameters},
        views::{LoginResultView, Views},
    },
    service::HandlerContext,
};

/// Returns the result: once for a ticket, repeatedly for a token until the outcome expires.
pub(crate) async fn user_login<V: Views>(
    State(context): State<HandlerContext>,
    CallingApplication(application): CallingApplication,
    parameters: Parameters,
) -> Result<Json<LoginResultView<V>>, LoginError> {
    let service = &context.service;
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
                rule: ParamRule::OnlyOne("ticket, token"),
            });
        }
    };
    Ok(Json(LoginResultView::new(&result, service.now())))
}

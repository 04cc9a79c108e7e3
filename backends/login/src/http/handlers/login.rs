//! `GET /login`: the parameters decide which of its steps is meant. CONTRACT 8.

use axum::{extract::State, response::Response};
use http::HeaderMap;

use super::{
    begin_redirect::begin_redirect, callback::callback, confirm::confirm, show_page::show_page,
};
use crate::{
    error::{LoginError, ParamRule},
    flow::{BrowserRequest, Callback, Grant},
    http::{
        request::{NamedApplication, Parameters, RequestInfo},
        views::Views,
    },
    service::HandlerContext,
};

/// Begins a redirect login, shows a polling login's page, handles its button, or handles the callback.
pub(crate) async fn login<V: Views>(
    State(context): State<HandlerContext>,
    info: RequestInfo,
    NamedApplication(application): NamedApplication,
    headers: HeaderMap,
    parameters: Parameters,
) -> Result<Response, LoginError> {
    let Some(state) = parameters.optional("state")? else {
        return begin_redirect(&context, application, &parameters, &headers).await;
    };
    let request = BrowserRequest {
        version: &context.version,
        state,
        application,
        client: info.client_address,
        headers: &headers,
    };
    let code = parameters.optional("code")?;
    let error = parameters.optional("error")?;
    let confirmed = parameters.optional("confirm")?;
    let iss = parameters.optional("iss")?;
    match (code, error, confirmed) {
        (None, None, None) => show_page(&context, &info, &request).await,
        (None, None, Some(confirmed)) => confirm(&context, &request, confirmed).await,
        (Some(code), None, None) => {
            callback::<V>(
                &context,
                &info,
                &request,
                &Callback {
                    grant: Grant::Code(code.to_owned()),
                    iss,
                },
            )
            .await
        }
        (None, Some(error), None) => {
            callback::<V>(
                &context,
                &info,
                &request,
                &Callback {
                    grant: Grant::Error(error.to_owned()),
                    iss,
                },
            )
            .await
        }
        _ => {
            // The gateway rejects this in unsigned requests; in a signed one it is a mistake of the application.
            Err(LoginError::ParamInvalid {
                name: "state",
                rule: ParamRule::OnlyOne("code, error, confirm"),
            })
        }
    }
}

//! `GET /login` in its five shapes, told apart by the parameters. CONTRACT 8.

use axum::{extract::State, response::Response};
use http::HeaderMap;

use super::{
    begin_redirect::begin_redirect, callback::callback, confirm::confirm, show_page::show_page,
};
use crate::{
    error::LoginError,
    flow::{Callback, Grant, Visit},
    request::{NamedApplication, Parameters, RequestInfo},
    service::Serving,
    views::Views,
};

/// A browser's navigation: it begins a redirect login, opens a polling login's page, presses its button,
/// or comes back from the provider.
pub(crate) async fn login<V: Views>(
    State(serving): State<Serving>,
    info: RequestInfo,
    NamedApplication(application): NamedApplication,
    headers: HeaderMap,
    parameters: Parameters,
) -> Result<Response, LoginError> {
    let Some(state) = parameters.optional("state")? else {
        return begin_redirect(&serving, application, &parameters, &headers).await;
    };
    let visit = Visit {
        version: &serving.version,
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
        (None, None, None) => show_page(&serving, &info, &visit).await,
        (None, None, Some(confirmed)) => confirm(&serving, &visit, confirmed).await,
        (Some(code), None, None) => {
            callback::<V>(
                &serving,
                &info,
                &visit,
                &Callback {
                    grant: Grant::Code(code.to_owned()),
                    iss,
                },
            )
            .await
        }
        (None, Some(error), None) => {
            callback::<V>(
                &serving,
                &info,
                &visit,
                &Callback {
                    grant: Grant::Error(error.to_owned()),
                    iss,
                },
            )
            .await
        }
        _ => {
            // The gateway stops an unsigned one; a signed one is the application's mistake.
            Err(LoginError::ParamInvalid {
                name: "state",
                allowed: "`code` | `error` | `confirm`".to_owned(),
            })
        }
    }
}

//! `GET /login` (`provider`, `return_to`): a redirect login begins. CONTRACT 8.

use axum::response::Response;
use gateway_protocol::app::AppId;

use super::sent_on;
use crate::{
    error::LoginError,
    flow::{self, Beginning},
    request::{Parameters, RequestInfo, application_of},
    router::Backend,
};

/// Sends the browser to the provider.
pub(super) async fn begin_redirect(
    backend: &Backend,
    info: RequestInfo,
    application: Option<AppId>,
    parameters: &Parameters,
) -> Result<Response, LoginError> {
    let application = application_of(backend, application).await?;
    let beginning = Beginning {
        version: &backend.version,
        application: &application,
        client_address: info.client_address,
        provider: parameters.optional("provider")?,
    };
    sent_on(
        flow::begin_redirect(
            &backend.service,
            beginning,
            parameters.optional("return_to")?,
        )
        .await?,
    )
}

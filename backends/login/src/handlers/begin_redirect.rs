//! `GET /login` (`provider`, `return_to`): a redirect login begins. CONTRACT 8.

use axum::response::Response;
use gateway_protocol::app::AppId;

use super::sent_on;
use crate::{
    error::LoginError,
    flow::{self, Beginning},
    request::{Parameters, application_of},
    service::Serving,
};

/// Sends the browser to the provider.
pub(super) async fn begin_redirect(
    serving: &Serving,
    application: Option<AppId>,
    parameters: &Parameters,
) -> Result<Response, LoginError> {
    let application = application_of(serving, application).await?;
    let beginning = Beginning {
        version: &serving.version,
        application: &application,
        provider: parameters.optional("provider")?,
    };
    sent_on(
        flow::begin_redirect(
            &serving.service,
            beginning,
            parameters.optional("return_to")?,
        )
        .await?,
    )
}

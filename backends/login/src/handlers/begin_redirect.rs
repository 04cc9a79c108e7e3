//! `GET /login` (`provider`, `return_to`): a redirect login begins. CONTRACT 8.

use axum::response::Response;
use gateway_protocol::app::AppId;
use http::{HeaderMap, header::SET_COOKIE};

use super::sent_on;
use crate::{
    error::LoginError,
    flow::{self, Beginning},
    logins::remove_oldest,
    request::{Parameters, application_of},
    service::Serving,
};

/// Sends the browser to the provider.
pub(super) async fn begin_redirect(
    serving: &Serving,
    application: Option<AppId>,
    parameters: &Parameters,
    headers: &HeaderMap,
) -> Result<Response, LoginError> {
    let application = application_of(serving, application).await?;
    let beginning = Beginning {
        version: &serving.version,
        application: &application,
        provider: parameters.optional("provider")?,
    };
    let return_to = parameters.optional("return_to")?;
    let begun = flow::begin_redirect(&serving.service, beginning, return_to).await?;
    let mut answer = sent_on(begun)?;
    for removal in remove_oldest(headers, serving.service.config.public_url()) {
        answer.headers_mut().append(SET_COOKIE, removal);
    }
    Ok(answer)
}

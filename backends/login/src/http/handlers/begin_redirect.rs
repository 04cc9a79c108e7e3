//! `GET /login` (`provider`, `return_to`): begins a redirect login. CONTRACT 8.

use axum::response::Response;
use http::{HeaderMap, header::SET_COOKIE};
use signpost_protocol::app::AppId;

use super::redirect_to_provider;
use crate::{
    error::LoginError,
    flow::{self, LoginRequest},
    http::request::{Parameters, required_application},
    records::logins::remove_oldest,
    service::HandlerContext,
};

/// Redirects the browser to the provider.
pub(super) async fn begin_redirect(
    context: &HandlerContext,
    application: Option<AppId>,
    parameters: &Parameters,
    headers: &HeaderMap,
) -> Result<Response, LoginError> {
    let application = required_application(context, application).await?;
    let login_request = LoginRequest {
        version: &context.version,
        application: &application,
        provider: parameters.optional("provider")?,
    };
    let return_to = parameters.optional("return_to")?;
    let begun = flow::begin_redirect(&context.service, login_request, return_to).await?;
    let mut response = redirect_to_provider(begun)?;
    for removal in remove_oldest(headers, &context.service.config.public_url) {
        response.headers_mut().append(SET_COOKIE, removal);
    }
    Ok(response)
}

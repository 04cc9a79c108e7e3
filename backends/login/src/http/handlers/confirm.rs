//! `GET /login?state=…&confirm=…`: the button of a polling login's page. CONTRACT 8.

use axum::response::Response;

use super::redirect_to_provider;
use crate::{
    error::LoginError,
    flow::{self, BrowserRequest},
    service::HandlerContext,
};

/// Redirects the browser to the provider.
pub(super) async fn confirm(
    context: &HandlerContext,
    request: &BrowserRequest<'_>,
    confirm: &str,
) -> Result<Response, LoginError> {
    redirect_to_provider(flow::confirm(&context.service, request, confirm).await?)
}

//! `GET /login?state=…`: shows a polling login's page. CONTRACT 8.

use axum::response::{IntoResponse, Response};

use super::{cookie, redirect_to_provider};
use crate::{
    error::LoginError,
    flow::{self, BrowserRequest, PageOrRedirect},
    http::{pages, request::RequestInfo},
    service::HandlerContext,
};

/// Shows the page; with `polling.confirm = false`, redirects to the provider instead.
pub(super) async fn show_page(
    context: &HandlerContext,
    info: &RequestInfo,
    request: &BrowserRequest<'_>,
) -> Result<Response, LoginError> {
    match flow::show_page(&context.service, request).await? {
        PageOrRedirect::Page(page) => {
            let response = pages::confirm(&page, info.page_language);
            Ok((cookie(page.set_cookie), response).into_response())
        }
        PageOrRedirect::Redirect(redirect) => redirect_to_provider(redirect),
    }
}

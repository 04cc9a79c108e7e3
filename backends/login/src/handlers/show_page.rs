//! `GET /login?state=…`: a polling login's page. CONTRACT 8.

use axum::response::{IntoResponse, Response};

use super::{cookie, sent_on};
use crate::{
    error::LoginError,
    flow::{self, Shown, Visit},
    pages,
    request::RequestInfo,
    service::Serving,
};

/// Shows the page that asks, or goes on at once where that is configured.
pub(super) async fn show_page(
    serving: &Serving,
    info: &RequestInfo,
    visit: &Visit<'_>,
) -> Result<Response, LoginError> {
    match flow::show_page(&serving.service, visit).await? {
        Shown::Page(page) => {
            let shown = pages::confirm(&page, info.page_language);
            Ok((cookie(page.set_cookie), shown).into_response())
        }
        Shown::SentOn(onward) => sent_on(onward),
    }
}

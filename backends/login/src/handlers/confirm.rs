//! `GET /login?state=…&confirm=…`: the button of a polling login's page. CONTRACT 8.

use axum::response::Response;

use super::sent_on;
use crate::{
    error::LoginError,
    flow::{self, Visit},
    service::Serving,
};

/// Sends the browser to the provider.
pub(super) async fn confirm(
    serving: &Serving,
    visit: &Visit<'_>,
    confirm: &str,
) -> Result<Response, LoginError> {
    sent_on(flow::confirm(&serving.service, visit, confirm).await?)
}

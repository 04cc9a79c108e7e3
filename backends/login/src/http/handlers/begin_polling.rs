//! `POST /login` (`provider`): begins a polling login. CONTRACT 8.

use axum::{Json, extract::State};
use serde::Serialize;

use crate::{
    error::LoginError,
    flow::{self, LoginRequest},
    http::request::{CallingApplication, Parameters},
    service::HandlerContext,
};

/// The response: the client keeps the token, shows the code, and opens the URL in a browser.
#[derive(Serialize)]
pub(crate) struct PollingLogin {
    token: String,
    authorize_url: String,
    user_code: String,
    /// Seconds until the login expires.
    expires_in: u64,
    /// Seconds to wait between two checks without `wait`.
    interval: u64,
}

/// Begins the login. No other response contains the token.
pub(crate) async fn begin_polling(
    State(context): State<HandlerContext>,
    CallingApplication(application): CallingApplication,
    parameters: Parameters,
) -> Result<Json<PollingLogin>, LoginError> {
    let service = &context.service;
    let login_request = LoginRequest {
        version: &context.version,
        application: &application,
        provider: parameters.optional("provider")?,
    };
    let begun = flow::begin_polling(service, login_request).await?;
    Ok(Json(PollingLogin {
        token: begun.token.as_str().to_owned(),
        authorize_url: service.config.public_url.page(&begun.token.state()).into(),
        user_code: begun.user_code.to_string(),
        expires_in: begun.expires_at.seconds_from(service.now()),
        interval: service.config.polling.interval.as_secs(),
    }))
}

//! `POST /login` (`provider`): a polling login begins. CONTRACT 8.

use axum::{Json, extract::State};
use serde::Serialize;

use crate::{
    error::LoginError,
    flow::{self, Beginning},
    request::{Caller, Parameters},
    service::Serving,
};

/// What the client keeps, shows and opens.
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

/// Hands out the token, the only time that it leaves.
pub(crate) async fn begin_polling(
    State(serving): State<Serving>,
    Caller(application): Caller,
    parameters: Parameters,
) -> Result<Json<PollingLogin>, LoginError> {
    let service = &serving.service;
    let beginning = Beginning {
        version: &serving.version,
        application: &application,
        provider: parameters.optional("provider")?,
    };
    let begun = flow::begin_polling(service, beginning).await?;
    Ok(Json(PollingLogin {
        token: begun.token.as_str().to_owned(),
        authorize_url: service
            .config
            .public_url()
            .page(&begun.token.state())
            .into(),
        user_code: begun.user_code.to_string(),
        expires_in: begun.expires_at.seconds_from(service.now()),
        interval: service.config.polling().interval.as_secs(),
    }))
}

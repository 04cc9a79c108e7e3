//! `POST /event/send` `event` (`data`): stores an event of the logged-in user. CONTRACT 8.

use axum::{Json, extract::State};
use serde::Serialize;
use signpost_kit::clock::Timestamp;

use crate::{
    error::{LoginError, ParamRule},
    http::request::{AuthenticatedUser, Parameters},
    records::events::{EventName, NewEvent},
    service::HandlerContext,
};

/// Limit of `data`. CONTRACT 8.
const MAX_DATA_BYTES: usize = 4096;

/// The response.
#[derive(Serialize)]
pub(crate) struct StoredEvent {
    id: i64,
    event: String,
    received_at: Timestamp,
}

/// Stores the event for the user's account.
pub(crate) async fn event_send(
    State(context): State<HandlerContext>,
    user: AuthenticatedUser,
    parameters: Parameters,
) -> Result<Json<StoredEvent>, LoginError> {
    let name: EventName =
        parameters
            .required("event")?
            .parse()
            .map_err(|_| LoginError::ParamInvalid {
                name: "event",
                rule: ParamRule::Values("[a-z0-9_.]{1,64}".to_owned()),
            })?;
    let data = parameters.optional("data")?;
    // Postgres cannot store U+0000 in a text. It is rejected with SQLite too, so that both stores behave alike.
    if data.is_some_and(|data| data.len() > MAX_DATA_BYTES || data.contains('\0')) {
        return Err(LoginError::ParamInvalid {
            name: "data",
            rule: ParamRule::MaxBytes(MAX_DATA_BYTES),
        });
    }
    let service = &context.service;
    let received_at = service.now();
    let event = NewEvent {
        account: user.logged_in.account.id,
        application: user.logged_in.application,
        name: name.clone(),
        data: data.map(str::to_owned),
        received_at,
    };
    let id = service.state.events.insert(event).await?;
    Ok(Json(StoredEvent {
        id,
        event: name.as_str().to_owned(),
        received_at,
    }))
}

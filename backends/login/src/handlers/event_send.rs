//! `POST /event/send` `event` (`data`): an event of the logged-in person is stored. CONTRACT 8.

use axum::{Json, extract::State};
use serde::Serialize;
use signpost_kit::clock::Timestamp;

use crate::{
    error::LoginError,
    events::{EventName, NewEvent},
    request::{Parameters, Person},
    service::Serving,
};

/// CONTRACT 8.
const MAX_DATA_BYTES: usize = 4096;

/// What was stored.
#[derive(Serialize)]
pub(crate) struct StoredEvent {
    id: i64,
    event: String,
    received_at: Timestamp,
}

/// Stores the event with the account.
pub(crate) async fn event_send(
    State(serving): State<Serving>,
    person: Person,
    parameters: Parameters,
) -> Result<Json<StoredEvent>, LoginError> {
    let name: EventName =
        parameters
            .required("event")?
            .parse()
            .map_err(|_| LoginError::ParamInvalid {
                name: "event",
                allowed: "[a-z0-9_.]{1,64}".to_owned(),
            })?;
    let data = parameters.optional("data")?;
    // Postgres' texts cannot hold U+0000; the answer is the same whichever store there is.
    if data.is_some_and(|data| data.len() > MAX_DATA_BYTES || data.contains('\0')) {
        return Err(LoginError::ParamInvalid {
            name: "data",
            allowed: format!("≤ {MAX_DATA_BYTES} B, ∌ U+0000"),
        });
    }
    let service = &serving.service;
    let received_at = service.now();
    let event = NewEvent {
        account: person.logged_in.account.id,
        application: person.logged_in.application,
        name: name.clone(),
        data: data.map(str::to_owned),
        received_at,
    };
    let id = service.state.events.keep(event).await?;
    Ok(Json(StoredEvent {
        id,
        event: name.as_str().to_owned(),
        received_at,
    }))
}

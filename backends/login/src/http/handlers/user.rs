//! The endpoints of a logged-in user. CONTRACT 8.

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::{Map, Value};
use signpost_kit::clock::Timestamp;

use crate::{
    error::{LoginError, ParamRule},
    http::{
        HandlerContext, Views,
        request::{AuthenticatedUser, Parameters},
    },
    records::events::{EventName, NewEvent},
};

/// `GET /user`: returns the account in the format of the version.
pub(crate) async fn user<V: Views>(user: AuthenticatedUser) -> Json<V::Account> {
    Json(user.account().into())
}

/// `POST /user/logout`: revokes the request's credential in all processes.
pub(crate) async fn user_logout(
    State(context): State<HandlerContext>,
    user: AuthenticatedUser,
) -> Result<Json<Map<String, Value>>, LoginError> {
    let service = &context.service;
    let credentials = &service.state.credentials;
    credentials.revoke(&user.credential, service.now()).await?;
    Ok(Json(Map::new()))
}

/// Limit of `data`. CONTRACT 8.
const MAX_DATA_BYTES: usize = 4096;

/// The response.
#[derive(Serialize)]
pub(crate) struct StoredEvent {
    id: i64,
    event: String,
    received_at: Timestamp,
}

/// `POST /event/send` `event` (`data`): stores the event for the user's account.
pub(crate) async fn event_send(
    State(context): State<HandlerContext>,
    user: AuthenticatedUser,
    parameters: Parameters,
) -> Result<Json<StoredEvent>, LoginError> {
    let invalid = |name, rule| LoginError::ParamInvalid { name, rule };
    let allowed = || ParamRule::Values("[a-z0-9_.]{1,64}".to_owned());
    let name = parameters.required("event")?.parse::<EventName>();
    let name = name.map_err(|_| invalid("event", allowed()))?;
    let data = parameters.optional("data")?;
    // Postgres cannot store U+0000 in a text. It is rejected with SQLite too, so that both stores behave alike.
    if data.is_some_and(|data| data.len() > MAX_DATA_BYTES || data.contains('\0')) {
        return Err(invalid("data", ParamRule::MaxBytes(MAX_DATA_BYTES)));
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

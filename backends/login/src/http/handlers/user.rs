//! The endpoints of a logged-in user. CONTRACT 8.

use axum::{extract::State, response::Response};

use super::json;
use crate::{
    error::{LoginError, ParamRule},
    http::{
        Context, Version,
        request::{AuthenticatedUser, Parameters},
        views::SentEvent,
    },
    records::events::{EventName, NewEvent},
};

/// `GET /user`: returns the account in the format of the version.
pub(crate) async fn user<V: Version>(user: AuthenticatedUser) -> Response {
    json(V::account(user.account()))
}

/// `POST /user/logout`: revokes the request's credential in all processes.
pub(crate) async fn user_logout<V: Version>(
    State(context): State<Context>,
    user: AuthenticatedUser,
) -> Result<Response, LoginError> {
    let service = &context.service;
    let credentials = &service.state.credentials;
    credentials.revoke(&user.credential, service.now()).await?;
    Ok(json(V::logged_out()))
}

/// Limit of `data`. CONTRACT 8.
const MAX_DATA_BYTES: usize = 4096;

/// `POST /event/send` `event` (`data`): stores the event for the user's account.
pub(crate) async fn event_send<V: Version>(
    State(context): State<Context>,
    user: AuthenticatedUser,
    parameters: Parameters,
) -> Result<Response, LoginError> {
    let name = parameters.required("event")?.parse::<EventName>();
    let name = name.map_err(|_| LoginError::ParamInvalid {
        name: "event",
        rule: ParamRule::Values("[a-z0-9_.]{1,64}".to_owned()),
    })?;
    let data = parameters.text("data", MAX_DATA_BYTES)?;
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
    Ok(json(V::sent_event(&SentEvent {
        id,
        event: name.as_str().to_owned(),
        received_at,
    })))
}

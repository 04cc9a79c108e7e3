//! The endpoints of a logged-in user. CONTRACT 8.

use axum::{extract::State, response::Response};

use super::json;
use crate::{
    error::{LoginError, ParamRule},
    http::{
        Context, Version,
        request::{AuthenticatedUser, Parameters},
        views::{RenewedCredential, SentEvent},
    },
    records::events::{EventName, IdempotencyKey, NewEvent},
};

/// `GET /user`: returns the account in the format of the version.
pub(crate) async fn user<V: Version>(user: AuthenticatedUser) -> Response {
    json(V::account(user.account()))
}

/// `POST /user/renew`: replaces the request's credential by a new one, which has the whole lifetime.
pub(crate) async fn user_renew<V: Version>(
    State(context): State<Context>,
    user: AuthenticatedUser,
) -> Result<Response, LoginError> {
    let service = &context.service;
    let now = service.now();
    let expires_at = now.plus(service.config.lifetimes.credential);
    let credentials = &service.state.credentials;
    let renewed = credentials.renew(&user.credential, expires_at, now).await?;
    let renewed = renewed.ok_or(LoginError::AuthorizationInvalid)?;
    Ok(json(V::renewed(&RenewedCredential {
        authorization: renewed.encode().to_string(),
        expires_in: expires_at.seconds_from(now),
    })))
}

/// `POST /user/logout`: revokes the request's credential, and what it was renewed to or from, in all processes.
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

/// `POST /event/send` `event` (`data`, `idempotency_key`): stores the event for the user's account, once for each key.
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
    let key = parameters.optional("idempotency_key")?;
    let key = key.map(str::parse::<IdempotencyKey>).transpose();
    let idempotency_key = key.map_err(|_| LoginError::ParamInvalid {
        name: "idempotency_key",
        rule: ParamRule::Values("[A-Za-z0-9._-]{1,64}".to_owned()),
    })?;
    let service = &context.service;
    let event = NewEvent {
        account: user.logged_in.account.id,
        application: user.logged_in.application,
        name,
        data: data.map(str::to_owned),
        idempotency_key,
        received_at: service.now(),
    };
    let stored = service.state.events.insert(&event).await?;
    if (&stored.name, &stored.data) != (&event.name, &event.data) {
        return Err(LoginError::IdempotencyConflict);
    }
    Ok(json(V::sent_event(&SentEvent {
        id: stored.id,
        event: stored.name.as_str().to_owned(),
        received_at: stored.received_at,
    })))
}

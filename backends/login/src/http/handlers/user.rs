//! The endpoints of a logged-in user. CONTRACT 8.

use axum::{extract::State, response::Response};
use signpost_kit::limits::retry_after_seconds;
use tracing::Span;

use super::json;
use crate::{
    error::LoginError,
    http::{
        Context, Version,
        request::{AuthenticatedUser, Parameters, SentCredential},
        views::{RenewedCredential, SentEvent},
    },
    records::{
        credentials::Renewed,
        events::{EventName, IdempotencyKey, NewEvent},
    },
};

/// `GET /user`: returns the account in the format of the version.
pub(crate) async fn user<V: Version>(user: AuthenticatedUser) -> Response {
    json(V::account(user.account()))
}

/// `POST /user/renew`: replaces the request's credential by a new one. A repetition returns the same one.
pub(crate) async fn user_renew<V: Version>(
    State(context): State<Context>,
    user: AuthenticatedUser,
) -> Result<Response, LoginError> {
    let service = &context.service;
    let now = service.now();
    let (credentials, lifetimes) = (&service.state.credentials, &service.config.lifetimes);
    match credentials.renew(&user.credential, lifetimes, now).await? {
        Some(Renewed::To(new, expires_at)) => Ok(json(V::renewed(RenewedCredential {
            authorization: new.encode().to_string(),
            expires_in: expires_at.seconds_from(now),
        }))),
        Some(Renewed::TooSoon(wait)) => Err(LoginError::RateLimited {
            limit: "renewals",
            retry_after: retry_after_seconds(wait),
        }),
        None => Err(LoginError::AuthorizationInvalid),
    }
}

/// `POST /user/logout`: revokes all credentials of the login in all processes. The request's may have ended by a
/// renewal: its owner can end the login of whoever renewed it.
pub(crate) async fn user_logout<V: Version>(
    State(context): State<Context>,
    SentCredential {
        credential,
        application,
    }: SentCredential,
) -> Result<Response, LoginError> {
    let service = &context.service;
    let credentials = &service.state.credentials;
    let revoked = credentials.revoke(&credential, application, service.now());
    let account = revoked.await?.ok_or(LoginError::AuthorizationInvalid)?;
    Span::current().record("account.id", account.get());
    Ok(json(V::logged_out()))
}

/// Limit of `data`. CONTRACT 8.
pub(super) const MAX_DATA_BYTES: usize = 4096;

/// `POST /event/send` `event` (`data`, `idempotency_key`): stores the event for the user's account, once for each key.
pub(crate) async fn event_send<V: Version>(
    State(context): State<Context>,
    user: AuthenticatedUser,
    parameters: Parameters,
) -> Result<Response, LoginError> {
    let name = parameters.of_form("event", EventName::PATTERN, |text| text.parse().ok())?;
    let name = name.ok_or(LoginError::ParamMissing { name: "event" })?;
    let data = parameters.text("data", MAX_DATA_BYTES)?;
    let pattern = IdempotencyKey::PATTERN;
    let idempotency_key =
        parameters.of_form("idempotency_key", pattern, |text| text.parse().ok())?;
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
    // The key was used before, with other content. What is stored stays: the first request has its response already.
    if (&stored.name, &stored.data) != (&event.name, &event.data) {
        return Err(LoginError::IdempotencyConflict);
    }
    Ok(json(V::sent_event(SentEvent {
        id: stored.id,
        event: stored.name.as_str().to_owned(),
        received_at: stored.received_at,
    })))
}

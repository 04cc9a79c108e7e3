//! The logged-in user of a request.

use std::sync::Arc;

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use http::request::Parts;
use signpost_kit::clock::Timestamp;
use signpost_protocol::app::AppId;
use tracing::Span;

use super::ClaimedApplication;
use crate::{
    error::LoginError,
    http::{Context, HandlerContext, Version},
    records::{
        accounts::Account,
        credentials::{Credential, CredentialClaims},
        events::{EventCursor, EventPage, EventQuery},
    },
    service::Service,
};

/// A valid credential, and what it proves. Extraction, which checks the credential, is the only way to create one.
///
/// As `AuthenticatedUser` it is required: 401 `authorization_missing` without a credential, 401 `authorization_malformed`
/// with a value that is none, 401 `authorization_invalid` with one that is unknown, expired, revoked, or another
/// application's. As `Option<AuthenticatedUser>` it is `None` without a credential only; a wrong one is the same 401. 503
/// `store_unavailable` if it cannot be checked.
pub struct AuthenticatedUser {
    pub(crate) logged_in: Arc<CredentialClaims>,
    pub(crate) credential: Credential,
}

impl AuthenticatedUser {
    /// The user's account.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.logged_in.account
    }

    /// The application that the user logged in to, which is the request's. The credential proves it, even if the
    /// request is unsigned.
    #[must_use]
    pub fn application(&self) -> AppId {
        self.logged_in.application
    }

    /// Returns a page of the events that the user's application has reported about the user, the newest first.
    ///
    /// `before` is [`EventPage::next`] of the page before, `limit` at most [`EventPage::MAX_EVENTS`].
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub async fn events(
        &self,
        service: &Service,
        before: Option<EventCursor>,
        limit: u64,
    ) -> Result<EventPage, LoginError> {
        let query = EventQuery {
            account: self.account().id,
            application: self.application(),
            before,
            limit,
        };
        Ok(EventPage::read(&service.state.events, query).await?)
    }

    /// When the login ends, unless a logout ends it before.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.logged_in.expires_at
    }
}

impl<V: Version> OptionalFromRequestParts<HandlerContext<V>> for AuthenticatedUser {
    type Rejection = LoginError;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HandlerContext<V>,
    ) -> Result<Option<Self>, LoginError> {
        match Self::read(parts, &context.shared).await {
            Ok(user) => Ok(Some(user)),
            Err(LoginError::AuthorizationMissing) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<V: Version> FromRequestParts<HandlerContext<V>> for AuthenticatedUser {
    type Rejection = LoginError;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HandlerContext<V>,
    ) -> Result<Self, LoginError> {
        Self::read(parts, &context.shared).await
    }
}

impl AuthenticatedUser {
    async fn read(parts: &Parts, context: &Context) -> Result<Self, LoginError> {
        let sent = SentCredential::read(parts, context).await?;
        let service = &context.service;
        let (credentials, now) = (&service.state.credentials, service.now());
        let logged_in = credentials.check(&sent.credential, sent.application, now);
        let logged_in = logged_in.await?.ok_or(LoginError::AuthorizationInvalid)?;
        Span::current().record("account.id", logged_in.account.id.get());
        Ok(Self {
            logged_in,
            credential: sent.credential,
        })
    }
}

/// The credential of a request, which may be invalid, and the application that sent it.
pub(crate) struct SentCredential {
    pub(crate) credential: Credential,
    pub(crate) application: AppId,
}

impl<V: Version> FromRequestParts<HandlerContext<V>> for SentCredential {
    type Rejection = LoginError;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HandlerContext<V>,
    ) -> Result<Self, LoginError> {
        Self::read(parts, &context.shared).await
    }
}

impl SentCredential {
    async fn read(parts: &Parts, context: &Context) -> Result<Self, LoginError> {
        let application = ClaimedApplication::read(parts, context).await?;
        let service = &context.service;
        let name = &service.config.headers.authorization;
        let mut values = parts.headers.get_all(name).into_iter();
        let value = values.next().ok_or(LoginError::AuthorizationMissing)?;
        // A proxy in between may have looked at the other one.
        if values.next().is_some() {
            let name = service.config.headers.spelled(name);
            return Err(LoginError::HeaderDuplicated { name });
        }
        let credential = Credential::try_from(value.as_bytes())
            .map_err(|_| LoginError::AuthorizationMalformed)?;
        Ok(Self {
            credential,
            application: application.id(),
        })
    }
}

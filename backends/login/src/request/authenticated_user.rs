//! The logged-in user of a request.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use tracing::Span;

use super::CallingApplication;
use crate::{
    credentials::{Credential, CredentialClaims},
    error::LoginError,
    service::HandlerContext,
};

/// A valid credential, and what it proves. Extraction, which checks the credential, is the only way to create one.
pub(crate) struct AuthenticatedUser {
    pub(crate) logged_in: Arc<CredentialClaims>,
    pub(crate) credential: Credential,
}

impl FromRequestParts<HandlerContext> for AuthenticatedUser {
    type Rejection = LoginError;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HandlerContext,
    ) -> Result<Self, LoginError> {
        let CallingApplication(application) =
            CallingApplication::from_request_parts(parts, context).await?;
        let service = &context.service;
        let name = service.config.headers().authorization();
        let mut values = parts.headers.get_all(name).into_iter();
        let value = match (values.next(), values.next()) {
            (None, _) => return Err(LoginError::AuthorizationMissing),
            (Some(value), None) => value,
            (Some(_), Some(_)) => {
                return Err(LoginError::HeaderDuplicated {
                    name: service.config.headers().spelled(name),
                });
            }
        };
        let credential =
            Credential::try_from(value.as_bytes()).map_err(|_| LoginError::AuthorizationInvalid)?;
        let logged_in = service
            .state
            .credentials
            .check(&credential, application.id, service.now())
            .await?;
        let logged_in = logged_in.ok_or(LoginError::AuthorizationInvalid)?;
        Span::current().record("account.id", logged_in.account.id.get());
        Ok(Self {
            logged_in,
            credential,
        })
    }
}

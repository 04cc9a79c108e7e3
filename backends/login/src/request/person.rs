//! The person whose credential a request carries.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use tracing::Span;

use super::Caller;
use crate::{
    credentials::{Credential, LoggedIn},
    error::LoginError,
    service::Serving,
};

/// A checked credential, and what it proves. There is no other way to make one.
pub(crate) struct Person {
    pub(crate) logged_in: Arc<LoggedIn>,
    pub(crate) credential: Credential,
}

impl FromRequestParts<Serving> for Person {
    type Rejection = LoginError;

    async fn from_request_parts(parts: &mut Parts, serving: &Serving) -> Result<Self, LoginError> {
        let Caller(application) = Caller::from_request_parts(parts, serving).await?;
        let service = &serving.service;
        let name = service.config.headers().authorization();
        let mut values = parts.headers.get_all(name).into_iter();
        let value = match (values.next(), values.next()) {
            (None, _) => return Err(LoginError::AuthorizationMissing),
            (Some(value), None) => value,
            (Some(_), Some(_)) => {
                return Err(LoginError::HeaderDuplicated {
                    name: name.to_string(),
                });
            }
        };
        let credential: Credential = value
            .to_str()
            .ok()
            .and_then(|value| value.parse().ok())
            .ok_or(LoginError::AuthorizationInvalid)?;
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

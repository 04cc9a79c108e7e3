//! The application that a request is for, as the gateway says.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use gateway_protocol::{app::AppId, header::X_GATEWAY_APP_ID};
use http::request::Parts;

use crate::{applications::Application, config::Gateway, error::LoginError, service::Serving};

/// The application of a request that must be some application's.
pub(crate) struct Caller(pub(crate) Arc<Application>);

/// The application that the gateway names; on the unsigned way in it names none.
pub(crate) struct NamedApplication(pub(crate) Option<AppId>);

impl FromRequestParts<Serving> for NamedApplication {
    type Rejection = LoginError;

    async fn from_request_parts(parts: &mut Parts, serving: &Serving) -> Result<Self, LoginError> {
        if matches!(serving.service.config.gateway(), Gateway::Absent) {
            return Ok(Self(None));
        }
        let mut named = parts.headers.get_all(X_GATEWAY_APP_ID).into_iter();
        match (named.next(), named.next()) {
            (None, _) => Ok(Self(None)),
            (Some(id), None) => {
                let id = id
                    .to_str()
                    .ok()
                    .and_then(|id| id.parse().ok())
                    .map(AppId::new);
                id.map(|id| Self(Some(id)))
                    .ok_or(LoginError::GatewayRequired)
            }
            (Some(_), Some(_)) => Err(LoginError::GatewayRequired),
        }
    }
}

impl FromRequestParts<Serving> for Caller {
    type Rejection = LoginError;

    async fn from_request_parts(parts: &mut Parts, serving: &Serving) -> Result<Self, LoginError> {
        let NamedApplication(named) = NamedApplication::from_request_parts(parts, serving).await?;
        application_of(serving, named).await.map(Self)
    }
}

/// The application of a request for which the gateway named this one, or none.
pub(crate) async fn application_of(
    serving: &Serving,
    named: Option<AppId>,
) -> Result<Arc<Application>, LoginError> {
    let service = &serving.service;
    let id = match service.config.gateway() {
        Gateway::Absent => AppId::SINGLE,
        Gateway::Secret(_) | Gateway::Loopback => named.ok_or(LoginError::GatewayRequired)?,
    };
    let application = service
        .application(id)
        .await?
        .ok_or(LoginError::AppNotFound)?;
    if application.is_active {
        Ok(application)
    } else {
        Err(LoginError::AppDisabled)
    }
}

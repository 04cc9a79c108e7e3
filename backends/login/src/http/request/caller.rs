//! The application of a request, as the gateway names it.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use signpost_protocol::{app::AppId, header::X_GATEWAY_APP_ID};

use crate::{
    config::Gateway, error::LoginError, records::applications::Application, service::HandlerContext,
};

/// The application of a request that requires one.
pub(crate) struct CallingApplication(pub(crate) Arc<Application>);

/// The application that the gateway names; `None` for an unsigned request.
pub(crate) struct NamedApplication(pub(crate) Option<AppId>);

impl FromRequestParts<HandlerContext> for NamedApplication {
    type Rejection = LoginError;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HandlerContext,
    ) -> Result<Self, LoginError> {
        if matches!(context.service.config.gateway, Gateway::Absent) {
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

impl FromRequestParts<HandlerContext> for CallingApplication {
    type Rejection = LoginError;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HandlerContext,
    ) -> Result<Self, LoginError> {
        let NamedApplication(named) = NamedApplication::from_request_parts(parts, context).await?;
        required_application(context, named).await.map(Self)
    }
}

/// Returns the application that the gateway named, or the single application if there is no gateway.
pub(crate) async fn required_application(
    context: &HandlerContext,
    named: Option<AppId>,
) -> Result<Arc<Application>, LoginError> {
    let service = &context.service;
    let id = match &service.config.gateway {
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

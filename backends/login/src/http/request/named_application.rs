//! The application of a request, for a version's own endpoints: a claim, or verified by its signature.

use std::{ops::Deref, sync::Arc};

use axum::extract::FromRequestParts;
use http::request::Parts;
use signpost_protocol::{
    app::{AppId, AppIdent},
    header::X_GATEWAY_APP,
};

use super::{CallingApplication, Parameters};
use crate::{
    config::Gateway, error::LoginError, records::applications::Application, service::HandlerContext,
};

/// An application that exists and is enabled.
#[derive(Clone, Debug)]
pub struct RequestApplication {
    application: Arc<Application>,
    ident: Option<AppIdent>,
}

impl RequestApplication {
    /// The internal id, for the store. It never leaves the service.
    #[must_use]
    pub fn id(&self) -> AppId {
        self.application.id
    }

    /// The public ident; `None` in single-application mode, where applications have none.
    #[must_use]
    pub fn ident(&self) -> Option<&AppIdent> {
        self.ident.as_ref()
    }

    /// The name, as users see it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.application.name
    }
}

/// The application that a request names.
///
/// If the request has no parameters, it is unsigned (CONTRACT 9): the application exists, but anyone can have named it.
/// Use this for answers that are public, or with a further proof.
#[derive(Clone, Debug)]
pub struct ClaimedApplication(RequestApplication);

/// The application that has signed the request; the gateway has verified the signature.
///
/// The only way to one is its extractor. It rejects a request without `sign` by 403 `sign_missing`. With
/// `without_gateway`, for development, nothing is verified, and every request counts as the single application's.
#[derive(Clone, Debug)]
pub struct SignedApplication(RequestApplication);

impl Deref for ClaimedApplication {
    type Target = RequestApplication;

    fn deref(&self) -> &RequestApplication {
        &self.0
    }
}

impl Deref for SignedApplication {
    type Target = RequestApplication;

    fn deref(&self) -> &RequestApplication {
        &self.0
    }
}

impl FromRequestParts<HandlerContext> for ClaimedApplication {
    type Rejection = LoginError;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HandlerContext,
    ) -> Result<Self, LoginError> {
        let CallingApplication(application) =
            CallingApplication::from_request_parts(parts, context).await?;
        let ident = ident(parts, context)?;
        Ok(Self(RequestApplication { application, ident }))
    }
}

impl FromRequestParts<HandlerContext> for SignedApplication {
    type Rejection = LoginError;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HandlerContext,
    ) -> Result<Self, LoginError> {
        let ClaimedApplication(application) =
            ClaimedApplication::from_request_parts(parts, context).await?;
        let is_verified = match &context.service.config.gateway {
            Gateway::Absent => true,
            // The gateway forwards a request with parameters only if its signature is right. A callback, which is
            // unsigned, names no application.
            Gateway::Secret(_) | Gateway::Loopback => {
                let parameters = Parameters::from_request_parts(parts, context).await?;
                parameters.optional("sign")?.is_some()
            }
        };
        if is_verified {
            Ok(Self(application))
        } else {
            Err(LoginError::SignMissing)
        }
    }
}

/// Returns the ident that the gateway sends in multi-application mode.
fn ident(parts: &Parts, context: &HandlerContext) -> Result<Option<AppIdent>, LoginError> {
    if matches!(context.service.config.gateway, Gateway::Absent) {
        return Ok(None);
    }
    let mut idents = parts.headers.get_all(X_GATEWAY_APP).into_iter();
    match (idents.next(), idents.next()) {
        (None, _) => Ok(None),
        (Some(ident), None) => AppIdent::try_from(ident.as_bytes())
            .map(Some)
            .map_err(|_| LoginError::GatewayRequired),
        (Some(_), Some(_)) => Err(LoginError::GatewayRequired),
    }
}

//! The application of a request: named by the gateway, claimed by anyone, or verified by its signature.

use std::{ops::Deref, sync::Arc};

use axum::extract::FromRequestParts;
use http::{HeaderMap, HeaderName, HeaderValue, request::Parts};
use signpost_protocol::{
    app::{AppId, AppIdent},
    header::{X_GATEWAY_APP, X_GATEWAY_APP_ID, X_GATEWAY_BRIDGE, X_GATEWAY_SIGNED},
    version::Version as VersionName,
};

use super::Parameters;
use crate::{
    config::Gateway,
    error::LoginError,
    http::{Context, HandlerContext, Version},
    records::applications::Application,
};

/// The application that a request names: it exists and is enabled.
///
/// If the request has no parameters, it is unsigned (CONTRACT 9), and anyone can have named the application. Use this for
/// responses that are public, or with a further proof.
#[derive(Clone, Debug)]
pub struct ClaimedApplication {
    pub(crate) application: Arc<Application>,
    ident: Option<AppIdent>,
}

impl ClaimedApplication {
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

/// The application that has signed the request; the gateway has verified the signature.
///
/// The only way to one is its extractor. It rejects a request without `sign` by 403 `sign_missing`. With
/// `without_gateway`, for development, nothing is verified, and every request counts as the single application's.
#[derive(Clone, Debug)]
pub struct SignedApplication(ClaimedApplication);

impl Deref for SignedApplication {
    type Target = ClaimedApplication;

    fn deref(&self) -> &ClaimedApplication {
        &self.0
    }
}

impl ClaimedApplication {
    pub(super) async fn read(parts: &Parts, context: &Context) -> Result<Self, LoginError> {
        let named = named_application(&parts.headers, context)?;
        let application = required_application(context, named).await?;
        // The gateway sends it in multi-application mode.
        let ident = gateway_header(&parts.headers, context, &X_GATEWAY_APP)?;
        let ident = ident.map(|ident| AppIdent::try_from(ident.as_bytes()));
        // The gateway has checked its grammar, so a malformed one is not the gateway's.
        let ident = ident.transpose().map_err(|_| LoginError::GatewayRequired)?;
        Ok(Self { application, ident })
    }
}

impl<V: Version> FromRequestParts<HandlerContext<V>> for ClaimedApplication {
    type Rejection = LoginError;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HandlerContext<V>,
    ) -> Result<Self, LoginError> {
        Self::read(parts, &context.shared).await
    }
}

impl<V: Version> FromRequestParts<HandlerContext<V>> for SignedApplication {
    type Rejection = LoginError;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &HandlerContext<V>,
    ) -> Result<Self, LoginError> {
        let application = ClaimedApplication::read(parts, &context.shared).await?;
        let is_verified = match &context.shared.service.config.gateway {
            Gateway::Absent => true,
            // The gateway forwards a request with parameters only if its signature is right. A callback, which is
            // unsigned, names no application.
            Gateway::Secret(..) | Gateway::Loopback => {
                let parameters = Parameters::from_request_parts(parts, context).await?;
                let is_signed = gateway_header(&parts.headers, &context.shared, &X_GATEWAY_SIGNED)?;
                // Over a bridge, the gateway itself says it.
                parameters.optional("sign")?.is_some() || is_signed.is_some()
            }
        };
        if is_verified {
            Ok(Self(application))
        } else {
            Err(LoginError::SignMissing)
        }
    }
}

/// The application that the gateway names; `None` for an unsigned request.
pub(crate) fn named_application(
    headers: &HeaderMap,
    context: &Context,
) -> Result<Option<AppId>, LoginError> {
    let parse = |id: &HeaderValue| id.to_str().ok()?.parse().ok().map(AppId::new);
    let id = gateway_header(headers, context, &X_GATEWAY_APP_ID)?;
    let id = id.map(|id| parse(id).ok_or(LoginError::GatewayRequired));
    id.transpose()
}

/// The version whose client sent the request: the service's, or another one that it serves over a bridge. Logins are
/// issued by it, so that their callbacks take the bridge, too. CONTRACT 5.
pub(crate) fn client_version(
    headers: &HeaderMap,
    context: &Context,
) -> Result<VersionName, LoginError> {
    let Some(name) = gateway_header(headers, context, &X_GATEWAY_BRIDGE)? else {
        return Ok(context.version.clone());
    };
    let version = name.to_str().ok().and_then(|name| name.parse().ok());
    version.ok_or(LoginError::GatewayRequired)
}

/// A header that only the gateway sets, at most once. Without a gateway there is none.
fn gateway_header<'h>(
    headers: &'h HeaderMap,
    context: &Context,
    name: &HeaderName,
) -> Result<Option<&'h HeaderValue>, LoginError> {
    if matches!(context.service.config.gateway, Gateway::Absent) {
        return Ok(None);
    }
    // The gateway removes a client's own, so a second one shows that something else stands in front.
    let mut values = headers.get_all(name).into_iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(LoginError::GatewayRequired),
    }
}

/// Returns the application that the gateway named, or the single application if there is no gateway.
pub(crate) async fn required_application(
    context: &Context,
    named: Option<AppId>,
) -> Result<Arc<Application>, LoginError> {
    let service = &context.service;
    let id = match &service.config.gateway {
        Gateway::Absent => AppId::SINGLE,
        Gateway::Secret(..) | Gateway::Loopback => named.ok_or(LoginError::GatewayRequired)?,
    };
    let application = service.active_application(id).await?;
    application.ok_or(LoginError::AppNotFound)
}

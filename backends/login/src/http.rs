//! The service over HTTP: routes, layers and handlers; and what a version is made of.

pub mod description;
mod document;
mod endpoints;
mod handlers;
mod middleware;
pub mod own;
mod pages;
pub mod request;
mod router;
mod version;
mod versions;
pub mod views;

use std::sync::Arc;

use axum::{body::Bytes, extract::FromRef};
use signpost_protocol::version::Version as VersionName;

pub use self::{
    endpoints::{EndpointsError, EndpointsOf},
    router::Routes,
    version::{Endpoints, Own, Version},
    versions::Versions,
};
pub(crate) use self::{router::document_and_routes, versions::Configured};
use crate::service::Service;

/// What handlers of every version share: the service, and the version that the router serves.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) service: Arc<Service>,
    pub(crate) version: VersionName,
    /// The paths of its endpoints.
    pub(crate) paths: Arc<[&'static str]>,
    /// `GET /openapi.json`.
    pub(crate) document: Bytes,
    /// The same for a client that asked for the version by its name: perhaps it is not the default, so each call names it.
    pub(crate) document_by_name: Bytes,
}

/// The state of a version's handlers. Extractors read it ([`request`]).
pub struct HandlerContext<V: Version> {
    pub(crate) shared: Context,
    pub(crate) own: Own<V>,
}

impl<V: Version> Clone for HandlerContext<V> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            own: self.own.clone(),
        }
    }
}

impl<V: Version> FromRef<HandlerContext<V>> for Context {
    fn from_ref(context: &HandlerContext<V>) -> Self {
        context.shared.clone()
    }
}

impl<V: Version> FromRef<HandlerContext<V>> for Arc<Service> {
    fn from_ref(context: &HandlerContext<V>) -> Self {
        Self::clone(&context.shared.service)
    }
}

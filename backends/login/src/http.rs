//! The service over HTTP: routes, layers and handlers.

mod handlers;
mod middleware;
mod pages;
pub mod request;
mod router;
mod version;

use std::sync::Arc;

use axum::extract::FromRef;
use signpost_protocol::version::Version;

pub use self::{
    router::{Routes, router},
    version::{Endpoints, EndpointsError, Views},
};
use crate::service::Service;

/// The shared state of handlers: the service, and the version that the router serves.
///
/// Extractors read it ([`request`]). A version's own handler gets the service as `State<Arc<Service>>`.
#[derive(Clone)]
pub struct HandlerContext {
    pub(crate) service: Arc<Service>,
    pub(crate) version: Version,
}

impl FromRef<HandlerContext> for Arc<Service> {
    fn from_ref(context: &HandlerContext) -> Self {
        Self::clone(&context.service)
    }
}

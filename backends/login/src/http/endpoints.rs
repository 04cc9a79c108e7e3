//! The endpoints that a version has beyond those of the library.
//!
//! They are declared, not routed: [`crate::router()`] puts them inside all layers, beside the library's own routes.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    extract::FromRef,
    handler::Handler,
    routing::{MethodRouter, get, post},
};
use http::Method;
use signpost_protocol::version::ParseVersionError;

use crate::{
    http::{
        router::{shared_paths, with_methods},
        views::Views,
    },
    service::{HandlerContext, Service},
};

/// Endpoints of a version's own.
///
/// A handler is an async function of extractors ([`crate::http::request`]), as axum defines it. It returns `Result<T,
/// LoginError>`: then every error is a problem of the contract. Extractors of axum that can fail, for example `Query`
/// and `Json`, answer with plain text instead.
#[derive(Clone, Debug, Default)]
pub struct Endpoints(Vec<Endpoint>);

#[derive(Clone, Debug)]
struct Endpoint {
    method: Method,
    path: &'static str,
    handler: MethodRouter<HandlerContext>,
}

impl Endpoints {
    /// None, for a version that has the library's endpoints only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an endpoint for GET. It changes nothing, since a gateway can send a GET twice (CONTRACT 5).
    #[must_use]
    pub fn get<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, HandlerContext>,
    ) -> Self {
        self.with(Method::GET, path, get(handler))
    }

    /// Adds an endpoint for POST.
    #[must_use]
    pub fn post<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, HandlerContext>,
    ) -> Self {
        self.with(Method::POST, path, post(handler))
    }

    fn with(
        mut self,
        method: Method,
        path: &'static str,
        handler: MethodRouter<HandlerContext>,
    ) -> Self {
        self.0.push(Endpoint {
            method,
            path,
            handler,
        });
        self
    }

    /// Checks what a program checks at its start. Call it in a test of the version.
    ///
    /// # Errors
    ///
    /// The first endpoint that cannot be served.
    pub fn check<V: Views>(&self) -> Result<(), EndpointsError> {
        let shared = shared_paths::<V>();
        for (index, Endpoint { method, path, .. }) in self.0.iter().enumerate() {
            if !is_path(path) {
                return Err(EndpointsError::Path { path });
            }
            let method = method.clone();
            if shared.contains(path) {
                return Err(EndpointsError::Shared { method, path });
            }
            let is_same = |other: &Endpoint| other.path == *path && other.method == method;
            if self.0[..index].iter().any(is_same) {
                return Err(EndpointsError::Twice { method, path });
            }
        }
        Ok(())
    }

    /// The paths, one for each endpoint.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().map(|endpoint| endpoint.path)
    }

    /// Adds these endpoints to the library's. They were checked before.
    pub(crate) fn add_to(self, shared: Router<HandlerContext>) -> Router<HandlerContext> {
        let mut paths: BTreeMap<&'static str, Vec<Endpoint>> = BTreeMap::new();
        for endpoint in self.0 {
            paths.entry(endpoint.path).or_default().push(endpoint);
        }
        paths
            .into_iter()
            .fold(shared, |router, (path, of_one_path)| {
                router.route(path, of_path(of_one_path))
            })
    }
}

/// The endpoints of one path, and 405 for its other methods.
fn of_path(endpoints: Vec<Endpoint>) -> MethodRouter<HandlerContext> {
    let has = |method| endpoints.iter().any(|one| one.method == method);
    let allow = match (has(Method::GET), has(Method::POST)) {
        (true, true) => "GET, POST",
        (true, false) => "GET",
        (false, _) => "POST",
    };
    let handlers = endpoints.into_iter().map(|one| one.handler);
    let merged = handlers.fold(MethodRouter::new(), MethodRouter::merge);
    with_methods(merged, allow)
}

/// Whether this is an exact path. Parameters in paths are not supported: a signature covers the parameters of query and
/// form, but by default no path (CONTRACT 3), and paths are logged.
fn is_path(path: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'~' | b'-');
    path.starts_with('/') && path.bytes().all(is_allowed)
}

/// Why endpoints cannot be served. A program with such an error does not start.
#[derive(Debug, thiserror::Error)]
pub enum EndpointsError {
    /// The path is not an exact one.
    #[error(
        "endpoint {path:?}: not a path; allowed: a slash, then A-Z, a-z, 0-9, and / . _ ~ -, without parameters"
    )]
    Path {
        /// The path.
        path: &'static str,
    },
    /// The login library has this path, with whatever method. Versions cannot replace its endpoints.
    #[error(
        "endpoint {method} {path}: the login library has this path; allowed: a path of the version's own"
    )]
    Shared {
        /// The method.
        method: Method,
        /// The path.
        path: &'static str,
    },
    /// Two endpoints have the same method and path.
    #[error("endpoint {method} {path}: added twice; allowed: once")]
    Twice {
        /// The method.
        method: Method,
        /// The path.
        path: &'static str,
    },
    /// The version's name is invalid.
    #[error("version {name:?}: not a name; allowed: {rule}")]
    Version {
        /// The name.
        name: &'static str,
        /// The rule.
        rule: ParseVersionError,
    },
}

impl FromRef<HandlerContext> for Arc<Service> {
    fn from_ref(context: &HandlerContext) -> Self {
        Self::clone(&context.service)
    }
}

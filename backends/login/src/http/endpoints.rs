//! The endpoints that a version has beside the library's. They are declared, not routed: the router puts them
//! inside all layers, beside the library's own.

use std::collections::BTreeMap;

use axum::{
    Router,
    handler::Handler,
    routing::{MethodRouter, get, head, post},
};
use http::{Method, header::ALLOW};

use super::description::Operation;
use crate::error::LoginError;

/// Endpoints of a version's own; `S` is the state of its handlers.
///
/// A handler is an async function of extractors ([`crate::http::request`]), as axum defines it. It returns `Result<T,
/// LoginError>`: then every error is a problem of the contract. Extractors of axum that can fail, for example `Query`
/// and `Json`, respond with plain text instead.
#[must_use]
pub struct EndpointsOf<S>(Vec<Endpoint<S>>);

struct Endpoint<S> {
    method: Method,
    path: &'static str,
    handler: MethodRouter<S>,
    operation: Option<Operation>,
}

impl<S> Default for EndpointsOf<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S: Clone + Send + Sync + 'static> EndpointsOf<S> {
    /// None, for a version that has the library's endpoints only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an endpoint for GET. It changes nothing, since a gateway can send a GET twice (CONTRACT 5).
    pub fn get<T: 'static>(self, path: &'static str, handler: impl Handler<T, S>) -> Self {
        self.with(Method::GET, path, get(handler))
    }

    /// Adds an endpoint for HEAD, with the handler of GET.
    pub(super) fn head<T: 'static>(self, path: &'static str, handler: impl Handler<T, S>) -> Self {
        self.with(Method::HEAD, path, head(handler))
    }

    /// Adds an endpoint for POST.
    pub fn post<T: 'static>(self, path: &'static str, handler: impl Handler<T, S>) -> Self {
        self.with(Method::POST, path, post(handler))
    }

    fn with(mut self, method: Method, path: &'static str, handler: MethodRouter<S>) -> Self {
        self.0.push(Endpoint {
            method,
            path,
            handler,
            operation: None,
        });
        self
    }

    /// Describes the endpoint that was added last, for `GET /openapi.json`.
    pub fn described(mut self, operation: Operation) -> Self {
        if let Some(last) = self.0.last_mut() {
            last.operation = Some(operation);
        }
        self
    }

    /// The described endpoints.
    pub(super) fn operations(&self) -> impl Iterator<Item = (&Method, &'static str, &Operation)> {
        self.0.iter().filter_map(|endpoint| {
            let operation = endpoint.operation.as_ref()?;
            Some((&endpoint.method, endpoint.path, operation))
        })
    }

    /// Method and path of each.
    pub(super) fn routes(&self) -> impl Iterator<Item = (&Method, &'static str)> {
        let all = self.0.iter();
        all.map(|endpoint| (&endpoint.method, endpoint.path))
    }

    /// Checks that they can be served beside the library's, which have the paths `taken`.
    pub(super) fn check_beside(&self, taken: &[&'static str]) -> Result<(), EndpointsError> {
        for (index, Endpoint { method, path, .. }) in self.0.iter().enumerate() {
            let is_same = |other: &Endpoint<S>| other.path == *path && other.method == method;
            let problem = if !is_path(path) {
                format!(
                    "{path:?}: not a path; allowed: a slash, then A-Z, a-z, 0-9, and / . _ ~ -, without parameters"
                )
            } else if taken.contains(path) {
                format!(
                    "{method} {path}: the login library has this path; allowed: a path of the version's own"
                )
            } else if self.0[..index].iter().any(is_same) {
                format!("{method} {path}: added twice; allowed: once")
            } else {
                continue;
            };
            return Err(EndpointsError(format!("endpoint {problem}")));
        }
        Ok(())
    }

    /// The paths, one for each endpoint.
    pub(super) fn paths(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().map(|endpoint| endpoint.path)
    }

    /// Adds these endpoints, which were checked, to a router. Other methods of their paths are 405 with `Allow`.
    pub(super) fn add_to(self, router: Router<S>) -> Router<S> {
        let mut paths: BTreeMap<&'static str, Vec<Endpoint<S>>> = BTreeMap::new();
        for endpoint in self.0 {
            paths.entry(endpoint.path).or_default().push(endpoint);
        }
        let add = |router: Router<_>, (path, endpoints)| router.route(path, of_path(endpoints));
        paths.into_iter().fold(router, add)
    }
}

fn of_path<S: Clone + Send + Sync + 'static>(endpoints: Vec<Endpoint<S>>) -> MethodRouter<S> {
    let has = |method| endpoints.iter().any(|endpoint| endpoint.method == method);
    let has_head = has(Method::HEAD);
    let allow = match (has(Method::GET), has(Method::POST)) {
        (true, _) if has_head => "GET, HEAD",
        (true, true) => "GET, POST",
        (true, false) => "GET",
        (false, _) => "POST",
    };
    let not_allowed = async move || ([(ALLOW, allow)], LoginError::MethodNotAllowed);
    let handlers = endpoints.into_iter().map(|endpoint| endpoint.handler);
    let merged = handlers.fold(MethodRouter::new(), MethodRouter::merge);
    let merged = merged.fallback(not_allowed);
    // Without a handler for HEAD, axum would serve it as GET.
    if has_head {
        merged
    } else {
        merged.head(not_allowed)
    }
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
#[error("{0}")]
pub struct EndpointsError(pub(super) String);

//! The routes of a version, closed: what is inside the layers is fixed, and nothing can be added outside.

use axum::{Router, extract::Request, response::Response};
use tower::ServiceExt;

/// Routes with all layers around them. [`crate::router()`] creates them, [`crate::program::Program`] serves them.
///
/// This is not an axum router on purpose: a route that were added to one would run outside the layers, without the
/// check of the gateway's secret, without limits, and without an access line.
#[derive(Clone, Debug)]
pub struct Routes(Router);

impl Routes {
    /// Wraps a router with all layers.
    pub(crate) fn new(router: Router) -> Self {
        Self(router)
    }

    /// Routes that pass each request on to the routes of one of several versions.
    ///
    /// `choose` runs outside all layers, so it does no more than that: it calls [`Self::serve`] of what it chose, and
    /// may add headers to the response.
    pub fn choosing<F, R>(choose: F) -> Self
    where
        F: FnOnce(Request) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Response> + Send + 'static,
    {
        Self(Router::new().fallback(choose))
    }

    /// Serves a request.
    pub async fn serve(self, request: Request) -> Response {
        let served = self.0.oneshot(request).await;
        served.unwrap_or_else(|never| match never {})
    }
}

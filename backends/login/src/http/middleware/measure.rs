//! Counts and measures each answered request, by its endpoint.

use std::{sync::Arc, time::Instant};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};

use crate::metrics::{checks::with_waits, requests::VersionRequests};

/// Counts the response. A request whose client left before is not counted.
pub(super) async fn measure(
    State(requests): State<Arc<VersionRequests>>,
    request: Request,
    next: Next,
) -> Response {
    let begun_at = Instant::now();
    let endpoint = requests.endpoint(request.uri().path());
    let (response, waited) = with_waits(next.run(request)).await;
    let duration = begun_at.elapsed().saturating_sub(waited);
    requests.count(endpoint, response.status(), duration);
    response
}

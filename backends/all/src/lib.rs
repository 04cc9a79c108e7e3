//! Every version of the login service in one process (internal forwarding, CONTRACT 9). Versions are selected as a
//! gateway does it, with the same libraries.

mod versions;

use std::sync::Arc;

use axum::{Router, extract::Request, response::Response};
use login::Views;
use tower::ServiceExt;

use crate::versions::Versions;

/// The routes of all versions. The first one is the default route. CONTRACT 5.
pub fn router(service: Arc<login::Service>) -> Router {
    let headers = service.config().headers().clone();
    let service = || Arc::clone(&service);
    let versions = Versions::new([
        (login_v1::V1::VERSION, login_v1::router(service())),
        (login_v2::V2::VERSION, login_v2::router(service())),
    ]);
    Router::new().fallback(async move |request: Request| -> Response {
        let choice = versions.choose(&request, &headers);
        let (name, source, is_chosen_here) =
            (choice.name.clone(), choice.source, choice.is_chosen_here);
        let answered = choice.router.clone().oneshot(request).await;
        let mut response = answered.unwrap_or_else(|never| match never {});
        if is_chosen_here {
            versions::set_version_headers(&mut response, &headers, &name, source);
        }
        response
    })
}

#[cfg(test)]
mod tests;

//! Every version of the login service in one process (internal forwarding, CONTRACT 9). Versions are selected as a
//! gateway does it, with the same libraries.

mod versions;

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use login::{EndpointsError, Routes, Views};

use crate::versions::Versions;

/// The routes of all versions, with each version's own endpoints. The first one is the default route. CONTRACT 5.
///
/// # Errors
///
/// An endpoint of a version's own cannot be served.
pub fn router(service: Arc<login::Service>) -> Result<Routes, EndpointsError> {
    let headers = service.config().headers.clone();
    let service = || Arc::clone(&service);
    let versions = Versions::new([
        (login_v1::V1::VERSION, login_v1::router(service())),
        (login_v2::V2::VERSION, login_v2::router(service())),
    ])?;
    Ok(Routes::choosing(
        async move |request: Request| -> Response {
            let is_chosen_here = versions::is_chosen_here(&request);
            let ((name, routes), source) = versions.choose(&request, &headers);
            let mut response = routes.clone().serve(request).await;
            if is_chosen_here {
                versions::set_version_headers(&mut response, &headers, name, source);
            }
            response
        },
    ))
}

#[cfg(test)]
mod tests;

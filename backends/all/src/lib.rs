//! Every version of the login service in one process (internal forwarding, CONTRACT 9). Versions are selected as a
//! gateway does it, with the same libraries.

mod choice;

use axum::{extract::Request, response::Response};
use login::{Routes, Versions, config::Config};
use signpost_protocol::version::Version;

use crate::choice::Choice;

/// All versions, with each version's own endpoints. The first one is the default route. CONTRACT 5.
pub fn versions() -> Versions {
    Versions::choosing(choosing)
        .with::<login_v1::V1>()
        .with::<login_v2::V2>()
}

fn choosing(config: &Config, versions: Vec<(Version, Routes)>) -> Routes {
    let (headers, choice) = (config.headers.clone(), Choice(versions));
    Routes::choosing(async move |request: Request| -> Response {
        let is_chosen_here = choice::is_chosen_here(&request);
        let ((name, routes), source) = choice.choose(&request, &headers);
        let mut response = routes.clone().serve(request).await;
        if is_chosen_here {
            choice::set_version_headers(&mut response, &headers, name, source);
        }
        response
    })
}

#[cfg(test)]
mod tests;

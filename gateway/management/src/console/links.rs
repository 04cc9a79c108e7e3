//! Paths of the console, with their parameters.

use axum::response::{IntoResponse, Redirect, Response};
use http::{Method, Uri};
use url::form_urlencoded::{self, byte_serialize};

/// A path with parameters; those without a value are left out.
pub(super) fn address(path: &str, parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(given);
    match query.finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// A text as one segment of a path.
pub(super) fn segment(text: &str) -> String {
    byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

/// A parameter of a query.
pub(super) fn parameter(query: Option<&str>, name: &str) -> String {
    let query = query.unwrap_or_default().as_bytes();
    let mut pairs = form_urlencoded::parse(query);
    let pair = pairs.find(|(given, _)| given == name);
    pair.map_or_else(String::new, |(_, value)| value.into_owned())
}

/// Leads a browser without a session to the page to sign in, and then back to what it wanted.
pub(super) fn to_sign_in(method: &Method, uri: &Uri) -> Response {
    let wanted = uri.path_and_query().filter(|_| *method == Method::GET);
    let wanted = wanted.map_or("", |wanted| wanted.as_str());
    let to = if wanted == "/" { "" } else { wanted };
    Redirect::to(&address("/sign-in", &[("to", to)])).into_response()
}

/// Leads a browser whose token has ended to the page to sign in.
pub(super) fn session_ended() -> Response {
    Redirect::to(&address("/sign-in", &[("done", "session_ended")])).into_response()
}

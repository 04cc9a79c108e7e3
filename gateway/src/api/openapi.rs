//! What the API says of itself: its description in `OpenAPI` 3.1.

use axum::{Json, Router, routing::get};
use serde_json::{Value, json};
use signpost_protocol::text::text;
use utoipa::{
    OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};

use super::{
    ApiError, Shared,
    body::Segment,
    problem::{Code, Problem},
};

/// The name of the tokens' scheme.
pub(super) const TOKEN: &str = "token";

/// What the routes are added to.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Signpost's management API",
        description = "Operators' actions over HTTP. Each call needs a token; `x-role` is the role that it must have. A change \
                       names the revision that it was decided upon. Everything that is no success is a problem (RFC 9457).",
    ),
    components(schemas(Problem))
)]
struct Frame;

/// The document without routes.
pub(super) fn frame() -> utoipa::openapi::OpenApi {
    let mut document = Frame::openapi();
    document.info.version = "1".to_owned();
    document.info.license = None;
    document.info.contact = None;
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "A token of `signpost token create`, or of `/api/v1/tokens/create`.",
        ))
        .build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(scheme));
    document
}

/// Adds what anyone may read: the document, and the pages about problems.
pub(super) fn add_to(routes: Router<Shared>, document: utoipa::openapi::OpenApi) -> Router<Shared> {
    let document = async move || Json(document);
    routes
        .route("/api/v1/openapi.json", get(document))
        .route("/problems/{code}", get(about))
}

/// What all problems of a code have in common, in English.
async fn about(Segment(code): Segment) -> Result<Json<Value>, ApiError> {
    let known = Code::ALL.iter().find(|known| known.as_str() == code);
    let known = *known.ok_or(Code::NotFound)?;
    let language = signpost_protocol::language::Language::En;
    Ok(Json(json!({
        "type": format!("/problems/{code}"),
        "title": text(language, known.as_str(), &[]),
        "status": known.status().as_u16(),
        "code": known,
    })))
}

//! What the API says of itself: its description in `OpenAPI` 3.1.

use axum::{
    Json, Router,
    extract::{Path, rejection::PathRejection},
    routing::get,
};
use bytes::Bytes;
use http::{HeaderValue, header::CONTENT_TYPE};
use serde_json::{Map, Value, json};
use signpost_protocol::{problem::MEDIA_TYPE, text::text};
use utoipa::{
    OpenApi,
    openapi::{
        ContentBuilder, Ref, ResponseBuilder,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{
    ApiError, Shared,
    problem::{Code, Problem},
};

/// The response that every route can have.
pub(super) const PROBLEM: &str = "Problem";

/// What the routes are added to.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Signpost's management API",
        description = "Operators' actions over HTTP. Each call needs a token; `x-role` is the role that it must have. A change \
                       names the revision that it was decided upon. Everything that is no success is a problem (RFC 9457).",
    ),
    components(schemas(Problem)),
    security(("token" = []))
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
    components.add_security_scheme("token", SecurityScheme::Http(scheme));
    let problem = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .build();
    let problem = ResponseBuilder::new()
        .description("A problem: its code says which.")
        .content(MEDIA_TYPE, problem);
    let responses = &mut components.responses;
    responses.insert(PROBLEM.to_owned(), problem.into());
    document
}

/// Adds what anyone may read: the document, and the pages about problems.
pub(super) fn add_to(routes: Router<Shared>, document: utoipa::openapi::OpenApi) -> Router<Shared> {
    let document = Bytes::from(shortened(json!(document)).to_string());
    let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    routes
        .route("/api/v1/openapi.json", get(async || (json, document)))
        .route("/problems/{code}", get(about))
}

/// The document, with each parameter that several operations have written once, and the item of each list: utoipa knows no
/// references to parameters, and writes a type's arguments out.
fn shortened(mut document: Value) -> Value {
    let items = document["paths"].as_object_mut().into_iter().flatten();
    let operations = items.flat_map(|(_, item)| item.as_object_mut().into_iter().flatten());
    let lists = operations.filter_map(|(_, one)| one.get_mut("parameters")?.as_array_mut());
    let parameters: Vec<_> = lists.flatten().collect();
    let all: Vec<Value> = parameters.iter().map(|one| (*one).clone()).collect();
    let mut shared = Map::new();
    for parameter in parameters {
        let number = all.iter().filter(|one| *one == parameter).count();
        let Some(name) = parameter["name"].as_str().filter(|_| number > 1) else {
            continue;
        };
        let reference = json!({ "$ref": format!("#/components/parameters/{name}") });
        let first = shared.entry(name).or_insert_with(|| parameter.clone());
        if first == parameter {
            *parameter = reference;
        }
    }
    let components = &mut document["components"];
    components["parameters"] = shared.into();
    let all = components["schemas"].clone();
    let schemas = components["schemas"].as_object_mut();
    for (name, schema) in schemas.into_iter().flatten() {
        let name = name.trim_start_matches("List_");
        if let Some(item) = schema.pointer_mut("/properties/items/items")
            && all[name] == *item
        {
            *item = json!({ "$ref": format!("#/components/schemas/{name}") });
        }
    }
    document
}

/// What all problems of a code have in common, in English.
async fn about(code: Result<Path<String>, PathRejection>) -> Result<Json<Value>, ApiError> {
    // It is not UTF-8.
    let Path(code) = code.map_err(|_| Code::NotFound)?;
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

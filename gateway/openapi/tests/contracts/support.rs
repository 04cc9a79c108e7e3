//! Small documents, and what is found between them.

use serde_json::{Value, json};
use signpost_openapi::{Document, Report, compare};

pub(crate) fn document(value: &Value) -> Document {
    Document::read(value.to_string().as_bytes()).unwrap()
}

pub(crate) fn compared(old: &Value, new: &Value) -> Report {
    let report = compare(&document(old), &document(new), ["v1", "v2"]);
    assert!(report.is_complete);
    report
}

/// A document of 3.1 with these paths.
pub(crate) fn with_paths(paths: Value) -> Value {
    json!({ "openapi": "3.1.0", "info": { "title": "t", "version": "1" }, "paths": paths })
}

/// A document with `POST /orders`, whose parts are these.
pub(crate) fn with_operation(operation: Value) -> Value {
    with_paths(json!({ "/orders": { "post": operation } }))
}

/// Where a schema is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scope {
    RequestBody,
    RequestProperty,
    Parameter,
    ParameterProperty,
    ResponseBody,
    ResponseProperty,
    Header,
}

pub(crate) use Scope::*;

impl Scope {
    pub(crate) fn document(self, schema: &Value) -> Value {
        let inside = |schema: &Value| json!({ "type": "object", "properties": { "p": schema } });
        let content =
            |schema: Value| json!({ "content": { "application/json": { "schema": schema } } });
        let parameter = |name: &str, schema: Value| json!({ "parameters": [{ "in": "query", "name": name, "schema": schema }] });
        with_operation(match self {
            RequestBody => json!({ "requestBody": content(schema.clone()) }),
            RequestProperty => json!({ "requestBody": content(inside(schema)) }),
            Parameter => parameter("q", schema.clone()),
            ParameterProperty => parameter("q", inside(schema)),
            ResponseBody => json!({ "responses": { "200": content(schema.clone()) } }),
            ResponseProperty => json!({ "responses": { "200": content(inside(schema)) } }),
            Header => {
                json!({ "responses": { "200": { "headers": { "X-H": { "schema": schema } } } } })
            }
        })
    }

    pub(crate) fn place(self) -> &'static str {
        match self {
            RequestBody => "request body $",
            RequestProperty => "request body $.p",
            Parameter => "parameter query q",
            ParameterProperty => "parameter query q $.p",
            ResponseBody => "response 200 $",
            ResponseProperty => "response 200 $.p",
            Header => "response 200 header X-H",
        }
    }
}

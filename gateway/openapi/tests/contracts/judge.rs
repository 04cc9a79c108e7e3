//! The checks of oasdiff that report breaking changes (its levels error and warn), and what they are here.
//!
//! Each row has the ids of checks, two small documents, and the kind that must be found between them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::*;

/// Checks whose ids are made of a bound and what happened to it: its name in ids, the keyword, the type.
const BOUNDS: [(&str, &str, &str, bool); 12] = [
    ("max", "maximum", "integer", true),
    ("min", "minimum", "integer", false),
    ("exclusive-max", "exclusiveMaximum", "integer", true),
    ("exclusive-min", "exclusiveMinimum", "integer", false),
    ("max-length", "maxLength", "string", true),
    ("min-length", "minLength", "string", false),
    ("max-items", "maxItems", "array", true),
    ("min-items", "minItems", "array", false),
    ("max-properties", "maxProperties", "object", true),
    ("min-properties", "minProperties", "object", false),
    ("max-contains", "maxContains", "array", true),
    ("min-contains", "minContains", "array", false),
];

const REQUEST: [(&str, Scope); 3] = [
    ("request-body", RequestBody),
    ("request-property", RequestProperty),
    ("request-parameter", Parameter),
];
const RESPONSE: [(&str, Scope); 3] = [
    ("response-body", ResponseBody),
    ("response-property", ResponseProperty),
    ("response-header", Header),
];

/// Checks of schemas: the end of the id, the scopes it is for (`b`ody, `p`roperty, `q` parameter, `i` inside a
/// parameter, `h`eader), both schemas, the kind.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// What narrows a request.
const NARROWED: &[Row] = &[
    (
        "became-enum",
        "bpq",
        r#"{"type":"string"}"#,
        r#"{"type":"string","enum":["a"]}"#,
        "enum-set",
    ),
    (
        "enum-value-removed",
        "bpqi",
        r#"{"enum":["a","b"]}"#,
        r#"{"enum":["a"]}"#,
        "enum-value-removed",
    ),
    (
        "became-not-nullable",
        "bpqi",
        r#"{"type":["string","null"]}"#,
        r#"{"type":"string"}"#,
        "became-not-nullable",
    ),
    (
        "const-added",
        "bp",
        r#"{"type":"string"}"#,
        r#"{"type":"string","const":"a"}"#,
        "enum-set",
    ),
    (
        "const-changed",
        "bp",
        r#"{"const":"a"}"#,
        r#"{"const":"b"}"#,
        "enum-value-removed",
    ),
    (
        "type-changed",
        "bpi",
        r#"{"type":"string"}"#,
        r#"{"type":"object"}"#,
        "type-changed",
    ),
    (
        "type-changed",
        "q",
        r#"{"type":"array"}"#,
        r#"{"type":"integer"}"#,
        "type-changed",
    ),
    (
        "type-specialized",
        "i",
        r#"{"type":"number"}"#,
        r#"{"type":"integer"}"#,
        "type-narrowed",
    ),
    (
        "list-of-types-narrowed",
        "bp",
        r#"{"type":["string","integer"]}"#,
        r#"{"type":"string"}"#,
        "type-narrowed",
    ),
    (
        "list-of-types-narrowed",
        "qi",
        r#"{"type":["array","integer"]}"#,
        r#"{"type":"integer"}"#,
        "type-narrowed",
    ),
    (
        "pattern-added",
        "pq",
        r#"{"type":"string"}"#,
        r#"{"type":"string","pattern":"^a$"}"#,
        "pattern-set",
    ),
    (
        "pattern-changed",
        "pq",
        r#"{"type":"string","pattern":"b"}"#,
        r#"{"type":"string","pattern":"a"}"#,
        "pattern-changed",
    ),
    (
        "all-of-added",
        "bp",
        r#"{"allOf":[{"type":"string"}]}"#,
        r#"{"allOf":[{"type":"string"},{"maxLength":3}]}"#,
        "max-length-set",
    ),
    (
        "any-of-removed",
        "bp",
        r#"{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"object"}]}"#,
        r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
        "alternative-removed",
    ),
    (
        "one-of-removed",
        "bp",
        r#"{"oneOf":[{"type":"string"},{"type":"integer"},{"type":"object"}]}"#,
        r#"{"oneOf":[{"type":"string"},{"type":"integer"}]}"#,
        "alternative-removed",
    ),
    (
        "wrapped-in-one-of",
        "b",
        r#"{"type":"string"}"#,
        r#"{"oneOf":[{"type":"boolean"},{"type":"integer"}]}"#,
        "alternative-removed",
    ),
    (
        "prefix-items-removed",
        "bp",
        r#"{"prefixItems":[{"type":"string"},{}],"items":false}"#,
        r#"{"prefixItems":[{"type":"string"}],"items":false}"#,
        "forbidden",
    ),
    (
        "if-added",
        "bp",
        r#"{"type":"object"}"#,
        r#"{"type":"object","if":{"minProperties":1}}"#,
        "if-set",
    ),
    (
        "then-added",
        "bp",
        r#"{"type":"object","if":{}}"#,
        r#"{"type":"object","if":{},"then":{"minProperties":1}}"#,
        "then-set",
    ),
    (
        "else-added",
        "bp",
        r#"{"type":"object","if":{}}"#,
        r#"{"type":"object","if":{},"else":{"minProperties":1}}"#,
        "else-set",
    ),
    (
        "contains-added",
        "bp",
        r#"{"type":"array"}"#,
        r#"{"type":"array","contains":{"type":"string"}}"#,
        "contains-set",
    ),
    (
        "dependent-required-added",
        "bp",
        r#"{"type":"object"}"#,
        r#"{"type":"object","dependentRequired":{"a":["b"]}}"#,
        "dependent-required-set",
    ),
    (
        "dependent-required-changed",
        "bp",
        r#"{"type":"object","dependentRequired":{"a":["c"]}}"#,
        r#"{"type":"object","dependentRequired":{"a":["b"]}}"#,
        "dependent-required-changed",
    ),
    (
        "dependent-schema-added",
        "bp",
        r#"{"type":"object"}"#,
        r#"{"type":"object","dependentSchemas":{"a":{"required":["b"]}}}"#,
        "dependent-schemas-set",
    ),
    (
        "pattern-property-added",
        "bp",
        r#"{"type":"object"}"#,
        r#"{"type":"object","patternProperties":{"^a":{"type":"string"}}}"#,
        "pattern-properties-set",
    ),
    (
        "property-names-added",
        "bp",
        r#"{"type":"object"}"#,
        r#"{"type":"object","propertyNames":{"maxLength":3}}"#,
        "property-names-set",
    ),
    (
        "unevaluated-items-added",
        "bp",
        r#"{"type":"array"}"#,
        r#"{"type":"array","unevaluatedItems":false}"#,
        "unevaluated-items-set",
    ),
    (
        "unevaluated-properties-added",
        "bp",
        r#"{"type":"object"}"#,
        r#"{"type":"object","unevaluatedProperties":false}"#,
        "unevaluated-properties-set",
    ),
    (
        "content-schema-added",
        "bp",
        r#"{"type":"string"}"#,
        r#"{"type":"string","contentSchema":{"type":"object"}}"#,
        "content-schema-set",
    ),
    (
        "content-media-type-changed",
        "bp",
        r#"{"type":"string"}"#,
        r#"{"type":"string","contentMediaType":"text/html"}"#,
        "content-media-type-changed",
    ),
    (
        "content-encoding-changed",
        "bp",
        r#"{"type":"string","contentEncoding":"base64"}"#,
        r#"{"type":"string"}"#,
        "content-encoding-changed",
    ),
    (
        "unique-items-set",
        "bp",
        r#"{"type":"array"}"#,
        r#"{"type":"array","uniqueItems":true}"#,
        "unique-items-set",
    ),
    (
        "multiple-of-changed",
        "bp",
        r#"{"type":"integer","multipleOf":3}"#,
        r#"{"type":"integer","multipleOf":2}"#,
        "multiple-of-changed",
    ),
    (
        "multiple-of-set",
        "bpq",
        r#"{"type":"integer"}"#,
        r#"{"type":"integer","multipleOf":2}"#,
        "multiple-of-set",
    ),
];

/// What widens a response.
const WIDENED: &[Row] = &[
    (
        "pattern-removed",
        "p",
        r#"{"type":"string","pattern":"a"}"#,
        r#"{"type":"string"}"#,
        "pattern-unset",
    ),
    (
        "pattern-changed",
        "p",
        r#"{"type":"string","pattern":"a"}"#,
        r#"{"type":"string","pattern":"b"}"#,
        "pattern-changed",
    ),
    (
        "all-of-removed",
        "bp",
        r#"{"allOf":[{"type":"string"},{"maxLength":3}]}"#,
        r#"{"allOf":[{"type":"string"}]}"#,
        "max-length-unset",
    ),
    (
        "any-of-added",
        "bp",
        r#"{"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
        r#"{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"object"}]}"#,
        "alternative-added",
    ),
    (
        "one-of-added",
        "bp",
        r#"{"oneOf":[{"type":"string"},{"type":"integer"}]}"#,
        r#"{"oneOf":[{"type":"string"},{"type":"integer"},{"type":"object"}]}"#,
        "alternative-added",
    ),
    (
        "wrapped-in-one-of",
        "b",
        r#"{"type":"string"}"#,
        r#"{"oneOf":[{"type":"string"},{"type":"integer"}]}"#,
        "alternative-added",
    ),
    (
        "became-nullable",
        "bph",
        r#"{"type":"string"}"#,
        r#"{"type":["string","null"]}"#,
        "became-nullable",
    ),
    (
        "const-removed",
        "bp",
        r#"{"type":"string","const":"a"}"#,
        r#"{"type":"string"}"#,
        "enum-unset",
    ),
    (
        "const-changed",
        "bp",
        r#"{"const":"a"}"#,
        r#"{"const":"b"}"#,
        "enum-value-added",
    ),
    (
        "enum-value-added",
        "p",
        r#"{"enum":["a"]}"#,
        r#"{"enum":["a","b"]}"#,
        "enum-value-added",
    ),
    (
        "type-changed",
        "bp",
        r#"{"type":"string"}"#,
        r#"{"type":"object"}"#,
        "type-changed",
    ),
    (
        "type-changed",
        "h",
        r#"{"type":"array"}"#,
        r#"{"type":"object"}"#,
        "type-changed",
    ),
    (
        "type-generalized",
        "bph",
        r#"{"type":"integer"}"#,
        r#"{"type":"number"}"#,
        "type-widened",
    ),
    (
        "list-of-types-widened",
        "bp",
        r#"{"type":"string"}"#,
        r#"{"type":["string","integer"]}"#,
        "type-widened",
    ),
    (
        "prefix-items-added",
        "bp",
        r#"{"prefixItems":[{"type":"string"}],"items":false}"#,
        r#"{"prefixItems":[{"type":"string"},{}],"items":false}"#,
        "allowed",
    ),
    (
        "if-removed",
        "bp",
        r#"{"type":"object","if":{"minProperties":1}}"#,
        r#"{"type":"object"}"#,
        "if-unset",
    ),
    (
        "then-removed",
        "bp",
        r#"{"type":"object","if":{},"then":{"minProperties":1}}"#,
        r#"{"type":"object","if":{}}"#,
        "then-unset",
    ),
    (
        "else-removed",
        "bp",
        r#"{"type":"object","if":{},"else":{"minProperties":1}}"#,
        r#"{"type":"object","if":{}}"#,
        "else-unset",
    ),
    (
        "contains-removed",
        "bp",
        r#"{"type":"array","contains":{"type":"string"}}"#,
        r#"{"type":"array"}"#,
        "contains-unset",
    ),
    (
        "dependent-required-removed",
        "bp",
        r#"{"type":"object","dependentRequired":{"a":["b"]}}"#,
        r#"{"type":"object"}"#,
        "dependent-required-unset",
    ),
    (
        "dependent-required-changed",
        "bp",
        r#"{"type":"object","dependentRequired":{"a":["c"]}}"#,
        r#"{"type":"object","dependentRequired":{"a":["b"]}}"#,
        "dependent-required-changed",
    ),
    (
        "dependent-schema-removed",
        "bp",
        r#"{"type":"object","dependentSchemas":{"a":{"required":["b"]}}}"#,
        r#"{"type":"object"}"#,
        "dependent-schemas-unset",
    ),
    (
        "pattern-property-removed",
        "bp",
        r#"{"type":"object","patternProperties":{"^a":{"type":"string"}}}"#,
        r#"{"type":"object"}"#,
        "pattern-properties-unset",
    ),
    (
        "property-names-removed",
        "bp",
        r#"{"type":"object","propertyNames":{"maxLength":3}}"#,
        r#"{"type":"object"}"#,
        "property-names-unset",
    ),
    (
        "unevaluated-items-removed",
        "bp",
        r#"{"type":"array","unevaluatedItems":false}"#,
        r#"{"type":"array"}"#,
        "unevaluated-items-unset",
    ),
    (
        "unevaluated-properties-removed",
        "bp",
        r#"{"type":"object","unevaluatedProperties":false}"#,
        r#"{"type":"object"}"#,
        "unevaluated-properties-unset",
    ),
    (
        "content-schema-removed",
        "bp",
        r#"{"type":"string","contentSchema":{"type":"object"}}"#,
        r#"{"type":"string"}"#,
        "content-schema-unset",
    ),
    (
        "content-media-type-changed",
        "bp",
        r#"{"type":"string"}"#,
        r#"{"type":"string","contentMediaType":"text/html"}"#,
        "content-media-type-changed",
    ),
    (
        "content-encoding-changed",
        "bp",
        r#"{"type":"string","contentEncoding":"base64"}"#,
        r#"{"type":"string"}"#,
        "content-encoding-changed",
    ),
    (
        "unique-items-unset",
        "bp",
        r#"{"type":"array","uniqueItems":true}"#,
        r#"{"type":"array"}"#,
        "unique-items-unset",
    ),
    (
        "multiple-of-changed",
        "bp",
        r#"{"type":"integer","multipleOf":3}"#,
        r#"{"type":"integer","multipleOf":2}"#,
        "multiple-of-changed",
    ),
    (
        "multiple-of-unset",
        "bph",
        r#"{"type":"integer","multipleOf":2}"#,
        r#"{"type":"integer"}"#,
        "multiple-of-unset",
    ),
];

/// Checks of operations: the id, both operations, and the kind.
const OPERATIONS: &[(&str, &str, &str, &str)] = &[
    (
        "request-body-added-required",
        "{}",
        r#"{"requestBody":{"required":true,"content":{}}}"#,
        "request-body-added",
    ),
    (
        "request-body-removed",
        r#"{"requestBody":{"content":{}}}"#,
        "{}",
        "request-body-removed",
    ),
    (
        "request-body-became-required",
        r#"{"requestBody":{"content":{}}}"#,
        r#"{"requestBody":{"required":true,"content":{}}}"#,
        "request-body-became-required",
    ),
    (
        "request-body-media-type-removed",
        r#"{"requestBody":{"content":{"text/csv":{},"application/json":{}}}}"#,
        r#"{"requestBody":{"content":{"application/json":{}}}}"#,
        "media-type-removed",
    ),
    (
        "request-body-media-type-schema-added",
        r#"{"requestBody":{"content":{"application/json":{}}}}"#,
        r#"{"requestBody":{"content":{"application/json":{"schema":{"type":"object"}}}}}"#,
        "type-narrowed",
    ),
    (
        "response-body-media-type-schema-removed",
        r#"{"responses":{"200":{"content":{"application/json":{"schema":{"type":"object"}}}}}}"#,
        r#"{"responses":{"200":{"content":{"application/json":{}}}}}"#,
        "type-widened",
    ),
    (
        "new-required-request-property",
        r#"{"requestBody":{"content":{"application/json":{"schema":{"properties":{}}}}}}"#,
        r#"{"requestBody":{"content":{"application/json":{"schema":{"properties":{"a":{}},"required":["a"]}}}}}"#,
        "required-property-added",
    ),
    (
        "new-required-request-property-with-default",
        r#"{"requestBody":{"content":{"application/json":{"schema":{"properties":{}}}}}}"#,
        r#"{"requestBody":{"content":{"application/json":{"schema":{"properties":{"a":{"default":1}},"required":["a"]}}}}}"#,
        "required-property-added",
    ),
    (
        "request-property-became-required",
        r#"{"requestBody":{"content":{"application/json":{"schema":{"properties":{"a":{}}}}}}}"#,
        r#"{"requestBody":{"content":{"application/json":{"schema":{"properties":{"a":{}},"required":["a"]}}}}}"#,
        "property-became-required",
    ),
    (
        "request-property-became-required-with-default",
        r#"{"requestBody":{"content":{"application/json":{"schema":{"properties":{"a":{"default":1}}}}}}}"#,
        r#"{"requestBody":{"content":{"application/json":{"schema":{"properties":{"a":{"default":1}},"required":["a"]}}}}}"#,
        "property-became-required",
    ),
    (
        "request-property-removed",
        r#"{"requestBody":{"content":{"application/json":{"schema":{"properties":{"a":{}}}}}}}"#,
        r#"{"requestBody":{"content":{"application/json":{"schema":{"properties":{}}}}}}"#,
        "property-removed",
    ),
    (
        "response-required-property-removed",
        r#"{"responses":{"200":{"content":{"application/json":{"schema":{"properties":{"a":{}},"required":["a"]}}}}}}"#,
        r#"{"responses":{"200":{"content":{"application/json":{"schema":{"properties":{}}}}}}}"#,
        "property-removed",
    ),
    (
        "response-property-became-optional",
        r#"{"responses":{"200":{"content":{"application/json":{"schema":{"properties":{"a":{}},"required":["a"]}}}}}}"#,
        r#"{"responses":{"200":{"content":{"application/json":{"schema":{"properties":{"a":{}}}}}}}}"#,
        "property-became-optional",
    ),
    (
        "response-media-type-removed",
        r#"{"responses":{"200":{"content":{"text/csv":{},"application/json":{}}}}}"#,
        r#"{"responses":{"200":{"content":{"application/json":{}}}}}"#,
        "media-type-removed",
    ),
    (
        "response-media-type-name-generalized",
        r#"{"responses":{"200":{"content":{"text/csv":{}}}}}"#,
        r#"{"responses":{"200":{"content":{"text/*":{}}}}}"#,
        "media-type-widened",
    ),
    (
        "response-success-status-removed",
        r#"{"responses":{"200":{},"201":{}}}"#,
        r#"{"responses":{"200":{}}}"#,
        "success-status-removed",
    ),
    (
        "required-response-header-removed",
        r#"{"responses":{"200":{"headers":{"X":{"required":true}}}}}"#,
        r#"{"responses":{"200":{}}}"#,
        "header-removed",
    ),
    (
        "optional-response-header-removed",
        r#"{"responses":{"200":{"headers":{"X":{}}}}}"#,
        r#"{"responses":{"200":{}}}"#,
        "header-removed",
    ),
    (
        "response-header-became-optional",
        r#"{"responses":{"200":{"headers":{"X":{"required":true}}}}}"#,
        r#"{"responses":{"200":{"headers":{"X":{}}}}}"#,
        "header-became-optional",
    ),
    (
        "new-required-request-parameter",
        "{}",
        r#"{"parameters":[{"in":"query","name":"q","required":true}]}"#,
        "required-parameter-added",
    ),
    (
        "request-parameter-removed",
        r#"{"parameters":[{"in":"query","name":"q"}]}"#,
        "{}",
        "parameter-removed",
    ),
    (
        "request-parameter-became-required",
        r#"{"parameters":[{"in":"query","name":"q"}]}"#,
        r#"{"parameters":[{"in":"query","name":"q","required":true}]}"#,
        "parameter-became-required",
    ),
    (
        "request-header-property-became-required",
        r#"{"parameters":[{"in":"header","name":"H","schema":{"properties":{"a":{}}}}]}"#,
        r#"{"parameters":[{"in":"header","name":"H","schema":{"properties":{"a":{}},"required":["a"]}}]}"#,
        "property-became-required",
    ),
    (
        "new-required-request-header-property",
        r#"{"parameters":[{"in":"header","name":"H","schema":{"properties":{}}}]}"#,
        r#"{"parameters":[{"in":"header","name":"H","schema":{"properties":{"a":{}},"required":["a"]}}]}"#,
        "required-property-added",
    ),
    (
        "request-header-property-became-enum",
        r#"{"parameters":[{"in":"header","name":"H","schema":{"type":"string"}}]}"#,
        r#"{"parameters":[{"in":"header","name":"H","schema":{"type":"string","enum":["a"]}}]}"#,
        "enum-set",
    ),
    (
        "api-security-removed",
        r#"{"security":[{"key":[]},{"oauth":["r"]}]}"#,
        r#"{"security":[{"oauth":["r"]}]}"#,
        "security-removed",
    ),
    (
        "api-security-scope-added",
        r#"{"security":[{"oauth":["r"]}]}"#,
        r#"{"security":[{"oauth":["r","w"]}]}"#,
        "security-scope-added",
    ),
];

/// Checks of whole documents: the id, what is added to both, and the kind.
const DOCUMENTS: &[(&str, &str, &str, &str)] = &[
    (
        "api-path-removed-without-deprecation",
        r#"{"paths":{"/a":{"get":{}},"/b":{"get":{}}}}"#,
        r#"{"paths":{"/a":{"get":{}}}}"#,
        "path-removed",
    ),
    (
        "api-removed-without-deprecation",
        r#"{"paths":{"/a":{"get":{},"put":{}}}}"#,
        r#"{"paths":{"/a":{"get":{}}}}"#,
        "operation-removed",
    ),
    (
        "new-required-request-default-parameter-to-existing-path",
        r#"{"paths":{"/a":{"get":{}}}}"#,
        r#"{"paths":{"/a":{"parameters":[{"in":"query","name":"q","required":true}],"get":{}}}}"#,
        "required-parameter-added",
    ),
    (
        "api-global-security-removed",
        r#"{"security":[{"key":[]},{"oauth":[]}],"paths":{"/a":{"get":{}}}}"#,
        r#"{"security":[{"oauth":[]}],"paths":{"/a":{"get":{}}}}"#,
        "security-removed",
    ),
    (
        "api-global-security-scope-added",
        r#"{"security":[{"oauth":[]}],"paths":{"/a":{"get":{}}}}"#,
        r#"{"security":[{"oauth":["r"]}],"paths":{"/a":{"get":{}}}}"#,
        "security-scope-added",
    ),
    (
        "webhook-removed",
        r#"{"webhooks":{"a":{"post":{}}}}"#,
        r#"{"webhooks":{}}"#,
        "webhook-removed",
    ),
];

/// Left out, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "sunset, deprecation and stability (x-sunset, x-stability-level): 24 checks",
        "Signpost has dates of its own for versions",
    ),
    ("itemSchema: 3 checks", "OpenAPI 3.2"),
    ("x-extensible-enum: 2 checks", "an extension"),
    (
        "new-request-path-parameter",
        "clients send all variables of a path, whether the old document says so or not",
    ),
    (
        "response-required-property-became-not-write-only",
        "clients ignore members that they do not know",
    ),
];

fn find(
    id: &str,
    old: &Value,
    new: &Value,
    operation: Option<&str>,
    place: Option<&str>,
    kind: &str,
) {
    let report = compared(old, new);
    let found = report.findings.iter().any(|finding| {
        let is_there = place.is_none_or(|place| finding.place.starts_with(place));
        finding.is_breaking
            && finding.kind == kind
            && is_there
            && operation.is_none_or(|operation| finding.operation == operation)
    });
    assert!(
        found,
        "{id}: no {kind} at {place:?} in {:#?}",
        report.findings
    );
    let same = compared(old, old);
    assert!(same.findings.is_empty(), "{id}: {:?}", same.findings);
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn every_check_of_breaking_changes_is_found() {
    let mut ids = BTreeSet::new();
    let mut check = |id: String, scope: Scope, old: &Value, new: &Value, kind: &str| {
        let (old, new) = (scope.document(old), scope.document(new));
        find(
            &id,
            &old,
            &new,
            Some("POST /orders"),
            Some(scope.place()),
            kind,
        );
        ids.insert(id);
    };
    for (name, keyword, kind, is_upper) in BOUNDS {
        let schema = |bound: Option<u8>| {
            let mut schema = json!({ "type": kind });
            if let Some(bound) = bound {
                schema[keyword] = bound.into();
            }
            schema
        };
        let kebab = match name {
            "max" => "maximum",
            "min" => "minimum",
            "exclusive-max" => "exclusive-maximum",
            "exclusive-min" => "exclusive-minimum",
            name => name,
        };
        let (tighter, looser) = if is_upper {
            ("decreased", "increased")
        } else {
            ("increased", "decreased")
        };
        let (loose, tight) = if is_upper { (9, 5) } else { (5, 9) };
        for (prefix, scope) in REQUEST {
            check(
                format!("{prefix}-{name}-set"),
                scope,
                &schema(None),
                &schema(Some(tight)),
                &format!("{kebab}-set"),
            );
            let is_known =
                scope != Parameter || !name.ends_with("properties") && !name.ends_with("contains");
            if is_known {
                let kind = format!("{kebab}-{tighter}");
                check(
                    format!("{prefix}-{name}-{tighter}"),
                    scope,
                    &schema(Some(loose)),
                    &schema(Some(tight)),
                    &kind,
                );
            }
        }
        for (prefix, scope) in RESPONSE {
            check(
                format!("{prefix}-{name}-unset"),
                scope,
                &schema(Some(tight)),
                &schema(None),
                &format!("{kebab}-unset"),
            );
            if scope != Header {
                let kind = format!("{kebab}-{looser}");
                check(
                    format!("{prefix}-{name}-{looser}"),
                    scope,
                    &schema(Some(tight)),
                    &schema(Some(loose)),
                    &kind,
                );
            }
        }
    }
    for (rows, scopes) in [(NARROWED, "bpqi"), (WIDENED, "bp h")] {
        for (end, letters, old, new, kind) in rows {
            for letter in letters.chars() {
                assert!(scopes.contains(letter));
                let (prefix, scope) = match (letter, rows == NARROWED) {
                    ('b', true) => REQUEST[0],
                    ('p', true) => REQUEST[1],
                    ('q', _) => REQUEST[2],
                    ('i', _) => ("request-parameter-property", ParameterProperty),
                    ('b', false) => RESPONSE[0],
                    ('p', false) => RESPONSE[1],
                    _ => RESPONSE[2],
                };
                check(
                    format!("{prefix}-{end}"),
                    scope,
                    &parsed(old),
                    &parsed(new),
                    kind,
                );
            }
        }
    }
    for (id, old, new, kind) in OPERATIONS {
        let [old, new] = [old, new].map(|operation| with_operation(parsed(operation)));
        find(id, &old, &new, Some("POST /orders"), None, kind);
        ids.insert((*id).to_owned());
    }
    for (id, old, new, kind) in DOCUMENTS {
        let [old, new] = [old, new].map(|members| {
            let mut document = with_paths(json!({}));
            document
                .as_object_mut()
                .unwrap()
                .extend(parsed(members).as_object().unwrap().clone());
            document
        });
        find(id, &old, &new, None, None, kind);
        ids.insert((*id).to_owned());
    }
    println!("{} checks are found, left out: {LEFT_OUT:#?}", ids.len());
    assert!(ids.len() >= 250, "{}", ids.len());
}

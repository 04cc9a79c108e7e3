//! Documents that cannot be read, and hostile ones.

use serde_json::json;
use signpost_openapi::{Document, compare, document::MAX_BYTES};

use crate::support::{document, with_operation, with_paths};

fn problem(text: &str) -> String {
    Document::read(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn an_error_says_where_what_and_what_is_allowed() {
    for (text, expected) in [
        (
            "{\"openapi\":\n x}",
            "line 2, column 2: expected value; allowed: JSON of at most 127 levels",
        ),
        ("a: [1\nb: 2", "line 2, column 2: "),
        (
            "openapi: 2.0",
            "/openapi: 2.0; allowed: \"3.0.x\" or \"3.1.x\"",
        ),
        (
            "swagger: '2.0'",
            "/openapi: swagger \"2.0\"; allowed: \"3.0.x\" or \"3.1.x\"",
        ),
        ("", "/openapi: missing; allowed: "),
        ("openapi: 3.0.0", "/paths: missing; allowed: an object"),
        (
            "openapi: 3.0.0\npaths: []",
            "/paths: an array; allowed: an object",
        ),
        (
            "openapi: 3.1.0\npaths: {/a: {get: {requestBody: {$ref: '#/x'}}}}",
            "/paths/~1a/get/requestBody: $ref \"#/x\"; allowed: a reference to a part that exists",
        ),
        (
            "openapi: 3.1.0\npaths: {/a: {$ref: 'a.yaml'}}",
            "/paths/~1a: $ref \"a.yaml\"; allowed: a reference into the same document, which begins with #/",
        ),
        (
            "a: 1\n---\nb: 2",
            "line 2, column 1: a second document; allowed: ",
        ),
        ("a: *b", "line 1, column 4: "),
        (
            "[a]: 1",
            "line 1, column 3: a collection as a key; allowed: a text",
        ),
    ] {
        let found = problem(text);
        assert!(found.starts_with(expected), "{text}: {found}");
    }
    let error = Document::read(&[b'a', 0xff]).unwrap_err().to_string();
    assert_eq!(error, "byte 1: no UTF-8; allowed: UTF-8");
    let error = Document::read(&vec![b' '; MAX_BYTES + 1])
        .unwrap_err()
        .to_string();
    assert_eq!(error, "the file: 16777217 bytes; allowed: at most 16 MiB");
}

#[test]
fn depth_and_aliases_are_bounded() {
    for open in ["[", "{\"a\":", "- ", "a:\n"] {
        let deep = (0..200).map(|level| match open {
            "a:\n" => format!("{}{open}", " ".repeat(level)),
            open => open.to_owned(),
        });
        assert!(
            Document::read(deep.collect::<String>().as_bytes()).is_err(),
            "{open}"
        );
    }
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let alias = format!("*a{},", level - 1).repeat(10);
        bomb += &format!("a{level}: &a{level} [{alias}]\n");
    }
    assert!(problem(&bomb).contains("more values"));
}

#[test]
fn yaml_has_the_values_that_json_has() {
    let yaml = "openapi: \"3.1.0\"\npaths:\n  /a:\n    get: &get\n      responses:\n        200: {description: yes, content: {application/json: {schema: {type: integer, maximum: 0x10, minimum: -1.5e1, enum: [1, ~, true, '2', !!str 3]}}}}\n    put:\n      <<: *get\n    post: *get\n";
    let operation = json!({ "responses": { "200": { "description": "yes", "content": { "application/json": {
        "schema": { "type": "integer", "maximum": 16, "minimum": -15.0, "enum": [1, null, true, "2", "3"] }
    } } } } });
    let json =
        with_paths(json!({ "/a": { "get": operation, "put": operation, "post": operation } }));
    let report = compare(
        &Document::read(yaml.as_bytes()).unwrap(),
        &document(&json),
        ["v1", "v2"],
    );
    assert_eq!(report.findings, []);
}

#[test]
fn schemas_that_have_themselves_end() {
    let schemas = |kind: &str| {
        json!({
            "A": { "oneOf": [{ "$ref": "#/components/schemas/A" }, { "$ref": "#/components/schemas/B" }, { "type": kind }] },
            "B": { "allOf": [{ "$ref": "#/components/schemas/B" }, { "$ref": "#/components/schemas/C" }] },
            "C": { "properties": { "z": { "type": kind }, "a": { "$ref": "#/components/schemas/A" }, "b": { "anyOf": [
                { "$ref": "#/components/schemas/A" }, { "$ref": "#/components/schemas/B" }, { "$ref": "#/components/schemas/C" },
            ] } }, "not": { "$ref": "#/components/schemas/C" }, "items": { "$ref": "#/components/schemas/D" } },
            "D": { "$ref": "#/components/schemas/D" },
        })
    };
    let with = |kind| {
        let mut value = with_operation(json!({ "requestBody": { "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/C" }
        } } } }));
        value["components"] = json!({ "schemas": schemas(kind) });
        document(&value)
    };
    let report = compare(&with("string"), &with("integer"), ["v1", "v2"]);
    assert!(report.breaking() > 0);
}

#[test]
fn work_is_bounded() {
    // Each level has the next one twice, and all differ at their end.
    let levels = |kind: &str| {
        let mut schemas = serde_json::Map::new();
        for level in 0..50 {
            let next = json!({ "$ref": format!("#/components/schemas/L{}", level + 1) });
            schemas.insert(
                format!("L{level}"),
                json!({ "properties": { "a": next, "b": next } }),
            );
        }
        schemas.insert("L50".to_owned(), json!({ "type": kind }));
        let mut value = with_operation(json!({ "requestBody": { "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/L0" }
        } } } }));
        value["components"] = json!({ "schemas": schemas });
        document(&value)
    };
    let report = compare(&levels("string"), &levels("integer"), ["v1", "v2"]);
    assert!(!report.is_complete && report.breaking() > 0);
}

#[test]
fn alternatives_of_alternatives_end_in_time() {
    let with = |kind: &str| {
        let schemas = (0..40).map(|own| {
            let others = (0..40).filter(|other| *other != own);
            let others =
                others.map(|other| json!({ "$ref": format!("#/components/schemas/S{other}") }));
            let alternatives: Vec<_> = others
                .chain([json!({ "type": kind, "maxLength": own })])
                .collect();
            (format!("S{own}"), json!({ "oneOf": alternatives }))
        });
        let mut value = with_operation(json!({ "requestBody": { "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/S0" }
        } } } }));
        value["components"] = json!({ "schemas": schemas.collect::<serde_json::Map<_, _>>() });
        document(&value)
    };
    // The limit of work ends it, whatever is found until then.
    assert!(!compare(&with("string"), &with("integer"), ["v1", "v2"]).is_complete);
}

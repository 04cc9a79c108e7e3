//! What differs between the `OpenAPI` documents of two versions: exit codes, coverage by changes, a draft of a bridge.

use end_to_end::{
    folder::Folder,
    program::{Program, output_text},
};
use serde_json::Value;

const OLD: &str = r##"openapi: 3.0.3
paths:
  /orders:
    get:
      parameters:
      - {in: query, name: pageSize, schema: {type: integer, default: 50}}
      responses:
        "200":
          content:
            application/json:
              schema:
                type: array
                items: {$ref: "#/components/schemas/Order"}
    post:
      requestBody:
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Order"}
      responses:
        "200":
          content:
            application/json:
              schema: {$ref: "#/components/schemas/Order"}
  /users/{id}:
    get:
      operationId: getUser
      responses:
        "200":
          content:
            application/json:
              schema: {type: object, properties: {name: {type: string}, tags: {type: array, items: {type: string}}}}
    delete: {responses: {"204": {}}}
components:
  schemas:
    Order:
      type: object
      properties:
        id: {type: string}
        total: {type: integer}
        city: {type: string}
        state: {type: string, enum: [open, paid]}
"##;

const NEW: &str = r##"openapi: 3.1.0
paths:
  /orders:
    get:
      parameters:
      - {in: query, name: page_size, schema: {type: integer, default: 50}}
      responses:
        "200":
          content:
            application/json:
              schema:
                type: array
                items: {$ref: "#/components/schemas/Order"}
    post:
      requestBody:
        content:
          application/json:
            schema:
              allOf:
              - {$ref: "#/components/schemas/Order"}
              - {required: [currency], properties: {currency: {type: string, default: EUR}}}
      responses:
        "201":
          content:
            application/json:
              schema: {$ref: "#/components/schemas/Order"}
  /accounts/{id}:
    get:
      operationId: getUser
      responses:
        "200":
          content:
            application/json:
              schema: {type: object, properties: {display_name: {type: string}, tags: {type: string}}}
components:
  schemas:
    Order:
      type: object
      properties:
        order_id: {type: string}
        total: {type: string}
        address: {type: object, properties: {city: {type: string}}}
        state: {type: string, enum: [open, paid, held]}
"##;

const CONFIG: &str = r#"
prefix = "Acme"
[application]
key = "0123456789abcdef0123456789abcdef"
[sign]
unsigned = "accept"
[versions.v2]
backend = "127.0.0.1:7002"
[versions.v1]
bridge = "v2"
"#;

fn folder() -> Folder {
    let folder = Folder::create();
    folder.write("old.yaml", OLD);
    folder.write("new.yaml", NEW);
    folder
}

/// The exit code, and what is printed.
fn run(folder: &Folder, arguments: &str) -> (i32, String) {
    let arguments: Vec<_> = arguments.split(' ').collect();
    let output = Program::Gateway.run(folder.path(), &arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), output_text(&output) + &error)
}

#[test]
fn the_exit_code_says_whether_something_breaks() {
    let folder = folder();
    let (code, text) = run(&folder, "versions diff v1 v2 --openapi old.yaml new.yaml");
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("GET /orders\n  PLACE "), "{text}");
    assert!(
        text.contains("  response 200 $[].total    type changed: integer → string\n"),
        "{text}"
    );
    assert!(
        text.contains("changes in 4 operations break clients; "),
        "{text}"
    );
    let (code, text) = run(&folder, "versions diff v1 v2 --openapi old.yaml old.yaml");
    assert_eq!((code, text.trim()), (0, "nothing breaks clients"));
    let (code, json) = run(
        &folder,
        "versions diff v1 v2 --openapi old.yaml new.yaml --json",
    );
    let json: Value = serde_json::from_str(&json).unwrap();
    let is_total = |finding: &&Value| finding["place"] == "response 200 $[].total";
    let found = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(is_total)
        .unwrap();
    assert_eq!((code, &found["kind"]), (1, &"type-changed".into()));
    assert_eq!(found["breaking"], true);
    folder.write("bad.json", "{\"openapi\": \"3.0.0\",\n\"paths\": [}");
    for (files, expected) in [
        ("old.yaml none.yaml", "none.yaml: No such file"),
        (
            "bad.json new.yaml",
            "bad.json: line 2, column 11: expected value; allowed: JSON",
        ),
    ] {
        let (code, text) = run(&folder, &format!("versions diff v1 v2 --openapi {files}"));
        assert_eq!(code, 2, "{text}");
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn a_draft_is_a_configuration_whose_changes_count() {
    let folder = folder();
    let (code, draft) = run(&folder, "bridge draft v1 --openapi old.yaml new.yaml");
    assert_eq!(code, 0, "{draft}");
    for step in [
        r#"{ rename = "pageSize", to = "page_size" },"#,
        r#"{ rename = "$[].order_id", to = "id" },"#,
        r#"{ to_number = "$[].total" },"#,
        r#"{ move = "$[].address.city", to = "$[].city" },"#,
        r#"{ default = "$.currency", value = "EUR" },"#,
        r#"{ to_text = "$.total" },"#,
        r#"{ path = "/users", to = "/accounts" },"#,
        r#"{ rename = "$.display_name", to = "name" },"#,
        r#"{ wrap = "$.tags", in = "[]" },"#,
        "{ status = 200 },",
        "# DELETE /users/{id}, operation: path removed. No step can do that: a converter",
        "# GET /orders, response 200 $[].state: enum value added: \"held\". Look at it",
    ] {
        assert!(draft.contains(step), "{step} in {draft}");
    }
    folder.write("gateway.toml", &format!("{CONFIG}{draft}"));
    let (code, text) = run(&folder, "check --config gateway.toml");
    assert_eq!(code, 0, "{text}");
    let diff = "versions diff v1 v2 --openapi old.yaml new.yaml --changes --config gateway.toml";
    let (code, text) = run(&folder, diff);
    assert_eq!(code, 3, "{text}");
    assert!(
        text.ends_with("without a change in the configuration: DELETE /users/{id}\n"),
        "{text}"
    );
    let rest = "[[versions.v1.changes]]\nname = \"rest\"\npaths = [\"/users/\"]\nresponse = [{ remove = \"$.x\" }]\n";
    folder.write("gateway.toml", &format!("{CONFIG}{draft}{rest}"));
    let (code, text) = run(&folder, diff);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.ends_with("each of them has a change in the configuration\n"),
        "{text}"
    );
}

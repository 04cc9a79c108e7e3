use super::*;
use crate::path::JsonPath;

fn path(text: &str) -> JsonPath {
    text.parse().unwrap()
}

fn rename(of: &str, to: &str) -> Operation {
    let (path, to) = (path(of), to.to_owned());
    Operation {
        path,
        effect: Effect::Rename { to },
    }
}

fn move_to(of: &str, to: &str) -> Operation {
    let (path, to) = (path(of), path(to));
    Operation {
        path,
        effect: Effect::Move { to },
    }
}

fn copy_to(of: &str, to: &str) -> Operation {
    let (path, to) = (path(of), path(to));
    Operation {
        path,
        effect: Effect::Copy { to },
    }
}

fn remove(of: &str) -> Operation {
    Operation {
        path: path(of),
        effect: Effect::Remove,
    }
}

fn default(of: &str, value: &str) -> Operation {
    let (path, value) = (path(of), value.to_owned());
    Operation {
        path,
        effect: Effect::Default { value },
    }
}

fn constant(of: &str, value: &str) -> Operation {
    let (path, value) = (path(of), value.to_owned());
    Operation {
        path,
        effect: Effect::Constant { value },
    }
}

fn map(of: &str, values: &[(&str, &str)]) -> Operation {
    let pair = |(text, value): &(&str, &str)| ((*text).to_owned(), (*value).to_owned());
    let values = values.iter().map(pair).collect();
    let path = path(of);
    Operation {
        path,
        effect: Effect::Map {
            values,
            otherwise: Otherwise::Fail,
        },
    }
}

fn to_text(of: &str) -> Operation {
    Operation {
        path: path(of),
        effect: Effect::ToText,
    }
}

fn to_number(of: &str) -> Operation {
    Operation {
        path: path(of),
        effect: Effect::ToNumber,
    }
}

fn object(name: &str) -> Container {
    Container::Object(name.to_owned())
}

fn wrap(of: &str, within: Container) -> Operation {
    let path = path(of);
    Operation {
        path,
        effect: Effect::Wrap { within },
    }
}

fn unwrap(of: &str, within: Container) -> Operation {
    let path = path(of);
    Operation {
        path,
        effect: Effect::Unwrap { within },
    }
}

/// Applies one operation to each body.
fn check(operation: &Operation, cases: &[(&str, &str)]) {
    for (body, expected) in cases {
        let result = apply(std::slice::from_ref(operation), body.as_bytes());
        let result = match result {
            Ok(body) => String::from_utf8(body).unwrap(),
            Err(error) => error.to_string(),
        };
        assert_eq!(result, *expected, "{operation:?} of {body}");
    }
}

#[test]
fn what_no_operation_touches_keeps_its_bytes() {
    let body = " { \"\\u0061\" : 1.50e+3 ,\"b\": [ 1 , {\"x\" :\"\\ud800\"} ],\"c\":12345678901234567890.0,\"c\":{ } } ";
    let expected =
        r#"{"z":1.50e+3,"b":[ 1 , {"x" :"\ud800"} ],"c":12345678901234567890.0,"c":{ }}"#;
    check(&rename("$.a", "z"), &[(body, expected)]);
    assert_eq!(apply(&[], body.as_bytes()).unwrap(), body.trim().as_bytes());
}

#[test]
fn members_are_renamed_in_place() {
    check(
        &rename("$.a.b", "c"),
        &[
            (
                r#"{"a":{"x":1,"b":2,"y":3}}"#,
                r#"{"a":{"x":1,"c":2,"y":3}}"#,
            ),
            (r#"{"a":{"b":null}}"#, r#"{"a":{"c":null}}"#),
            (r#"{"a":{}}"#, r#"{"a":{}}"#),
            (r#"{"a": null}"#, r#"{"a":null}"#),
            ("{}", "{}"),
            ("null", "null"),
            ("[]", "$ is not an object"),
            (r#"{"a":1}"#, "$.a is not an object"),
            (r#"{"a":{"b":1,"c":2}}"#, "$.a.c exists already"),
            (r#"{"a":{"c":2}}"#, "$.a.c exists already"),
            (r#"{"a":{"b":1,"\u0062":2}}"#, "$.a.b is there twice"),
            (r#"{"a":{},"a":{}}"#, "$.a is there twice"),
            ("{", "$ is not JSON"),
            ("", "$ is not JSON"),
        ],
    );
    check(
        &rename("$.items[].id", "ident"),
        &[
            (
                r#"{"items":[{"id":1},{},null,{"id":2}]}"#,
                r#"{"items":[{"ident":1},{},null,{"ident":2}]}"#,
            ),
            (r#"{"items":[]}"#, r#"{"items":[]}"#),
            (r#"{"items":{}}"#, "$.items is not an array"),
            (r#"{"items":[1]}"#, "$.items[] is not an object"),
            (
                r#"{"items":[{"id":1},{"ident":1}]}"#,
                "$.items[].ident exists already",
            ),
        ],
    );
}

#[test]
fn members_are_moved_and_copied() {
    check(
        &move_to("$.a.b", "$.x.y.z"),
        &[
            (r#"{"a":{"b":[ 1 ]}}"#, r#"{"a":{},"x":{"y":{"z":[ 1 ]}}}"#),
            (
                r#"{"x":{},"a":{"b":1,"c":2}}"#,
                r#"{"x":{"y":{"z":1}},"a":{"c":2}}"#,
            ),
            (r#"{"a":{"c":2}}"#, r#"{"a":{"c":2}}"#),
            (r#"{"a":null}"#, r#"{"a":null}"#),
            (r#"{"a":{"b":1},"x":null}"#, "$.x is not an object"),
            (r#"{"a":{},"x":null}"#, r#"{"a":{},"x":null}"#),
            (r#"{"a":{},"x":{"y":7}}"#, "$.x.y is not an object"),
            (r#"{"a":{},"x":{"y":{"z":null}}}"#, "$.x.y.z exists already"),
            (r#"{"a":{"b":1,"b":2}}"#, "$.a.b is there twice"),
        ],
    );
    check(
        &copy_to("$[].a", "$[].b.c"),
        &[
            (
                r#"[{"a":{"x" : 1}},{}]"#,
                r#"[{"a":{"x" : 1},"b":{"c":{"x" : 1}}},{}]"#,
            ),
            (r#"[{"b":{"c":1}}]"#, "$[].b.c exists already"),
            ("{}", "$ is not an array"),
        ],
    );
    let operations = [
        rename("$.a.b.c", "d"),
        copy_to("$.a.b", "$.e"),
        move_to("$.a", "$.f.g"),
    ];
    let result = apply(&operations, br#"{"a":{"b":{"c":0}}}"#).unwrap();
    let expected = r#"{"e":{"d":0},"f":{"g":{"b":{"d":0}}}}"#;
    assert_eq!(String::from_utf8(result).unwrap(), expected);
}

#[test]
fn members_are_removed_and_set() {
    let bodies = [
        r#"{"a":{"b":1,"c":2}}"#,
        r#"{"a":{"b":null}}"#,
        r#"{"a":{}}"#,
        r#"{"a":null}"#,
        "{}",
    ];
    let check_all = |operation: &Operation, expected: [&str; 5]| {
        let mut cases: Vec<_> = bodies.into_iter().zip(expected).collect();
        cases.push((r#"{"a":[]}"#, "$.a is not an object"));
        cases.push((r#"{"a":{"b":1,"b":1}}"#, "$.a.b is there twice"));
        check(operation, &cases);
    };
    let after = [
        r#"{"a":{"c":2}}"#,
        r#"{"a":{}}"#,
        r#"{"a":{}}"#,
        bodies[3],
        "{}",
    ];
    check_all(&remove("$.a.b"), after);
    let after = [
        bodies[0],
        bodies[1],
        r#"{"a":{"b":[ 7 ]}}"#,
        bodies[3],
        "{}",
    ];
    check_all(&default("$.a.b", " [ 7 ] "), after);
    let seven = r#"{"a":{"b":[ 7 ]}}"#;
    let after = [r#"{"a":{"b":[ 7 ],"c":2}}"#, seven, seven, bodies[3], "{}"];
    check_all(&constant("$.a.b", "[ 7 ]"), after);
}

#[test]
fn strings_are_mapped() {
    check(
        &map(
            "$[]",
            &[("open", "\"OPEN\""), ("closed", "2"), ("é", "{ }")],
        ),
        &[
            (
                r#"["open","clos\u0065d",null,"\u00e9"]"#,
                r#"["OPEN",2,null,{ }]"#,
            ),
            (r#"["Open"]"#, "$[] is a string that the map does not have"),
            (
                r#"["\ud800"]"#,
                "$[] is a string that the map does not have",
            ),
            ("[true]", "$[] is not a string"),
            ("[[]]", "$[] is not a string"),
        ],
    );
}

#[test]
fn numbers_keep_their_digits_as_text() {
    check(
        &to_text("$.n"),
        &[
            (r#"{"n":1.50E+400}"#, r#"{"n":"1.50E+400"}"#),
            (r#"{"n":-0}"#, r#"{"n":"-0"}"#),
            (r#"{"n":null}"#, r#"{"n":null}"#),
            ("{}", "{}"),
            (r#"{"n":"1"}"#, "$.n is not a number"),
            (r#"{"n":{}}"#, "$.n is not a number"),
        ],
    );
    check(
        &to_number("$.n"),
        &[
            (r#"{"n":"1.50E+400"}"#, r#"{"n":1.50E+400}"#),
            (r#"{"n":"\u0031"}"#, r#"{"n":1}"#),
            (r#"{"n":null}"#, r#"{"n":null}"#),
            (r#"{"n":""}"#, "$.n is a string, but not of a number"),
            (r#"{"n":" 1"}"#, "$.n is a string, but not of a number"),
            (r#"{"n":"1,2"}"#, "$.n is a string, but not of a number"),
            (r#"{"n":1}"#, "$.n is not a string"),
        ],
    );
}

#[test]
fn values_are_wrapped_and_unwrapped() {
    check(
        &wrap("$", object("data")),
        &[("[ 1 ]", r#"{"data":[ 1 ]}"#), ("null", r#"{"data":null}"#)],
    );
    check(
        &wrap("$.a", Container::Array),
        &[(r#"{"a":{ }}"#, r#"{"a":[{ }]}"#), ("{}", "{}")],
    );
    check(
        &unwrap("$", object("data")),
        &[
            (r#"{"meta":0,"data":[ 1 ]}"#, "[ 1 ]"),
            ("{}", "$ does not have the member to unwrap"),
            (
                r#"{"data":1,"d\u0061ta":2}"#,
                "$ has the member to unwrap twice",
            ),
            ("null", "$ is not an object"),
        ],
    );
    check(
        &unwrap("$.a", Container::Array),
        &[
            (r#"{"a":[ { } ]}"#, r#"{"a":{ }}"#),
            (r#"{"a":[]}"#, "$.a does not have exactly one item"),
            (r#"{"a":[1,2]}"#, "$.a does not have exactly one item"),
            (r#"{"a":{}}"#, "$.a is not an array"),
            ("{}", "{}"),
        ],
    );
}

#[test]
fn operations_that_no_configuration_may_have_are_not_applied() {
    let message = |operation: Operation| {
        let failed = apply(&[operation], br#"{"a":{"b":"x"}}"#).unwrap_err();
        failed.to_string()
    };
    let is_not_allowed = "has an operation that is not allowed";
    assert_eq!(message(rename("$", "a")), format!("$ {is_not_allowed}"));
    assert_eq!(
        message(move_to("$.a", "$.a.c")),
        format!("$.a {is_not_allowed}")
    );
    assert_eq!(message(remove("$[]")), format!("$[] {is_not_allowed}"));
    let has_no_value = "has no valid value in the configuration";
    assert_eq!(message(constant("$.c", "{")), format!("$.c {has_no_value}"));
    assert_eq!(
        message(map("$.a.b", &[("x", "")])),
        format!("$.a.b {has_no_value}")
    );
}

#[test]
fn any_nesting_needs_little_stack() {
    let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    let many: Vec<_> = (0..1000).map(|_| wrap("$", Container::Array)).collect();
    let result = apply(&many, deep.as_bytes()).unwrap();
    assert_eq!(result.len(), deep.len() + 2 * many.len());
    let mut document = Node::read(b"1").unwrap();
    for operation in &many {
        change(operation, &mut document).unwrap();
    }
    let inner = document.items().unwrap().pop().unwrap();
    assert!(inner.text().is_some(), "only the outermost is read");
}

#[test]
fn what_a_map_does_not_have_stays_or_is_replaced() {
    let of = |otherwise| {
        let mut operation = map("$.a", &[("on", "true")]);
        if let Effect::Map { otherwise: of, .. } = &mut operation.effect {
            *of = otherwise;
        }
        operation
    };
    let none = r#"{"a":null}"#;
    check(
        &of(Otherwise::Keep),
        &[
            (r#"{"a":"on"}"#, r#"{"a":true}"#),
            (r#"{"a":"x"}"#, r#"{"a":"x"}"#),
            (r#"{"a":1}"#, "$.a is not a string"),
            (none, none),
        ],
    );
    check(
        &of(Otherwise::Value("[1]".to_owned())),
        &[
            (r#"{"a":"on"}"#, r#"{"a":true}"#),
            (r#"{"a":"x"}"#, r#"{"a":[1]}"#),
            (none, none),
        ],
    );
    assert_eq!(of(Otherwise::Keep).inverse(), None);
    assert!(of(Otherwise::Value("[".to_owned())).check().is_err());
}

#[test]
fn null_is_removed_and_a_first_item_is_taken_out() {
    let operation = Operation {
        path: path("$[].a"),
        effect: Effect::RemoveNull,
    };
    let body = r#"[{"a":null,"b":1},{"a":0},{},null]"#;
    check(
        &operation,
        &[
            (body, r#"[{"b":1},{"a":0},{},null]"#),
            (r#"{"a":1}"#, "$ is not an array"),
        ],
    );
    check(
        &unwrap("$.a", Container::First),
        &[
            (r#"{"a":[1,2]}"#, r#"{"a":1}"#),
            (r#"{"a":[]}"#, r#"{"a":null}"#),
            (r#"{"a":1}"#, "$.a is not an array"),
        ],
    );
    check(
        &wrap("$.a", Container::First),
        &[
            (r#"{"a":1}"#, r#"{"a":[1]}"#),
            (r#"{"a":null}"#, r#"{"a":[]}"#),
        ],
    );
}

use super::*;
use crate::comparison::{Kinds, MAX_PATHS};

fn kinds(kinds: Kinds) -> String {
    let letter = |kind| match kind {
        Kind::Missing => 'M',
        Kind::Extra => 'E',
        Kind::Type => 'T',
        Kind::Value => 'V',
    };
    let found = Kind::ALL.into_iter().filter(|&kind| kinds.contains(kind));
    found.map(letter).collect()
}

fn compare_texts(one: &str, other: &str, ignore: &[&str]) -> Comparison {
    let ignore: Vec<_> = ignore.iter().map(|path| path.parse().unwrap()).collect();
    compare(one.as_bytes(), other.as_bytes(), &ignore)
}

/// The differences, each as a path, its kinds and the shapes of both sides.
fn differences(comparison: &Comparison) -> Vec<String> {
    let mut differences = Vec::new();
    for (path, finding) in comparison.paths() {
        if let Some([one, other]) = finding.shapes() {
            differences.push(format!("{path} {} {one} {other}", kinds(finding.kinds())));
        }
    }
    assert_eq!(comparison.differs(), !differences.is_empty());
    differences
}

fn check(one: &str, other: &str, expected: &[&str]) {
    let comparison = compare_texts(one, other, &[]);
    assert_eq!(differences(&comparison), expected, "{one} {other}");
    assert!(!compare_texts(one, one, &[]).differs(), "{one}");
}

#[test]
fn equal_bodies_have_no_differences() {
    for (one, other) in [
        (
            r#"{"a":1,"b":[true,null]}"#,
            " {\"b\": [true , null],\n\"\\u0061\":1}",
        ),
        (r#""\u00e9/""#, r#""é\/""#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"\ud800":"\udc00"}"#, r#"{"\ud800":"\udc00"}"#),
        ("{", "{"),
        ("", ""),
    ] {
        check(one, other, &[]);
    }
}

#[test]
fn each_kind_of_difference_is_found() {
    check("1", "1.0", &["$ V number number"]);
    check("1e2", "1E2", &["$ V number number"]);
    check("true", "false", &["$ V boolean boolean"]);
    check("\"a\"", "\"張a\"", &["$ V string(1) string(2)"]);
    check(r#""\ud800""#, r#""\uD800""#, &["$ V string(6) string(6)"]);
    check("null", "{}", &["$ T null object(0)"]);
    check(
        r#"{"a":{"x":1},"b":2,"c":"1"}"#,
        r#"{"c":1,"b":3,"d":[0,0]}"#,
        &[
            "$.a M object(1) absent",
            "$.b V number number",
            "$.c T string(1) number",
            "$.d E absent array(2)",
        ],
    );
    check(
        r#"{"\ud800":1}"#,
        r#"{"\uD800":1}"#,
        &["$.* ME number absent"],
    );
}

#[test]
fn items_are_compared_by_index_at_one_path() {
    check("[1,2,3]", "[1]", &["$[] M number absent"]);
    check("[]", "[[],0]", &["$[] E absent array(0)"]);
    check(
        r#"{"items":[{"id":1},{"id":2},{"x":0}]}"#,
        r#"{"items":[{"id":1},{"id":"2"},{"id":3},{}]}"#,
        &[
            "$.items[] E absent object(0)",
            "$.items[].id ET number string(1)",
            "$.items[].x M number absent",
        ],
    );
    let comparison = compare_texts(
        r#"{"items":[{"id":1},{}]}"#,
        r#"{"items":[{"id":1},{}]}"#,
        &[],
    );
    let paths: Vec<_> = comparison.paths().map(|(path, _)| path).collect();
    assert_eq!(paths, ["$", "$.items", "$.items[]", "$.items[].id"]);
}

#[test]
fn a_body_that_is_not_json_is_a_difference() {
    check("{}", "{", &["$ T object(0) not JSON"]);
    check("", "[1]", &["$ T not JSON array(1)"]);
    check("a", "b", &["$ V not JSON not JSON"]);
}

#[test]
fn what_is_ignored_is_not_compared() {
    let one = r#"{"a":1,"b":{"c":[{"id":1,"at":2}]},"1234":0,"x.y":0}"#;
    let other = r#"{"b":{"c":[{"id":2,"at":3}]},"d":4,"5678":1}"#;
    let all = |ignore: &[&str]| differences(&compare_texts(one, other, ignore));
    assert_eq!(all(&["$"]), [""; 0]);
    assert_eq!(all(&["$.a", "$.b.c", "$.d", "$.*"]), [""; 0]);
    assert_eq!(
        all(&["$.b", "$.d", "$.*", "$.b.c"]),
        ["$.a M number absent"]
    );
    assert_eq!(
        all(&["$.b.c[]", "$.a", "$.d", "$.1234"]),
        ["$.* ME number absent"]
    );
    assert_eq!(
        all(&["$.b.c[].id", "$.*", "$.a", "$.d.e"]),
        ["$.b.c[].at V number number", "$.d E absent number"]
    );
    let comparison = compare_texts(one, other, &["$.b.c[].id"]);
    assert!(comparison.path("$.b.c[].id").is_none());
}

#[test]
fn names_that_look_like_data_are_not_shown() {
    check(
        r#"{"users":{"anna@b.example":{"age":1},"12345":{"age":2}}}"#,
        r#"{"users":{"anna@b.example":{"age":1},"12345":{"age":3}}}"#,
        &["$.users.*.age V number number"],
    );
}

#[test]
fn deep_containers_are_compared_by_their_text() {
    let nested =
        |levels: usize, inner: &str| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
    let path = format!("${}", "[]".repeat(MAX_DEPTH));
    check(&nested(31, "[ 1]"), &nested(31, "[1]"), &[]);
    check(
        &nested(32, "[ 1]"),
        &nested(32, "[1]"),
        &[&format!("{path} V array(1) array(1)")],
    );
    check(&nested(32, "\"a\""), &nested(32, r#""\u0061""#), &[]);
    let (one, other) = (nested(1 << 18, ""), nested(1 << 18, "1"));
    check(&one, &other, &[&format!("{path} V array(1) array(1)")]);
}

#[test]
fn different_paths_are_bounded() {
    let name = |number: usize| {
        let letter = |digit: u32| char::from_digit(digit, 36).unwrap();
        let digits = [number / 676, number / 26 % 26, number % 26];
        digits
            .map(|digit| letter(digit as u32 + 10))
            .iter()
            .collect::<String>()
    };
    let names = 0..MAX_PATHS + 9;
    let members: Vec<_> = names
        .map(|number| format!("\"{}\":1", name(number)))
        .collect();
    let body = format!("{{{}}}", members.join(","));
    let comparison = compare_texts(&body, &body, &[]);
    assert_eq!(comparison.paths().count(), MAX_PATHS);
    assert_eq!(comparison.others().map(kinds), Some(String::new()));
    assert!(!comparison.differs());
    let comparison = compare_texts(&body, "{}", &[]);
    assert_eq!(comparison.others().map(kinds), Some("M".to_owned()));
    let mut comparison = compare_texts(&body, &body, &[]);
    comparison.add("status", Kind::Value, ["200", "201"]);
    assert!(comparison.path("status").is_none() && comparison.differs());
}

#[test]
fn members_with_equal_values_may_be_renamed() {
    let renames = |one: &str, other: &str, ignore: &[&str]| {
        let comparison = compare_texts(one, other, ignore);
        let shown = |(from, to): &(String, String)| format!("{from} {to}");
        comparison.renames().iter().map(shown).collect::<Vec<_>>()
    };
    let (one, other) = (
        r#"{"a":{"x":[1],"y":2},"b":7}"#,
        r#"{"c":{"y":2,"x":[ 1 ]},"b":7,"d":8}"#,
    );
    assert_eq!(renames(one, other, &[]), ["$.a $.c"]);
    assert_eq!(renames(one, other, &["$.a"]), [""; 0]);
    assert_eq!(renames(one, other, &["$.c"]), [""; 0]);
    assert_eq!(
        renames(r#"{"a":1}"#, r#"{"b":1,"c":1}"#, &[]),
        ["$.a $.b", "$.a $.c"]
    );
    assert_eq!(renames(r#"{"a":1}"#, r#"{"1234":1}"#, &[]), [""; 0]);
    let items = r#"[{"id":1},{"id":2},{}]"#;
    assert_eq!(
        renames(items, r#"[{"ident":1},{"ident":2},{}]"#, &[]),
        ["$[].id $[].ident"]
    );
    assert_eq!(
        renames(items, r#"[{"ident":1},{"ident":3},{}]"#, &[]),
        [""; 0]
    );
    assert_eq!(
        renames(items, r#"[{"ident":7},{"ident":2},{}]"#, &[]),
        [""; 0]
    );
}

#[test]
fn the_search_for_renames_is_bounded() {
    let members = |prefix: char, count: u8, value: &str| {
        let name = |at: u8| format!("\"{prefix}{}\":{value}", char::from(b'a' + at));
        (0..count).map(name).collect::<Vec<_>>().join(",")
    };
    let object = |prefix, value| format!("{{{}}}", members(prefix, 20, value));
    let comparison = compare_texts(&object('x', "1"), &object('y', "1"), &[]);
    assert_eq!(comparison.renames().len(), 20 * MAX_ORIGINS);

    let objects = |prefix| {
        let object = |at: u8| {
            format!(
                "\"o{}\":{{{}}}",
                char::from(b'a' + at),
                members(prefix, 4, "1")
            )
        };
        format!("{{{}}}", (0..26).map(object).collect::<Vec<_>>().join(","))
    };
    let comparison = compare_texts(&objects('x'), &objects('y'), &[]);
    assert_eq!(comparison.renames().len(), MAX_RENAMES);

    let long = format!("\"{}\"", "a".repeat(RENAME_BYTES / 60));
    let comparison = compare_texts(&object('x', &long), &object('y', &long), &[]);
    assert_eq!(comparison.renames(), [], "it would cost too much");
    let pair = |name: &str| format!("[{},{{\"{name}\":1}}]", object('x', &long));
    let other = pair("new").replace("\"x", "\"y");
    let comparison = compare_texts(&pair("old"), &other, &[]);
    let rename = ("$[].old".to_owned(), "$[].new".to_owned());
    assert_eq!(
        comparison.renames(),
        [rename],
        "the other object is passed over"
    );
}

//! JSON bodies and operations on them.

use proptest::{collection::vec, prelude::*};

use super::{Inputs, check, damage::damaged, text};

const TOKENS: &[&[u8]] = &[
    b"\n",
    b"\"",
    b"\\",
    b"\\ud800",
    b",",
    b":",
    b"{",
    b"}",
    b"[",
    b"]",
    b" ",
    b"0",
    b"-",
    b"e9",
    b".0",
    b"null",
    b"\"a\":",
    b"{\"a\":1}",
    b"\xff",
    b";",
];

/// A path that leads to a member.
const MEMBER: &str = r"\$(\.[abc]|\[\]){0,1}\.[abc]";

fn value() -> Inputs {
    let leaf =
        text(r#"null|true|-?[1-9]?[0-9](\.[05])?(e[1-9])?|"[abc0-9]?"|"(\\u0061|\\"|\\ud800)?""#);
    let value = leaf.prop_recursive(3, 16, 3, |value| {
        let member = (text(r#""(a|b|c|\\u0061)" ?"#), value.clone());
        let member = member.prop_map(|(name, value)| [&name[..], b":", &value].concat());
        prop_oneof![
            3 => vec(member, 0..3).prop_map(|members| enclosed(b"{", &members, b"}")),
            1 => vec(value, 0..3).prop_map(|items| enclosed(b"[ ", &items, b"]")),
        ]
    });
    value.boxed()
}

fn enclosed(begin: &[u8], parts: &[Vec<u8>], end: &[u8]) -> Vec<u8> {
    [begin, &parts.join(&b", "[..]), end].concat()
}

fn operation() -> Inputs {
    let name_and_path = |name: &str, end: &str| text(&format!("{name} {MEMBER}{end}"));
    prop_oneof![
        name_and_path("rename", " [abc]"),
        name_and_path("(move|copy)", r" \$\.[abc]"),
        name_and_path("(remove|to_text|to_number)", ""),
        name_and_path("(default|constant)", r#" (1|"a"|\{\})"#),
        name_and_path("map", r#" a="[ab]",b="[abc]""#),
        name_and_path("(wrap|unwrap)", "( [abc])?"),
        text(r"(wrap|unwrap) \$( [abc])?"),
    ]
    .boxed()
}

#[test]
fn bodies() {
    let operations = vec(operation(), 0..4).prop_map(|all| all.join(&b"; "[..]));
    let inputs = (operations, value(), value());
    let inputs = inputs
        .prop_map(|(operations, other, body)| [&operations[..], &other, &body].join(&b"\n"[..]));
    check(fuzz::bridge, damaged(inputs.boxed(), TOKENS), 2000, 15..=75);
}

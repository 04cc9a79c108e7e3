//! Keys of a small program, and the examples that explain them.

use super::*;
use crate::config::Invalid;

const EXAMPLE: &str = r#"# Of the whole file.
#
#   a command

# How large it is: 1 to 9.
# Two lines.
# size = 4

# The table.
[places.here]
path = "x" # where
# ports = [{ number = 1 }]
# grace_seconds = 2
# About both.
# one = "a#b"
# two = "b"
# [[places.here.items]]
# name = "n"                 # a name
"#;

fn read(root: &mut Section<'_>) -> Read<()> {
    let size = root.number("size", 1..=9_u8, 4);
    let places = root.sections("places", |_, place| {
        let path = place.required::<String>("path", "a path");
        place.describe_item("ports", |port| port.required_number("number", &(1..=9_u8)));
        let items = place.tables("items", 3, |item| {
            let name = item.secret("name");
            let grace = item.seconds("grace_seconds", 1..=60, 2);
            Ok((name?, grace?))
        });
        Ok((path?, items?))
    });
    let tls = root.optional_section("tls", |tls| {
        tls.section("inner", |inner| {
            Ok((inner.flag("is_on", true)?, inner.file("file")?))
        })
    });
    let (_, _, _) = (size?, places?, tls?);
    Err(Invalid)
}

fn key<'k>(keys: &'k [Key], name: &str) -> &'k Key {
    let found = keys.iter().find(|key| key.key == name);
    found.unwrap_or_else(|| panic!("{name} in {keys:?}"))
}

#[test]
fn every_key_has_what_its_reader_allows() {
    let keys = keys(read, &[EXAMPLE], |key| key.starts_with("tls."));
    let names: Vec<_> = keys.iter().map(|key| key.key.as_str()).collect();
    let expected = [
        "watch",
        "size",
        "places.NAME",
        "places.NAME.path",
        "places.NAME.ports[].number",
        "places.NAME.items",
        "places.NAME.items[].name",
        "places.NAME.items[].grace_seconds",
        "tls.inner.is_on",
        "tls.inner.file",
    ];
    assert_eq!(names, expected);
    let size = Key {
        key: "size".to_owned(),
        meaning: "How large it is: 1 to 9. Two lines.".to_owned(),
        unit: None,
        allowed: "a whole number from 1 to 9".to_owned(),
        default: Some("4".to_owned()),
        reload: true,
        schema: serde_json::json!({ "type": "integer", "minimum": 1, "maximum": 9 }),
    };
    assert_eq!(keys[1], size);
    assert!(key(&keys, "places.NAME.path").reload && !key(&keys, "tls.inner.is_on").reload);
    let grace = key(&keys, "places.NAME.items[].grace_seconds");
    assert_eq!(
        (grace.unit.as_deref(), grace.default.as_deref()),
        (Some("seconds"), Some("2"))
    );
    assert_eq!(key(&keys, "places.NAME.items[].name").default, None);
}

#[test]
fn a_meaning_is_the_comment_above_or_behind_or_that_of_the_table() {
    let keys = keys(read, &[EXAMPLE], |_| false);
    for (name, meaning) in [
        ("watch", ""),
        ("places.NAME", "The table."),
        ("places.NAME.path", "where"),
        ("places.NAME.ports[].number", "The table."),
        ("places.NAME.items[].name", "a name"),
        (
            "places.NAME.items[].grace_seconds",
            "As places.NAME.grace_seconds.",
        ),
    ] {
        assert_eq!(key(&keys, name).meaning, meaning, "{name}");
    }
    let explained = explained(EXAMPLE);
    let two = explained
        .iter()
        .find(|one| one.key == "places.here.two")
        .unwrap();
    assert_eq!((two.value, two.meaning.as_str()), ("\"b\"", "About both."));
}

#[test]
fn a_name_of_a_file_is_found() {
    let item = "places.NAME.items[].name";
    for name in ["places.x.items[3].name", "places.NAME.items[].name"] {
        assert!(is_named(item, name) && is_below(item, name), "{name}");
    }
    for name in ["places", "places.x", "places.x.items", "places.x.items[0]"] {
        assert!(is_below(item, name) && !is_named(item, name), "{name}");
    }
    for name in [
        "place",
        "places.x.item",
        "places.x.items[0].name.more",
        "places.x.y.name",
    ] {
        assert!(!is_below(item, name), "{name}");
    }
}

use super::*;

fn path(text: &str) -> JsonPath {
    text.parse().unwrap()
}

fn transfer(of: &str, to: &str) -> [Operation; 2] {
    let (path, to) = (path(of), path(to));
    let (copy_path, copy_to) = (path.clone(), to.clone());
    [
        Operation {
            path,
            effect: Effect::Move { to },
        },
        Operation {
            path: copy_path,
            effect: Effect::Copy { to: copy_to },
        },
    ]
}

#[test]
fn only_members_are_named_removed_and_set() {
    for (text, is_allowed) in [
        ("$.a", true),
        ("$[].a", true),
        ("$", false),
        ("$.a[]", false),
    ] {
        let value = "1".to_owned();
        let operations = [
            Operation {
                path: path(text),
                effect: Effect::Rename { to: "b".to_owned() },
            },
            Operation {
                path: path(text),
                effect: Effect::Remove,
            },
            Operation {
                path: path(text),
                effect: Effect::Default {
                    value: value.clone(),
                },
            },
            Operation {
                path: path(text),
                effect: Effect::Constant { value },
            },
        ];
        for operation in operations {
            assert_eq!(operation.check().is_ok(), is_allowed, "{operation:?}");
        }
    }
}

#[test]
fn names_fit_into_paths() {
    for (name, is_allowed) in [
        ("b", true),
        ("张*", true),
        ("", false),
        ("b.c", false),
        ("a", false),
        ("b c", false),
    ] {
        let to = name.to_owned();
        let rename = Operation {
            path: path("$.a"),
            effect: Effect::Rename { to: to.clone() },
        };
        assert_eq!(rename.check().is_ok(), is_allowed, "{name}");
        let wrap = Operation {
            path: path("$"),
            effect: Effect::Wrap {
                within: Container::Object(to),
            },
        };
        assert_eq!(wrap.check().is_ok(), is_allowed || name == "a", "{name}");
    }
}

#[test]
fn a_target_is_in_the_same_item_and_not_inside_the_source() {
    for (of, to, is_allowed) in [
        ("$.a", "$.b", true),
        ("$.a.b", "$.c.d.e", true),
        ("$.a[].b", "$.a[].c.d", true),
        ("$.a", "$.ab", true),
        ("$.a[].b", "$.c[].b", false),
        ("$.a[].b", "$.c", false),
        ("$.c", "$.a[].b", false),
        ("$.a[][].b", "$.a[].b", false),
        ("$.a", "$.a", false),
        ("$.a", "$.a.b", false),
        ("$.a.b", "$.a", false),
        ("$", "$.a", false),
        ("$.a", "$", false),
        ("$[]", "$[].a", false),
    ] {
        for operation in transfer(of, to) {
            assert_eq!(operation.check().is_ok(), is_allowed, "{operation:?}");
        }
    }
}

#[test]
fn values_are_json() {
    for (text, is_allowed) in [
        ("1", true),
        (" [ ] ", true),
        ("\"\\ud800\"", true),
        ("", false),
        ("a", false),
        ("1 2", false),
    ] {
        let value = text.to_owned();
        let values = vec![("a".to_owned(), value.clone())];
        let operations = [
            Operation {
                path: path("$.a"),
                effect: Effect::Default {
                    value: value.clone(),
                },
            },
            Operation {
                path: path("$.a"),
                effect: Effect::Constant { value },
            },
            Operation {
                path: path("$.a"),
                effect: Effect::Map {
                    values,
                    otherwise: Otherwise::Fail,
                },
            },
        ];
        for operation in operations {
            assert_eq!(operation.check().is_ok(), is_allowed, "{operation:?}");
        }
    }
}

#[test]
fn a_map_has_each_text_once() {
    let pair = |text: &str| (text.to_owned(), "1".to_owned());
    for (values, is_allowed) in [
        (vec![], false),
        (vec![pair("a"), pair("")], true),
        (vec![pair("a"), pair("a")], false),
    ] {
        let map = Operation {
            path: path("$"),
            effect: Effect::Map {
                values,
                otherwise: Otherwise::Fail,
            },
        };
        assert_eq!(map.check().is_ok(), is_allowed, "{map:?}");
    }
}

#[test]
fn a_move_is_undone_if_it_creates_no_object() {
    for (of, to, has_inverse) in [
        ("$.a", "$.b", true),
        ("$.a.b.c", "$.a.d", true),
        ("$.a[].b.c", "$.a[].b2", true),
        ("$.a", "$.b.c", false),
        ("$.a.b", "$.c.d", false),
        ("$.a.b", "$.a.b.c", false),
    ] {
        let [moved, copied] = transfer(of, to);
        let back = Operation {
            path: path(to),
            effect: Effect::Move { to: path(of) },
        };
        assert_eq!(moved.inverse(), has_inverse.then_some(back), "{of} {to}");
        let removed = Operation {
            path: path(to),
            effect: Effect::Remove,
        };
        assert_eq!(
            copied.inverse(),
            has_inverse.then_some(removed),
            "{of} {to}"
        );
    }
}

#[test]
fn a_map_is_undone_if_it_is_one_to_one_between_strings() {
    let inverse = |values: &[(&str, &str)]| {
        let pair = |(text, value): &(&str, &str)| ((*text).to_owned(), (*value).to_owned());
        let values = values.iter().map(pair).collect();
        let inverse = Operation {
            path: path("$"),
            effect: Effect::Map {
                values,
                otherwise: Otherwise::Fail,
            },
        }
        .inverse();
        inverse.map(|inverse| match inverse {
            Operation {
                effect:
                    Effect::Map {
                        values,
                        otherwise: Otherwise::Fail,
                    },
                ..
            } => values,
            other => panic!("{other:?}"),
        })
    };
    let owned = |text: &str, value: &str| (text.to_owned(), value.to_owned());
    let expected = vec![owned("1", "\"a\""), owned("b", r#""\"\n""#)];
    let values = [("a", " \"1\""), ("\"\n", "\"\\u0062\"")];
    assert_eq!(inverse(&values), Some(expected));
    assert_eq!(inverse(&[("a", "\"b\""), ("c", "\"\\u0062\"")]), None);
    assert_eq!(inverse(&[("a", "1")]), None);
    assert_eq!(inverse(&[("a", "null")]), None);
    assert_eq!(inverse(&[("a", r#""\ud800""#)]), None);
}

#[test]
fn what_drops_or_adds_values_is_not_undone() {
    let array = Container::Array;
    let object = Container::Object("a".to_owned());
    let value = "1".to_owned();
    for (operation, has_inverse) in [
        (
            Operation {
                path: path("$.a"),
                effect: Effect::Remove,
            },
            false,
        ),
        (
            Operation {
                path: path("$.a"),
                effect: Effect::Default {
                    value: value.clone(),
                },
            },
            false,
        ),
        (
            Operation {
                path: path("$.a"),
                effect: Effect::Constant { value },
            },
            false,
        ),
        (
            Operation {
                path: path("$"),
                effect: Effect::Unwrap {
                    within: object.clone(),
                },
            },
            false,
        ),
        (
            Operation {
                path: path("$"),
                effect: Effect::Unwrap {
                    within: array.clone(),
                },
            },
            true,
        ),
        (
            Operation {
                path: path("$"),
                effect: Effect::Wrap { within: object },
            },
            true,
        ),
        (
            Operation {
                path: path("$"),
                effect: Effect::Wrap { within: array },
            },
            true,
        ),
        (
            Operation {
                path: path("$"),
                effect: Effect::ToText,
            },
            true,
        ),
        (
            Operation {
                path: path("$"),
                effect: Effect::ToNumber,
            },
            true,
        ),
        (
            Operation {
                path: path("$.a"),
                effect: Effect::Rename { to: "b".to_owned() },
            },
            true,
        ),
    ] {
        let back = operation.inverse().and_then(|inverse| inverse.inverse());
        let is_symmetric = matches!(&operation, Operation { effect: Effect::Wrap { within }, .. } if *within != Container::Array);
        assert_eq!(operation.inverse().is_some(), has_inverse, "{operation:?}");
        assert!(back.is_none_or(|back| back == operation || is_symmetric));
    }
}

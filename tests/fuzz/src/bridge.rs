//! Changes of JSON bodies, what undoes them, and what differs between two bodies.

use serde_json::value::RawValue;
use signpost_bridge::{Comparison, Container, Effect, Kind, Operation, Otherwise, apply, compare};

use crate::{naive::json as naive, query_and_body};

/// Largest number of operations that are read.
const MAX_OPERATIONS: usize = 16;

/// Applies the operations in the first line to the body behind the second line, undoes them, and compares the body with
/// the result and with the second line.
///
/// # Panics
///
/// When a rule is broken: a result that is not JSON, an inverse that does not restore the body, a difference between
/// equal bodies or none between others.
pub fn bridge(input: &[u8]) -> bool {
    let (line, rest) = query_and_body(input);
    let (other, body) = query_and_body(rest);
    let line = String::from_utf8_lossy(line);
    let operations = line.split(';').filter_map(read).take(MAX_OPERATIONS);
    let operations: Vec<_> = operations.collect();

    assert_compared(body, body);
    assert_compared(other, body);
    let after = apply(&operations, body);
    let Ok(after) = after else {
        return false;
    };
    assert!(is_json(body) && is_json(&after), "the result is not JSON");
    assert_compared(body, &after);
    if naive::is_shallow(body) {
        assert_inverses(&operations, body);
    }
    true
}

fn is_json(body: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(body).is_ok()
}

/// Applies the operations that have an inverse one by one, then their inverses.
fn assert_inverses(operations: &[Operation], body: &[u8]) {
    let mut inverses = Vec::new();
    let mut last = body.to_vec();
    for operation in operations {
        let next = apply(std::slice::from_ref(operation), &last);
        if let (Some(inverse), Ok(next)) = (operation.inverse(), next) {
            inverses.insert(0, inverse);
            last = next;
        }
    }
    let restored = apply(&inverses, &last).expect("an inverse fits");
    let comparison = compare(body, &restored, &[]);
    assert!(!comparison.differs(), "not restored: {comparison:?}");
}

/// Compares two bodies in both directions, and with the naive comparison.
fn assert_compared(one: &[u8], other: &[u8]) {
    let there = compare(one, other, &[]);
    let back = compare(other, one, &[]);
    assert!(one != other || !there.differs(), "equal bodies differ");
    assert_eq!(there.differs(), back.differs(), "in the other order");
    if there.others().is_none() {
        assert_opposite(&there, &back);
        assert_eq!(there.paths().count(), back.paths().count(), "paths");
    }
    if let (Some(one), Some(other)) = (naive::read(one), naive::read(other)) {
        assert_eq!(there.differs(), one != other, "{there:?}");
    }
}

fn assert_opposite(there: &Comparison, back: &Comparison) {
    for (path, finding) in there.paths() {
        let opposite = back.path(path).expect("both have the same paths");
        for (kind, exchanged) in [
            (Kind::Missing, Kind::Extra),
            (Kind::Extra, Kind::Missing),
            (Kind::Type, Kind::Type),
            (Kind::Value, Kind::Value),
        ] {
            let has = finding.kinds().contains(kind);
            assert_eq!(has, opposite.kinds().contains(exchanged), "{path}");
        }
    }
}

/// Reads an operation: its name, its path and what it needs, with spaces between them. `None` if it is not allowed.
fn read(text: &str) -> Option<Operation> {
    let mut words = text.split_ascii_whitespace();
    let (name, path) = (words.next()?, words.next()?.parse().ok()?);
    let mut word = || words.next().map(str::to_owned);
    let container = |name: Option<String>| name.map_or(Container::Array, Container::Object);
    let operation = match name {
        "rename" => Operation {
            path,
            effect: Effect::Rename { to: word()? },
        },
        "move" => Operation {
            path,
            effect: Effect::Move {
                to: word()?.parse().ok()?,
            },
        },
        "copy" => Operation {
            path,
            effect: Effect::Copy {
                to: word()?.parse().ok()?,
            },
        },
        "remove" => Operation {
            path,
            effect: Effect::Remove,
        },
        "default" => Operation {
            path,
            effect: Effect::Default { value: word()? },
        },
        "constant" => Operation {
            path,
            effect: Effect::Constant { value: word()? },
        },
        "map" => Operation {
            path,
            effect: Effect::Map {
                values: pairs(&word()?)?,
                otherwise: Otherwise::Fail,
            },
        },
        "to_text" => Operation {
            path,
            effect: Effect::ToText,
        },
        "to_number" => Operation {
            path,
            effect: Effect::ToNumber,
        },
        "wrap" => Operation {
            path,
            effect: Effect::Wrap {
                within: container(word()),
            },
        },
        "unwrap" => Operation {
            path,
            effect: Effect::Unwrap {
                within: container(word()),
            },
        },
        _ => return None,
    };
    operation.check().is_ok().then_some(operation)
}

/// Reads a map: `text=json`, with commas between the pairs.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pair = |pair: &str| {
        let (text, value) = pair.split_once('=')?;
        Some((text.to_owned(), value.to_owned()))
    };
    text.split(',').map(pair).collect()
}

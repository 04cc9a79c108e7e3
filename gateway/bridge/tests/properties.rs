//! Operations and comparisons of generated bodies.
//!
//! Every run uses the same inputs. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` select others, and more.

#![cfg(test)]

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    env,
};

use proptest::{
    prelude::*,
    sample::{select, subsequence},
    test_runner::{Config, RngSeed, TestRunner},
};
use signpost_bridge::{Container, Effect, JsonPath, Kind, Operation, Otherwise, apply, compare};

/// Names of members: few, so that operations and documents share them.
const NAMES: [&str; 4] = ["a", "b", "c", "é"];

fn runner(cases: u32) -> TestRunner {
    let defaults = Config::default();
    TestRunner::new(Config {
        cases: if env::var_os("PROPTEST_CASES").is_some() {
            defaults.cases
        } else {
            cases
        },
        rng_seed: match defaults.rng_seed {
            RngSeed::Random => RngSeed::Fixed(1),
            fixed => fixed,
        },
        failure_persistence: None,
        ..defaults
    })
}

/// JSON text without duplicate names.
fn json() -> impl Strategy<Value = String> + Clone {
    let number = r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?";
    let string =
        r#""(a|b|c|é|[ -!#-\[\]-~]|\\[/"nt\\]|\\u00[46][1-9]|\\ud83d\\ude00|\\ud800|😀){0,4}""#;
    let leaf = prop_oneof![
        1 => select(vec!["null", "true", "false", "{}", "[]", "\"1 \""]).prop_map(str::to_owned),
        3 => number,
        2 => number.prop_map(|digits| format!("\"{digits}\"")),
        3 => select(NAMES.to_vec()).prop_map(|text| format!("\"{text}\"")),
        1 => string,
    ];
    leaf.prop_recursive(4, 24, 4, |value| {
        let item = value.clone();
        prop_oneof![
            4 => object(value),
            1 => proptest::collection::vec(item, 0..3).prop_map(|items| format!("[ {} ]", items.join(","))),
        ]
    })
}

fn object(value: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = String> {
    let names = subsequence(NAMES.to_vec(), 1..=NAMES.len()).prop_shuffle();
    let members = names.prop_flat_map(move |names| {
        let member = |name: &str| (Just(name.to_owned()), value.clone(), any::<bool>());
        names.into_iter().map(member).collect::<Vec<_>>()
    });
    members.prop_map(|members| {
        let member = |(name, value, is_escaped): (String, String, bool)| match &name[..] {
            "a" if is_escaped => format!(r#""\u0061": {value}"#),
            _ => format!(r#""{name}":{value}"#),
        };
        let members: Vec<_> = members.into_iter().map(member).collect();
        format!("{{{}}}", members.join(", "))
    })
}

fn path() -> impl Strategy<Value = JsonPath> {
    let step = prop_oneof![
        5 => select(NAMES.to_vec()).prop_map(|name| format!(".{name}")),
        1 => Just("[]".to_owned()),
    ];
    let number = prop_oneof![1 => Just(0), 16 => Just(1), 6 => Just(2)];
    let steps = number.prop_flat_map(move |number| proptest::collection::vec(step.clone(), number));
    steps.prop_map(|steps| format!("${}", steps.concat()).parse().unwrap())
}

/// Two paths with the same beginning.
fn paths() -> impl Strategy<Value = (JsonPath, JsonPath)> {
    let ends = vec![".a", ".b", ".c", ".a.b", ".b.a", ".c.a"];
    let ends = (select(ends.clone()), select(ends));
    let path = prop_oneof![2 => Just("$".parse().unwrap()), 1 => path()];
    (path, ends).prop_map(|(path, (from, to))| {
        let end = |end| format!("{path}{end}").parse().unwrap();
        (end(from), end(to))
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let name = || select(NAMES.to_vec()).prop_map(str::to_owned);
    let container = prop_oneof![
        Just(Container::Array),
        Just(Container::First),
        name().prop_map(Container::Object)
    ];
    let texts = subsequence(NAMES.to_vec(), 3);
    let values = [(); 3].map(|()| select(NAMES.to_vec()));
    let values = (texts, values).prop_map(|(texts, values)| {
        let pair = |(text, value)| (str::to_owned(text), format!("\"{value}\""));
        texts.into_iter().zip(values).map(pair).collect()
    });
    prop_oneof![
        3 => (path(), name()).prop_map(|(path, to)| Operation { path, effect: Effect::Rename { to } }),
        3 => paths().prop_map(|(path, to)| Operation { path, effect: Effect::Move { to } }),
        3 => paths().prop_map(|(path, to)| Operation { path, effect: Effect::Copy { to } }),
        1 => path().prop_map(|path| Operation { path, effect: Effect::Remove }),
        1 => path().prop_map(|path| Operation { path, effect: Effect::RemoveNull }),
        1 => (path(), json()).prop_map(|(path, value)| Operation { path, effect: Effect::Default { value } }),
        1 => (path(), ".{0,3}").prop_map(|(path, value)| Operation { path, effect: Effect::Constant { value } }),
        8 => (path(), values).prop_map(|(path, values)| Operation { path, effect: Effect::Map { values, otherwise: Otherwise::Fail } }),
        2 => path().prop_map(|path| Operation { path, effect: Effect::ToText }),
        2 => path().prop_map(|path| Operation { path, effect: Effect::ToNumber }),
        1 => (path(), container.clone()).prop_map(|(path, within)| Operation { path, effect: Effect::Wrap { within } }),
        4 => (path(), container).prop_map(|(path, within)| Operation { path, effect: Effect::Unwrap { within } }),
    ]
}

/// How many bodies each operation changed, by the operation's name.
type Changed = BTreeMap<String, u32>;

/// Checks that inverses restore the body, one by one and all together. Operations that do not fit are passed over.
fn check_inverses(
    operations: Vec<Operation>,
    body: &[u8],
    changed: &mut Changed,
) -> Result<(), TestCaseError> {
    let (mut applied, mut inverses) = (Vec::new(), Vec::new());
    let mut last = body.to_vec();
    for operation in operations {
        let inverse = operation.check().ok().and_then(|()| operation.inverse());
        let next = apply(std::slice::from_ref(&operation), &last);
        if let (Some(inverse), Ok(next)) = (inverse, next) {
            assert_restored(std::slice::from_ref(&inverse), &next, &last)?;
            let name = format!("{:?}", operation.effect);
            let name = name.split(' ').next().expect("a split has a first part");
            let is_changed = compare(&last, &next, &[]).differs();
            *changed.entry(name.to_owned()).or_default() += u32::from(is_changed);
            applied.push(operation);
            inverses.insert(0, inverse);
            last = next;
        }
    }
    let at_once = apply(&applied, body).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert!(!compare(&at_once, &last, &[]).differs());
    assert_restored(&inverses, &last, body)
}

fn assert_restored(
    inverses: &[Operation],
    changed: &[u8],
    original: &[u8],
) -> Result<(), TestCaseError> {
    let restored = apply(inverses, changed);
    let restored = restored.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let comparison = compare(original, &restored, &[]);
    prop_assert!(!comparison.differs(), "{inverses:?}: {comparison:?}");
    Ok(())
}

#[test]
fn inverses_restore_every_body() {
    let operations = proptest::collection::vec(operation(), 1..24);
    let body = prop_oneof![1 => json(), 4 => object(json())];
    let changed = RefCell::new(Changed::new());
    let mut runner = runner(2000);
    let result = runner.run(&(body, operations), |(body, operations)| {
        check_inverses(operations, body.as_bytes(), &mut changed.borrow_mut())
    });
    result.unwrap_or_else(|error| panic!("{error}"));

    let (changed, cases) = (changed.into_inner(), runner.config().cases);
    let names = [
        "Copy", "Map", "Move", "Rename", "ToNumber", "ToText", "Unwrap", "Wrap",
    ];
    assert!(changed.keys().eq(names.iter()), "{changed:?}");
    assert!(
        changed.values().all(|&changed| changed > cases / 100),
        "{changed:?}"
    );
}

#[test]
fn the_result_is_json_and_no_input_panics() {
    let damaged = (json(), any::<Vec<u8>>(), any::<proptest::sample::Index>());
    let damaged = damaged.prop_map(|(json, bytes, at)| {
        let mut json = json.into_bytes();
        let at = at.index(json.len());
        json.splice(at..at, bytes);
        json
    });
    let body = prop_oneof![
        3 => json().prop_map(String::into_bytes),
        1 => damaged,
        1 => any::<Vec<u8>>(),
    ];
    let operations = proptest::collection::vec(operation(), 0..4);
    let mut runner = runner(2000);
    let result = runner.run(&(body, operations), |(body, operations)| {
        for operation in &operations {
            let _ = (operation.check(), operation.inverse());
        }
        let value = serde_json::from_slice::<&serde_json::value::RawValue>(&body);
        let is_json = value.is_ok();
        match apply(&operations, &body) {
            Ok(after) => {
                let after = serde_json::from_slice::<&serde_json::value::RawValue>(&after);
                prop_assert!(is_json && after.is_ok());
            }
            Err(error) => prop_assert!(is_json != (error.reason() == "is not JSON")),
        }
        prop_assert!(!compare(&body, &body, &[]).differs());
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn comparing_in_the_other_order_exchanges_both_sides() {
    let differing = Cell::new(0);
    let mut runner = runner(1000);
    let result = runner.run(&(json(), json()), |(one, other)| {
        let there = compare(one.as_bytes(), other.as_bytes(), &[]);
        let back = compare(other.as_bytes(), one.as_bytes(), &[]);
        differing.set(differing.get() + u32::from(there.differs()));
        prop_assert_eq!(there.paths().count(), back.paths().count());
        for (path, finding) in there.paths() {
            let opposite = back.path(path).expect("both have the same paths");
            for (kind, exchanged) in [
                (Kind::Missing, Kind::Extra),
                (Kind::Extra, Kind::Missing),
                (Kind::Type, Kind::Type),
                (Kind::Value, Kind::Value),
            ] {
                let has = finding.kinds().contains(kind);
                prop_assert_eq!(has, opposite.kinds().contains(exchanged), "{}", path);
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(differing.get() > 500, "{}", differing.get());
}

use serde_json::{Value, json};

use super::*;
use crate::{apply, compare};

/// A number that depends on all of these.
fn number(of: &[u64]) -> u64 {
    let mix = |all: u64, one: &u64| {
        (all ^ one)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    of.iter().fold(7, mix) % 1_000_003
}

/// A response of an API: its values depend on the request, and constants on the API.
fn response(api: u64, request: u64) -> Value {
    let of = |field| number(&[api, request, field]);
    let text = |field| format!("text {}", of(field));
    let item = |at: u64| json!({ "sku": format!("s{}", of(40 + at)), "quantity": of(50 + at) % 9, "is_new": of(60 + at) % 2 == 0 });
    let state = ["open", "paid", "sent"][(of(4) % 3) as usize];
    json!({
        "id": of(1), "name": text(2), "is_active": of(3) % 2 == 0, "state": state,
        "total": of(5).to_string(), "currency": "EUR", "note": if of(6) % 4 == 0 { Value::Null } else { text(7).into() },
        "owner": { "id": of(8), "mail": text(9), "level": number(&[api]) % 5 }, "tags": [text(10)],
        "place": { "city": text(11), "street": { "name": text(12), "number": of(13) % 90 } },
        "items": (0..of(14) % 4).map(item).collect::<Vec<_>>(), "count": of(15) % 3, "limit": number(&[api, 1]) % 3,
    })
}

/// The steps by which an API's next version differs.
fn steps() -> Vec<(&'static str, Effect)> {
    let to = |path: &str| path.parse().unwrap();
    let rename = |name: &str| Effect::Rename {
        to: name.to_owned(),
    };
    let within = |name: &str| match name {
        "[]" => Container::Array,
        name => Container::Object(name.to_owned()),
    };
    let add = |value: &str| Effect::Default {
        value: value.to_owned(),
    };
    let states = [
        ("open", "\"OPEN\""),
        ("paid", "\"PAID\""),
        ("sent", "\"SENT\""),
    ];
    let values = states.map(|(from, to)| (from.to_owned(), to.to_owned()));
    vec![
        ("$.name", rename("display_name")),
        ("$.owner.mail", rename("email")),
        ("$.items[].sku", rename("article")),
        ("$.is_active", rename("active")),
        ("$.place", rename("address")),
        (
            "$.name",
            Effect::Move {
                to: to("$.owner.name"),
            },
        ),
        (
            "$.total",
            Effect::Move {
                to: to("$.price.amount"),
            },
        ),
        ("$.owner.mail", Effect::Move { to: to("$.mail") }),
        (
            "$.place.street.name",
            Effect::Move {
                to: to("$.place.road"),
            },
        ),
        (
            "$.items[].sku",
            Effect::Move {
                to: to("$.items[].article.sku"),
            },
        ),
        ("$.id", Effect::ToText),
        ("$.items[].quantity", Effect::ToText),
        ("$.total", Effect::ToNumber),
        (
            "$.name",
            Effect::Wrap {
                within: within("[]"),
            },
        ),
        (
            "$.total",
            Effect::Wrap {
                within: within("amount"),
            },
        ),
        (
            "$.tags",
            Effect::Unwrap {
                within: within("[]"),
            },
        ),
        ("$.avatar", add("\"none\"")),
        ("$.items[].weight", add("0")),
        (
            "$.state",
            Effect::Map {
                values: values.into(),
                otherwise: Default::default(),
            },
        ),
        ("$.currency", Effect::Remove),
    ]
}

/// What the shadow finds, and the draft.
fn compared(api: u64, next: impl Fn(&Value) -> Vec<u8>) -> (Tally, Draft) {
    let mut tally = Tally::default();
    for request in 0..120 {
        let old = response(api, request);
        tally.add(&compare(old.to_string().as_bytes(), &next(&old), &[]), None);
    }
    let draft = tally.draft();
    (tally, draft)
}

/// The paths that still differ, after the draft, in responses to further requests.
fn left(api: u64, next: impl Fn(&Value) -> Vec<u8>, draft: &Draft) -> BTreeSet<String> {
    let operations: Vec<_> = draft
        .steps
        .iter()
        .map(|(operation, _)| operation.clone())
        .collect();
    let mut left = BTreeSet::new();
    for request in 500..540 {
        let old = response(api, request);
        let changed = apply(&operations, &next(&old)).unwrap();
        let pair = compare(old.to_string().as_bytes(), &changed, &[]);
        let differing = pair
            .paths()
            .filter(|(_, finding)| !finding.kinds().is_empty());
        left.extend(differing.map(|(path, _)| path.to_owned()));
    }
    left
}

#[test]
fn most_changes_that_steps_express_are_drafted_and_none_wrongly() {
    let (mut all, mut bridged) = (0, 0);
    for api in 0..20 {
        // Each API has another half of the changes.
        for (path, effect) in steps()
            .into_iter()
            .cycle()
            .skip(api as usize)
            .step_by(2)
            .take(10)
        {
            let operation = [Operation {
                path: path.parse().unwrap(),
                effect,
            }];
            let next = |old: &Value| apply(&operation, old.to_string().as_bytes()).unwrap();
            let (tally, draft) = compared(api, next);
            assert!(tally.differing > 50, "{operation:?}");
            let left = left(api, next, &draft);
            let open = |path: &String| draft.open.iter().any(|(open, _)| open == path);
            assert!(
                left.iter().all(open),
                "{api} {operation:?} {draft:?} {left:?}"
            );
            all += 1;
            bridged += usize::from(left.is_empty());
        }
    }
    assert!(all == 200 && bridged >= 160, "{bridged} of {all}");
}

#[test]
fn many_changes_of_one_response_are_drafted() {
    for chosen in [[1, 2, 3, 4, 6, 10, 15, 16], [0, 7, 8, 9, 11, 14, 15, 17]] {
        let chosen = chosen.map(|at| steps().swap_remove(at));
        let operations = chosen.map(|(path, effect)| Operation {
            path: path.parse().unwrap(),
            effect,
        });
        let next = |old: &Value| apply(&operations, old.to_string().as_bytes()).unwrap();
        let (_, draft) = compared(3, next);
        assert_eq!((left(3, next, &draft), draft.open), Default::default());
    }
}

#[test]
fn what_old_members_may_be_made_of_stays() {
    let next = |old: &Value| {
        let mut new = old.clone();
        let members = new.as_object_mut().unwrap();
        members.remove("name");
        members.insert("first".to_owned(), json!("Ada"));
        members.insert("last".to_owned(), json!("Lovelace"));
        new.to_string().into_bytes()
    };
    let (_, draft) = compared(1, next);
    let open: Vec<_> = draft
        .open
        .iter()
        .map(|(path, advice)| format!("{path}: {advice}"))
        .collect();
    let kept = "a step, remove, unless an old member is made of it";
    assert_eq!(
        open,
        [
            "$.name: look at it".to_owned(),
            format!("$.first: {kept}"),
            format!("$.last: {kept}")
        ]
    );
    assert_eq!(draft.steps, []);
}

#[test]
fn a_value_that_two_old_members_need_is_copied() {
    let next = |old: &Value| {
        let mut new = old.clone();
        let members = new.as_object_mut().unwrap();
        let (name, _) = (members.remove("name").unwrap(), members.remove("total"));
        members.insert("both".to_owned(), name);
        members["owner"]["amount"] = old["total"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            .into();
        new.to_string().into_bytes()
    };
    let twice = |old: &Value| {
        let mut old = old.clone();
        old["total"] = old["name"].clone();
        old
    };
    let mut tally = Tally::default();
    for request in 0..60 {
        let old = response(2, request);
        tally.add(
            &compare(twice(&old).to_string().as_bytes(), &next(&old), &[]),
            None,
        );
    }
    let draft = tally.draft();
    let effects: Vec<_> = draft
        .steps
        .iter()
        .map(|(operation, _)| &operation.effect)
        .collect();
    assert!(
        matches!(effects[..2], [Effect::Copy { .. }, Effect::Rename { .. }]),
        "{draft:?}"
    );
}

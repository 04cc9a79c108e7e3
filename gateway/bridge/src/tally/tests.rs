use super::*;
use crate::compare;

fn tally(pairs: &[(&str, &str)]) -> Tally {
    let mut tally = Tally::default();
    for (one, other) in pairs {
        tally.add(&compare(one.as_bytes(), other.as_bytes(), &[]), None);
    }
    tally
}

fn names(prefix: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{prefix}{number}"))
}

#[test]
fn pairs_are_counted_at_each_path() {
    let tally = tally(&[
        (r#"{"a":1,"b":1}"#, r#"{"a":1,"b":1}"#),
        (r#"{"a":1}"#, r#"{"a":"1","c":[]}"#),
        (r#"{"a":1}"#, r#"{"a":2}"#),
        (r#"{"a":1}"#, "{}"),
    ]);
    assert_eq!((tally.pairs, tally.differing, tally.others), (4, 3, 0));
    let shapes = Some(["number".to_owned(), "absent".to_owned()]);
    let a = PathTally {
        seen: 4,
        missing: 1,
        other_type: 1,
        value: 1,
        shapes,
        ..PathTally::default()
    };
    assert_eq!(tally.paths["$.a"], a);
    let b = PathTally {
        seen: 1,
        ..PathTally::default()
    };
    assert_eq!(tally.paths["$.b"], b);
    let differing: Vec<_> = tally.differences().map(|(path, ..)| path).collect();
    assert_eq!(differing, ["$.a", "$.c"]);
}

#[test]
fn other_differences_are_counted_as_those_of_bodies() {
    let mut comparison = Comparison::default();
    comparison.see("status");
    comparison.see("status");
    comparison.add("header location", Kind::Missing, ["present", "absent"]);
    let mut tally = Tally::default();
    tally.add(&comparison, Some("app"));
    assert_eq!((tally.pairs, tally.differing), (1, 1));
    assert_eq!(
        (tally.paths["status"].seen, tally.paths["status"].differs()),
        (1, false)
    );
    assert_eq!(tally.paths["header location"].missing, 1);
}

#[test]
fn noise_does_not_make_pairs_differ() {
    let compare = |one: &str, other: &str| compare(one.as_bytes(), other.as_bytes(), &[]);
    let (first, second) = (r#"{"at":1,"a":1}"#, r#"{"at":2,"a":1}"#);
    let mut tally = Tally::default();
    tally.add(&compare(first, second), Some("app"));
    tally.add_noise(&compare(first, second));
    tally.add_noise(&compare(first, first));
    assert_eq!((tally.pairs, tally.differing), (1, 1));
    tally.add(&compare(first, second), Some("app"));
    assert_eq!((tally.pairs, tally.differing), (2, 1));
    tally.add(&compare(first, r#"{"at":2,"a":2}"#), Some("app"));
    assert_eq!((tally.pairs, tally.differing), (3, 2));
    assert_eq!(
        tally.apps["app"],
        AppTally {
            pairs: 3,
            differing: 2
        }
    );
    let differences: Vec<_> = tally
        .differences()
        .map(|(path, at, is_noise)| (path, at.value, is_noise))
        .collect();
    assert_eq!(differences, [("$.a", 1, false), ("$.at", 3, true)]);
    assert_eq!(tally.paths["$.at"].seen, 3);
}

#[test]
fn a_rename_is_one_that_holds_nearly_always() {
    let equal = (r#"{"old":1}"#, r#"{"new":1}"#);
    let unequal = (r#"{"old":1}"#, r#"{"new":2}"#);
    let none = (r#"{"x":1}"#, r#"{"x":1}"#);
    let renames = |equals: usize, unequals: usize| {
        let pairs = [vec![equal; equals], vec![unequal; unequals], vec![none; 10]].concat();
        tally(&pairs).renames()
    };
    assert_eq!(renames(49, 0), []);
    let (from, to) = ("$.old".to_owned(), "$.new".to_owned());
    assert_eq!(
        renames(50, 0),
        [Rename {
            from,
            to,
            equal: 50,
            of: 50
        }]
    );
    assert_eq!(renames(99, 1), []);
    assert_eq!(renames(200, 1).len(), 1);
}

#[test]
fn tallies_are_merged() {
    let pair = (r#"{"old":1,"a":1}"#, r#"{"new":1,"a":2}"#);
    let mut whole = Tally::default();
    let mut parts = [Tally::default(), Tally::default()];
    for number in 0..100 {
        let comparison = compare(pair.0.as_bytes(), pair.1.as_bytes(), &[]);
        let app = (number % 3 == 0).then_some("app");
        whole.add(&comparison, app);
        parts[number % 2].add(&comparison, app);
    }
    let [mut merged, other] = parts;
    merged.merge(other);
    assert_eq!(merged, whole);
    assert_eq!(merged.renames().len(), 1);
    merged.merge(Tally::default());
    assert_eq!(merged, whole);
}

#[test]
fn every_part_is_bounded() {
    let mut tally = Tally::default();
    for prefix in ["a", "b"] {
        let mut comparison = Comparison::default();
        for name in names(prefix, MAX_PATHS) {
            comparison.add(&name, Kind::Missing, ["number", "absent"]);
        }
        let pairs = names(prefix, MAX_RENAMES).map(|name| (name.clone(), name));
        comparison.renames = pairs.collect();
        tally.add(&comparison, None);
    }
    assert_eq!((tally.pairs, tally.differing, tally.others), (2, 2, 1));
    assert_eq!(tally.paths.len(), MAX_PATHS);
    assert_eq!(tally.renames.len(), MAX_RENAMES);
    for app in names("app", MAX_APPS + 7) {
        tally.add(&Comparison::default(), Some(&app));
    }
    assert_eq!(tally.apps.len(), MAX_APPS + 1);
    assert_eq!(tally.apps[OTHER_APPS].pairs, 7);

    let mut other = Tally::default();
    for prefix in ["c", "d", "c"] {
        let mut comparison = Comparison::default();
        comparison.see(prefix);
        other.add(&comparison, Some(prefix));
    }
    tally.merge(other);
    assert_eq!(tally.paths.len(), MAX_PATHS);
    assert_eq!(tally.others, 3);
    assert_eq!(tally.apps.len(), MAX_APPS + 1);
    assert_eq!(tally.apps[OTHER_APPS].pairs, 10);
}

#[test]
fn it_is_stored_without_what_is_empty() {
    let mut tally = tally(&[(r#"{"old":1}"#, r#"{"new":1}"#)]);
    tally.add(&Comparison::default(), Some("app"));
    let stored = serde_json::to_string(&tally).unwrap();
    let expected = concat!(
        r#"{"pairs":2,"differing":1,"paths":{"$":{"seen":1},"#,
        r#""$.new":{"seen":1,"extra":1,"shapes":["absent","number"]},"#,
        r#""$.old":{"seen":1,"missing":1,"shapes":["number","absent"]}},"#,
        r#""renames":{"$.old":{"$.new":1}},"apps":{"app":{"pairs":1}}}"#,
    );
    assert_eq!(stored, expected);
    assert_eq!(serde_json::from_str::<Tally>(&stored).unwrap(), tally);
    assert_eq!(serde_json::to_string(&Tally::default()).unwrap(), "{}");
}

#[test]
fn what_another_release_stored_is_read() {
    let stored = r#"{"pairs":1,"later":[1],"paths":{"$":{"seen":1,"later":0}},"apps":{"app":{}}}"#;
    let read: Tally = serde_json::from_str(stored).unwrap();
    assert_eq!((read.pairs, read.paths["$"].seen), (1, 1));
    assert_eq!(read.apps["app"], AppTally::default());
    let huge = r#"{"pairs":18446744073709551615,"paths":{"$":{"type":18446744073709551615}}}"#;
    let mut huge: Tally = serde_json::from_str(huge).unwrap();
    huge.add(&compare(b"1", b"[]", &[]), None);
    assert_eq!(huge.paths["$"].other_type, u64::MAX);
}

/// One sample of noise does not excuse a difference of all pairs.
#[test]
fn noise_must_be_as_frequent_as_what_it_explains() {
    let (short, long) = (br#"{"a":[1]}"#, br#"{"a":[1,2]}"#);
    let mut tally = Tally::default();
    tally.add_noise(&compare(short, long, &[]));
    for _ in 0..99 {
        tally.add_noise(&compare(long, long, &[]));
    }
    let is_noise = |tally: &Tally| {
        tally
            .differences()
            .map(|(_, _, is_noise)| is_noise)
            .collect::<Vec<_>>()
    };
    // In three of a hundred pairs it may be the same noise.
    for number in 0..1_000 {
        let one = if number < 30 { &long[..] } else { &short[..] };
        tally.add(&compare(one, short, &[]), None);
    }
    assert_eq!(is_noise(&tally), [true]);
    for _ in 0..30 {
        tally.add(&compare(long, short, &[]), None);
    }
    assert_eq!(is_noise(&tally), [false]);
    // Noise of another kind excuses nothing.
    let mut tally = Tally::default();
    tally.add_noise(&compare(br#"{"a":1}"#, br#"{"a":2}"#, &[]));
    tally.add(&compare(br#"{"a":1}"#, br#"{}"#, &[]), None);
    assert_eq!((is_noise(&tally), tally.differing), (vec![false], 1));
}

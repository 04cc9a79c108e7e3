//! Which requests are chosen, and what is added up in memory.

use signpost_bridge::{Comparison, Kind};
use signpost_kit::clock::Timestamp;

use super::{copied::Entry, tallies::Tallies, *};

const HOUR: i64 = 60 * 60 * 1000;

fn entry(number: usize) -> Entry {
    Entry {
        version: "v1".to_owned(),
        to: "v2".to_owned(),
        route: format!("GET /{number}"),
        changes: String::new(),
    }
}

fn pair(differs: bool) -> Comparison {
    let mut pair = Comparison::default();
    pair.see("$.a");
    if differs {
        pair.add("$.b", Kind::Missing, ["null", "absent"]);
    }
    pair
}

#[test]
fn the_share_that_is_chosen_is_the_configured_one() {
    let chosen = |per_million| (0..100_000).filter(|_| is_chosen(per_million)).count();
    assert_eq!(chosen(0), 0);
    assert_eq!(chosen(1_000_000), 100_000);
    // Five standard deviations of a binomial distribution.
    assert!((4_655..=5_345).contains(&chosen(50_000)));
    assert!(chosen(1) < 20);
}

#[test]
fn places_are_bounded_and_given_back() {
    let shadows = Shadows::default();
    let places: Vec<_> = (0..MAX_COPIES + 3).map_while(|_| shadows.place()).collect();
    assert_eq!(places.len(), MAX_COPIES);
    assert!(shadows.place().is_none());
    assert_eq!(shadows.counts.value(CopyResult::Dropped), 2);
    drop(places);
    assert!(shadows.place().is_some());
}

#[test]
fn only_what_has_changed_is_written_again() {
    let mut tallies = Tallies::default();
    let at = |hour: i64| Timestamp::from_millis(hour * HOUR + 5);
    let (equal, different) = (pair(false), pair(true));
    assert_eq!(
        tallies.add(&entry(1), at(1), (&equal, None), Some("app")),
        Some(false)
    );
    assert_eq!(
        tallies.add(&entry(1), at(1), (&different, None), None),
        Some(true)
    );
    // What the same pair shows as noise is none.
    assert_eq!(
        tallies.add(&entry(2), at(1), (&different, Some(&different)), None),
        Some(false)
    );
    let written = tallies.take_unwritten(at(1));
    assert_eq!(written.len(), 2);
    assert_eq!(written[0].0, HOUR);
    assert!(written[0].2.contains("\"pairs\":2"), "{}", written[0].2);
    assert!(tallies.take_unwritten(at(1)).is_empty());
    tallies.put_back(HOUR, &entry(2));
    assert_eq!(tallies.take_unwritten(at(2)).len(), 1);
    // The next hour begins at nothing.
    tallies.add(&entry(1), at(2), (&equal, None), None);
    let written = tallies.take_unwritten(at(2));
    assert_eq!((written.len(), written[0].0), (1, 2 * HOUR));
    assert!(written[0].2.contains("\"pairs\":1"), "{}", written[0].2);
}

#[test]
fn memory_is_bounded_while_the_store_takes_nothing() {
    let mut tallies = Tallies::default();
    let pair = pair(false);
    let at = |hour: i64| Timestamp::from_millis(hour * HOUR);
    let added = (0..2_000).filter(|number| {
        let added = tallies.add(&entry(*number), at(1), (&pair, None), None);
        added.is_some()
    });
    assert_eq!(added.count(), 1_024);
    assert_eq!(tallies.take_unwritten(at(1)).len(), 1_024);
    // Once the store has them, earlier hours make room.
    assert!(tallies.take_unwritten(at(2)).is_empty());
    assert!(
        tallies
            .add(&entry(1_999), at(2), (&pair, None), None)
            .is_some()
    );
}

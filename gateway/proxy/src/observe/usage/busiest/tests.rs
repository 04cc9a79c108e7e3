//! Which applications are shown, and that no request is lost.

use super::*;

fn busiest(limit: usize) -> Busiest {
    Busiest {
        limit,
        ..Busiest::default()
    }
}

/// Adds this many requests of an application, all with the response 200.
fn add_requests(busiest: &mut Busiest, id: i64, requests: u64, is_signed: bool) {
    let mut counts = ClassCounts::default();
    counts[2] = requests;
    let ident = format!("app-{id}").parse().unwrap();
    busiest.add(id, ident, is_signed, &counts);
}

fn signed(busiest: &mut Busiest, id: i64, requests: u64) {
    add_requests(busiest, id, requests, true);
}

/// The shown applications with their requests, and the requests of all others.
fn scrape(busiest: &mut Busiest) -> (Vec<(String, u64)>, u64) {
    let shown = busiest.scrape().into_iter();
    let (other, mut shown): (Vec<_>, Vec<_>) = shown
        .map(|(label, counts)| (label.to_string(), counts[2]))
        .partition(|(label, _)| label == OTHER);
    shown.sort();
    (shown, other[0].1)
}

fn pairs(shown: &[(&str, u64)]) -> Vec<(String, u64)> {
    let shown = shown.iter();
    shown
        .map(|(ident, count)| ((*ident).to_owned(), *count))
        .collect()
}

#[test]
fn the_first_applications_get_the_free_places() {
    let mut busiest = busiest(2);
    for (id, requests) in [(1, 3), (2, 4), (3, 5), (1, 1)] {
        signed(&mut busiest, id, requests);
    }
    let expected = pairs(&[("app-1", 4), ("app-2", 4)]);
    assert_eq!(scrape(&mut busiest), (expected, 5));
}

#[test]
fn a_much_busier_application_replaces_the_least_busy_one() {
    let mut busiest = busiest(2);
    let interval = |busiest: &mut Busiest, last: u64| {
        signed(busiest, 1, 100);
        signed(busiest, 2, 20);
        signed(busiest, 3, last);
        scrape(busiest)
    };
    // Twice as busy is not enough.
    let first = (pairs(&[("app-1", 100), ("app-2", 20)]), 40);
    assert_eq!(interval(&mut busiest, 40), first);
    // What was counted as other stays there, so that no request is counted twice.
    let second = (pairs(&[("app-1", 200), ("app-3", 0)]), 81);
    assert_eq!(interval(&mut busiest, 41), second);
    // The list does not flap.
    let third = (pairs(&[("app-1", 300), ("app-3", 10)]), 101);
    assert_eq!(interval(&mut busiest, 10), third);
}

#[test]
fn a_few_requests_do_not_replace_an_idle_application() {
    let mut busiest = busiest(1);
    add_requests(&mut busiest, 1, 1, false);
    signed(&mut busiest, 2, 10);
    assert_eq!(scrape(&mut busiest).0, pairs(&[("app-1", 1)]));
    // Only what came since the last scrape counts.
    signed(&mut busiest, 2, 10);
    assert_eq!(scrape(&mut busiest).0, pairs(&[("app-1", 1)]));
    signed(&mut busiest, 2, 11);
    assert_eq!(scrape(&mut busiest).0, pairs(&[("app-2", 0)]));
}

#[test]
fn unsigned_requests_replace_nothing() {
    let mut busiest = busiest(1);
    signed(&mut busiest, 1, 1);
    add_requests(&mut busiest, 2, 1_000_000, false);
    assert!(busiest.candidates.is_empty());
    let expected = (pairs(&[("app-1", 1)]), 1_000_000);
    assert_eq!(scrape(&mut busiest), expected);
}

#[test]
fn an_application_that_is_called_like_a_label_counts_as_other() {
    let mut busiest = busiest(20);
    for (id, ident) in [(1, "other"), (2, "none"), (3, "default")] {
        let ident = ident.parse().unwrap();
        busiest.add(id, ident, true, &[0, 0, 1, 0, 0, 0]);
    }
    assert_eq!(scrape(&mut busiest), (Vec::new(), 3));
}

#[test]
fn another_limit_takes_effect_at_once() {
    let mut busiest = busiest(3);
    for (id, requests) in [(1, 30), (2, 20), (3, 10)] {
        signed(&mut busiest, id, requests);
    }
    busiest.set_limit(1);
    assert_eq!(scrape(&mut busiest), (pairs(&[("app-1", 30)]), 0));
    signed(&mut busiest, 2, 1);
    assert_eq!(scrape(&mut busiest), (pairs(&[("app-1", 30)]), 1));
    busiest.set_limit(2);
    signed(&mut busiest, 2, 1);
    let expected = pairs(&[("app-1", 30), ("app-2", 1)]);
    assert_eq!(scrape(&mut busiest), (expected, 1));
    busiest.set_limit(0);
    assert_eq!(scrape(&mut busiest).0, []);
}

#[test]
fn many_applications_take_a_bounded_memory() {
    let mut busiest = busiest(20);
    for id in 0..100_000 {
        signed(&mut busiest, id, 1);
        // One in ten is of the same application, which comes when there is no place left.
        if id >= 1000 && id % 10 == 0 {
            signed(&mut busiest, 1_000_000, 1);
        }
        assert!(busiest.candidates.len() <= MAX_CANDIDATES);
    }
    let (shown, other) = scrape(&mut busiest);
    assert_eq!(shown.len(), 20);
    assert!(shown.iter().any(|(ident, _)| ident == "app-1000000"));
    let sum: u64 = shown.iter().map(|(_, count)| count).sum();
    // The application that was replaced had one request.
    assert_eq!(sum + other, 100_000 + 9_900 - 1);
}

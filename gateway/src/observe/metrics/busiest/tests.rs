//! Which applications are shown, and that no request is lost.

use super::*;

const NO_TIME: Duration = Duration::ZERO;

fn busiest(limit: usize) -> Busiest {
    Busiest {
        limit,
        ..Busiest::default()
    }
}

/// Adds this many requests of an application, all answered with 200.
fn add_requests(busiest: &mut Busiest, id: i64, requests: u64, is_signed: bool) {
    let mut slot = Slot::new(format!("app-{id}").parse().unwrap());
    slot.counts[2] = requests;
    slot.signed = if is_signed { requests } else { 0 };
    busiest.add(AppId::new(id), &slot);
}

fn signed(busiest: &mut Busiest, id: i64, requests: u64) {
    add_requests(busiest, id, requests, true);
}

/// The shown applications with their requests, and the requests of all others.
fn shown(busiest: &Busiest) -> (Vec<(String, u64)>, u64) {
    let listed = busiest.listed();
    let mut listed: Vec<_> = listed
        .map(|(ident, counts)| (ident.to_string(), counts[2]))
        .collect();
    listed.sort();
    (listed, busiest.other()[2])
}

fn pairs(listed: &[(&str, u64)]) -> Vec<(String, u64)> {
    let listed = listed.iter();
    listed
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
    assert_eq!(shown(&busiest), (expected, 5));
}

#[test]
fn a_much_busier_application_replaces_the_least_busy_one() {
    let mut busiest = busiest(2);
    signed(&mut busiest, 1, 100);
    signed(&mut busiest, 2, 20);
    signed(&mut busiest, 3, 40);
    busiest.rank(NO_TIME);
    // Twice as busy is not enough.
    assert_eq!(
        shown(&busiest),
        (pairs(&[("app-1", 100), ("app-2", 20)]), 40)
    );
    signed(&mut busiest, 3, 1);
    busiest.rank(NO_TIME);
    // What was counted as other stays there, so that no request is counted twice.
    assert_eq!(
        shown(&busiest),
        (pairs(&[("app-1", 100), ("app-3", 0)]), 41)
    );
    signed(&mut busiest, 3, 7);
    signed(&mut busiest, 2, 5);
    let after = (pairs(&[("app-1", 100), ("app-3", 7)]), 46);
    assert_eq!(shown(&busiest), after);
    // The list does not flap.
    for _ in 0..10 {
        signed(&mut busiest, 2, 1);
        signed(&mut busiest, 3, 1);
        busiest.rank(NO_TIME);
    }
    let after = (pairs(&[("app-1", 100), ("app-3", 17)]), 56);
    assert_eq!(shown(&busiest), after);
}

#[test]
fn a_few_requests_do_not_replace_an_idle_application() {
    let mut busiest = busiest(1);
    add_requests(&mut busiest, 1, 1, false);
    signed(&mut busiest, 2, 10);
    busiest.rank(NO_TIME);
    assert!(busiest.shows(AppId::new(1)));
    signed(&mut busiest, 2, 1);
    busiest.rank(NO_TIME);
    assert!(busiest.shows(AppId::new(2)));
}

#[test]
fn unsigned_requests_replace_nothing() {
    let mut busiest = busiest(1);
    signed(&mut busiest, 1, 1);
    add_requests(&mut busiest, 2, 1_000_000, false);
    busiest.rank(NO_TIME);
    assert_eq!(shown(&busiest), (pairs(&[("app-1", 1)]), 1_000_000));
    assert!(busiest.candidates.is_empty());
}

#[test]
fn old_requests_count_less() {
    let mut busiest = busiest(1);
    signed(&mut busiest, 1, 1000);
    busiest.rank(HALF_LIFE * 5);
    signed(&mut busiest, 2, 62);
    busiest.rank(NO_TIME);
    // 1000 / 32, and twice as much.
    assert!(busiest.shows(AppId::new(1)));
    signed(&mut busiest, 2, 1);
    busiest.rank(NO_TIME);
    assert!(busiest.shows(AppId::new(2)));
    // An application without requests is forgotten in the end.
    busiest.rank(HALF_LIFE * 10);
    assert!(busiest.candidates.is_empty());
}

#[test]
fn a_much_lower_limit_keeps_the_number_of_candidates() {
    let many = i64::try_from(MAX_CANDIDATES).unwrap();
    let mut busiest = busiest(1000);
    for id in 0..1000 + 2 * many - 1 {
        signed(&mut busiest, id, 2);
    }
    busiest.set_limit(10);
    assert_eq!(busiest.listed.len(), 10);
    assert!(busiest.candidates.len() <= MAX_CANDIDATES);
    for id in 0..20 {
        signed(&mut busiest, 100_000 + id, 1_000_000);
    }
    busiest.limit_candidates();
    let requests: u64 = busiest.listed().map(|(_, counts)| counts[2]).sum();
    assert!(requests + busiest.other()[2] >= 20_000_000);
}

#[test]
fn another_limit_takes_effect_at_once() {
    let mut busiest = busiest(3);
    for (id, requests) in [(1, 30), (2, 20), (3, 10)] {
        signed(&mut busiest, id, requests);
    }
    busiest.set_limit(1);
    assert_eq!(shown(&busiest), (pairs(&[("app-1", 30)]), 0));
    signed(&mut busiest, 2, 1);
    assert_eq!(shown(&busiest), (pairs(&[("app-1", 30)]), 1));
    busiest.set_limit(2);
    busiest.rank(NO_TIME);
    let expected = pairs(&[("app-1", 30), ("app-2", 0)]);
    assert_eq!(shown(&busiest), (expected, 1));
    busiest.set_limit(0);
    assert_eq!(shown(&busiest).0, []);
}

#[test]
fn many_applications_take_a_bounded_memory_and_the_busiest_is_found() {
    let mut busiest = busiest(20);
    let mut requests = 0;
    for id in 0..100_000 {
        signed(&mut busiest, id, 1);
        // One in ten is of the same application, which comes when there is no place left.
        if id >= 1000 && id % 10 == 0 {
            signed(&mut busiest, 1_000_000, 1);
            requests += 1;
        }
        requests += 1;
        assert!(busiest.candidates.len() < 2 * MAX_CANDIDATES);
    }
    busiest.rank(NO_TIME);
    assert!(busiest.shows(AppId::new(1_000_000)));
    assert_eq!(busiest.listed.len(), 20);
    let (listed, other) = shown(&busiest);
    let sum: u64 = listed.iter().map(|(_, count)| count).sum();
    // The application that was replaced had one request.
    assert_eq!(sum + other, requests - 1);
}

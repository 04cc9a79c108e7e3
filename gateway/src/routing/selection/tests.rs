//! Each rule, asked without a network.

use std::collections::BTreeMap;

use super::{super::address::UnderWay, *};

/// Addresses of these weights, in order.
fn addresses(balance: Balance, weights: &[usize]) -> Addresses {
    Addresses::new(balance, &found(weights), &Addresses::none(balance))
}

fn found(weights: &[usize]) -> BTreeSet<Backend> {
    let backend = |(place, weight): (usize, &usize)| {
        Backend::new_with_weight(&format!("127.0.0.1:{}", 1000 + place), *weight).unwrap()
    };
    weights.iter().enumerate().map(backend).collect()
}

fn place(address: &Address) -> usize {
    usize::from(address.socket().port()) - 1000
}

/// The places chosen in so many turns, but for those that are out.
fn places(addresses: &Addresses, turns: usize, out: &[usize]) -> Vec<usize> {
    let accepts = |address: &Address| !out.contains(&place(address));
    (0..turns)
        .map(|_| place(addresses.choose(b"", accepts).unwrap()))
        .collect()
}

fn counts(places: &[usize]) -> Vec<usize> {
    let mut counts = BTreeMap::new();
    for place in places {
        *counts.entry(*place).or_default() += 1;
    }
    counts.into_values().collect()
}

#[test]
fn turns_go_by_weight_and_not_in_a_row() {
    let equal = addresses(Balance::RoundRobin, &[1, 1, 1]);
    assert_eq!(places(&equal, 6, &[]), [0, 1, 2, 0, 1, 2]);
    let heavy = addresses(Balance::RoundRobin, &[5, 1, 1]);
    assert_eq!(places(&heavy, 7, &[]), [0, 0, 1, 0, 2, 0, 0]);
    let uneven = addresses(Balance::RoundRobin, &[100, 99]);
    let places = places(&uneven, 199, &[]);
    assert_eq!(counts(&places), [100, 99]);
    assert!(!places.windows(3).any(|three| three == [1, 1, 1]));
}

#[test]
fn the_share_of_one_that_is_out_is_shared_out() {
    let addresses = addresses(Balance::RoundRobin, &[1, 1, 1]);
    assert_eq!(counts(&places(&addresses, 30, &[1])), [15, 15]);
    assert_eq!(counts(&places(&addresses, 30, &[0, 1])), [30]);
}

#[test]
fn another_address_takes_nobodys_turn() {
    let addresses = addresses(Balance::RoundRobin, &[1, 1, 1]);
    let mut others = Vec::new();
    for turn in 0..30 {
        let chosen = place(addresses.choose(b"", |_| true).unwrap());
        assert_eq!(chosen, turn % 3);
        if chosen == 0 {
            let other = addresses.choose_another(b"", |address| place(address) != 0);
            others.push(place(other.unwrap()));
        }
    }
    assert!(others.contains(&1) && others.contains(&2), "{others:?}");
}

#[test]
fn nobody_is_chosen_when_all_are_out_or_none_is_there() {
    for balance in [
        Balance::RoundRobin,
        Balance::LeastConnections,
        Balance::HashApp,
        Balance::HashClient,
    ] {
        assert!(
            addresses(balance, &[1, 2])
                .choose(b"x", |_| false)
                .is_none()
        );
        assert!(Addresses::none(balance).choose(b"x", |_| true).is_none());
    }
}

#[test]
fn the_one_with_least_to_do_for_its_weight_is_chosen() {
    let addresses = addresses(Balance::LeastConnections, &[1, 3]);
    let mut under_way = Vec::new();
    let mut places = Vec::new();
    for _ in 0..8 {
        let chosen = addresses.choose(b"", |_| true).unwrap();
        places.push(place(chosen));
        under_way.push(UnderWay::begin(chosen));
    }
    assert_eq!(counts(&places), [2, 6]);
    drop(under_way);
    assert_eq!(places_of_idle(&addresses), [1, 1]);
    // Not the lightest, if that is out.
    assert_eq!(places_but(&addresses, 1), 0);
}

fn places_of_idle(addresses: &Addresses) -> [usize; 2] {
    [(); 2].map(|()| place(addresses.choose(b"", |_| true).unwrap()))
}

fn places_but(addresses: &Addresses, out: usize) -> usize {
    place(
        addresses
            .choose(b"", |address| place(address) != out)
            .unwrap(),
    )
}

#[test]
fn idle_ones_of_one_weight_take_turns() {
    let addresses = addresses(Balance::LeastConnections, &[1, 1, 1]);
    assert_eq!(counts(&places(&addresses, 30, &[])), [10, 10, 10]);
}

#[test]
fn a_key_stays_where_it_is() {
    let addresses = addresses(Balance::HashApp, &[1, 1, 1]);
    let chosen = |key: usize, out: Option<usize>| {
        let accepts = |address: &Address| Some(place(address)) != out;
        place(
            addresses
                .choose(format!("key {key}").as_bytes(), accepts)
                .unwrap(),
        )
    };
    let before: Vec<_> = (0..3000).map(|key| chosen(key, None)).collect();
    assert!(counts(&before).into_iter().all(|count| count > 600));
    let after: Vec<_> = (0..3000).map(|key| chosen(key, Some(1))).collect();
    for (before, after) in before.iter().zip(&after) {
        assert!(before == after || (*before == 1 && *after != 1));
    }
    // Those of the one that is out do not all go to the same other one.
    let moved: Vec<_> = (0..3000)
        .filter(|key| before[*key] == 1)
        .map(|key| after[key])
        .collect();
    assert_eq!(counts(&moved).len(), 2);
}

#[test]
fn keys_go_by_weight_too() {
    let addresses = addresses(Balance::HashClient, &[1, 9]);
    let chosen = |key: usize| place(addresses.choose(&key.to_le_bytes(), |_| true).unwrap());
    let places: Vec<_> = (0..5000).map(chosen).collect();
    let counts = counts(&places);
    assert!((200..1000).contains(&counts[0]), "{counts:?}");
}

#[test]
fn an_address_that_is_found_again_is_the_same() {
    let before = addresses(Balance::LeastConnections, &[1, 1]);
    let _under_way = UnderWay::begin(before.choose(b"", |address| place(address) == 1).unwrap());
    let after = Addresses::new(Balance::LeastConnections, &found(&[1, 1, 1]), &before);
    let loads: Vec<_> = after.iter().map(|address| address.under_way()).collect();
    assert_eq!(loads, [0, 1, 0]);
}

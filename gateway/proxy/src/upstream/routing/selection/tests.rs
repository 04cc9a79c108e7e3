//! Each balancing rule, without a network.

use std::collections::BTreeMap;

use super::{super::address::InFlightRequest, *};

/// Addresses of these weights, in order.
fn addresses(balance: Balance, weights: &[usize]) -> Addresses {
    Addresses::new(balance, &found(weights), &Addresses::empty(balance))
}

fn found(weights: &[usize]) -> BTreeSet<Backend> {
    let backend = |(index, weight): (usize, &usize)| {
        Backend::new_with_weight(&format!("127.0.0.1:{}", 1000 + index), *weight).unwrap()
    };
    weights.iter().enumerate().map(backend).collect()
}

fn index(address: &Address) -> usize {
    usize::from(address.socket().port()) - 1000
}

/// The indices chosen in `turns` turns, without those that are ejected.
fn indices(addresses: &Addresses, turns: usize, ejected: &[usize]) -> Vec<usize> {
    let accepts = |address: &Address| !ejected.contains(&index(address));
    (0..turns)
        .map(|_| index(addresses.choose(b"", accepts).unwrap()))
        .collect()
}

fn counts(indices: &[usize]) -> Vec<usize> {
    let mut counts = BTreeMap::new();
    for index in indices {
        *counts.entry(*index).or_default() += 1;
    }
    counts.into_values().collect()
}

#[test]
fn turns_are_weighted_and_spread() {
    let equal = addresses(Balance::RoundRobin, &[1, 1, 1]);
    assert_eq!(indices(&equal, 6, &[]), [0, 1, 2, 0, 1, 2]);
    let heavy = addresses(Balance::RoundRobin, &[5, 1, 1]);
    assert_eq!(indices(&heavy, 7, &[]), [0, 0, 1, 0, 2, 0, 0]);
    let uneven = addresses(Balance::RoundRobin, &[100, 99]);
    let indices = indices(&uneven, 199, &[]);
    assert_eq!(counts(&indices), [100, 99]);
    assert!(!indices.windows(3).any(|three| three == [1, 1, 1]));
}

#[test]
fn the_share_of_an_ejected_address_is_distributed() {
    let addresses = addresses(Balance::RoundRobin, &[1, 1, 1]);
    assert_eq!(counts(&indices(&addresses, 30, &[1])), [15, 15]);
    assert_eq!(counts(&indices(&addresses, 30, &[0, 1])), [30]);
}

#[test]
fn a_retry_takes_no_turn() {
    let addresses = addresses(Balance::RoundRobin, &[1, 1, 1]);
    let mut others = Vec::new();
    for turn in 0..30 {
        let chosen = index(addresses.choose(b"", |_| true).unwrap());
        assert_eq!(chosen, turn % 3);
        if chosen == 0 {
            let other = addresses.choose_another(b"", |address| index(address) != 0);
            others.push(index(other.unwrap()));
        }
    }
    assert!(others.contains(&1) && others.contains(&2), "{others:?}");
}

#[test]
fn no_address_is_chosen_if_all_are_ejected_or_none_is_known() {
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
        assert!(Addresses::empty(balance).choose(b"x", |_| true).is_none());
    }
}

#[test]
fn the_address_with_the_least_load_for_its_weight_is_chosen() {
    let addresses = addresses(Balance::LeastConnections, &[1, 3]);
    let mut in_flight = Vec::new();
    let mut indices = Vec::new();
    for _ in 0..8 {
        let chosen = addresses.choose(b"", |_| true).unwrap();
        indices.push(index(chosen));
        in_flight.push(InFlightRequest::begin(chosen));
    }
    assert_eq!(counts(&indices), [2, 6]);
    drop(in_flight);
    assert_eq!(choose_two(&addresses), [1, 1]);
    // The lightest is not chosen if it is ejected.
    assert_eq!(choose_except(&addresses, 1), 0);
}

fn choose_two(addresses: &Addresses) -> [usize; 2] {
    [(); 2].map(|()| index(addresses.choose(b"", |_| true).unwrap()))
}

fn choose_except(addresses: &Addresses, ejected: usize) -> usize {
    index(
        addresses
            .choose(b"", |address| index(address) != ejected)
            .unwrap(),
    )
}

#[test]
fn idle_addresses_of_equal_weight_take_turns() {
    let addresses = addresses(Balance::LeastConnections, &[1, 1, 1]);
    assert_eq!(counts(&indices(&addresses, 30, &[])), [10, 10, 10]);
}

#[test]
fn a_key_keeps_its_address() {
    let addresses = addresses(Balance::HashApp, &[1, 1, 1]);
    let chosen = |key: usize, ejected: Option<usize>| {
        let accepts = |address: &Address| Some(index(address)) != ejected;
        index(
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
    // The keys of the ejected address are distributed over the others.
    let moved: Vec<_> = (0..3000)
        .filter(|key| before[*key] == 1)
        .map(|key| after[key])
        .collect();
    assert_eq!(counts(&moved).len(), 2);
}

#[test]
fn keys_are_distributed_by_weight() {
    let addresses = addresses(Balance::HashClient, &[1, 9]);
    let chosen = |key: usize| index(addresses.choose(&key.to_le_bytes(), |_| true).unwrap());
    let indices: Vec<_> = (0..5000).map(chosen).collect();
    let counts = counts(&indices);
    assert!((200..1000).contains(&counts[0]), "{counts:?}");
}

#[test]
fn an_address_that_is_found_again_keeps_its_state() {
    let before = addresses(Balance::LeastConnections, &[1, 1]);
    let _in_flight =
        InFlightRequest::begin(before.choose(b"", |address| index(address) == 1).unwrap());
    let after = Addresses::new(Balance::LeastConnections, &found(&[1, 1, 1]), &before);
    let loads: Vec<_> = after.iter().map(|address| address.in_flight()).collect();
    assert_eq!(loads, [0, 1, 0]);
}

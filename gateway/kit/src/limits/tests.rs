//! Rates, bursts, evictions, changed rates.

use std::{net::IpAddr, time::Instant};

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

fn rate(per_second: u32, burst: u32) -> Rate {
    Rate::new(per_second, burst).unwrap()
}

fn app(id: i64) -> Key {
    let subject = Subject::Application(id);
    Key { rule: 0, subject }
}

/// 10 a second and 5 at once from a network; four times as many from a /48.
fn count(table: &RateTable, client: IpAddr, now: Instant) -> Result<Quota, Exceeded> {
    table.count_client(0, client, rate(10, 5), now)
}

/// Sends concurrent requests. Returns how many are served, and the error of the last one.
fn served(
    table: &RateTable,
    client: &str,
    requests: usize,
    now: Instant,
) -> (usize, Option<Exceeded>) {
    let client = client.parse().unwrap();
    let results: Vec<_> = (0..requests).map(|_| count(table, client, now)).collect();
    let served = results.iter().filter(|result| result.is_ok()).count();
    (served, results.last().and_then(|result| result.err()))
}

#[test]
fn a_network_has_its_burst_and_then_its_rate() {
    let start = Instant::now();
    let table = RateTable::new(start);
    let (count, error) = served(&table, "192.0.2.1", 9, start);
    assert_eq!(count, 5);
    assert_eq!(error.unwrap().retry_after, 100 * MILLISECOND);
    for (milliseconds, count) in [(99, 0), (100, 1), (400, 3), (3_600_000, 5)] {
        let now = start + milliseconds * MILLISECOND;
        assert_eq!(served(&table, "192.0.2.1", 9, now).0, count);
    }
}

#[test]
fn networks_are_counted_separately() {
    let now = Instant::now();
    let table = RateTable::new(now);
    for (client, count) in [
        ("192.0.2.1", 5),
        ("192.0.2.2", 5),
        // The same address, mapped to IPv6.
        ("::ffff:192.0.2.2", 0),
        ("2001:db8:0:1::1", 5),
        // The same /64, and others of the same /48, which has 20.
        ("2001:db8:0:1:ffff::2", 0),
        ("2001:db8:0:2::1", 5),
        ("2001:db8:0:3::1", 5),
        ("2001:db8:0:4::1", 5),
        ("2001:db8:0:5::1", 0),
        ("2001:db8:1:1::1", 5),
    ] {
        assert_eq!(served(&table, client, 9, now).0, count, "{client}");
    }
    // By then the site has 16 tokens again. The fifth network has used none of its 5.
    let later = now + 400 * MILLISECOND;
    assert_eq!(served(&table, "2001:db8:0:5::1", 9, later).0, 5);
}

#[test]
fn rejected_requests_of_a_network_do_not_count_against_its_site() {
    let now = Instant::now();
    let table = RateTable::new(now);
    assert_eq!(served(&table, "2001:db8:0:1::1", 1000, now).0, 5);
    for network in ["2001:db8:0:2::1", "2001:db8:0:3::1", "2001:db8:0:4::1"] {
        assert_eq!(served(&table, network, 9, now).0, 5);
    }
}

#[test]
fn more_networks_than_are_tracked_cause_no_rejections() {
    let now = Instant::now();
    let table = RateTable::new(now);
    assert_eq!(served(&table, "192.0.2.1", 9, now).0, 5);
    for number in 0..3 * u32::try_from(TRACKED_KEYS).unwrap() {
        let stranger = IpAddr::from((0x0b00_0000 + number).to_be_bytes());
        assert!(count(&table, stranger, now).is_ok(), "{stranger}");
    }
    // The network that has used most is still tracked.
    assert_eq!(served(&table, "192.0.2.1", 9, now).0, 0);
}

#[test]
fn a_network_and_the_site_around_it_differ() {
    let of = |text: &str| text.parse::<IpAddr>().unwrap();
    let first = of("2001:db8::1");
    assert_ne!(Network::from_client(first), Network::from_site(first));
    assert_eq!(
        Network::from_site(first),
        Network::from_site(of("2001:db8:0:ffff::2"))
    );
    assert_ne!(
        Network::from_site(first),
        Network::from_site(of("2001:db8:1::1"))
    );
    let old = of("192.0.2.1");
    assert_eq!(Network::and_site(old), (Network::from_site(old), None));
}

#[test]
fn keys_are_counted_separately() {
    let (now, rate) = (Instant::now(), rate(1, 2));
    let table = RateTable::new(now);
    for (id, is_served) in [(1, true), (1, true), (1, false), (2, true)] {
        assert_eq!(table.count(&app(id), rate, now).is_ok(), is_served, "{id}");
    }
    let later = now + Duration::from_secs(1);
    assert!(table.count(&app(1), rate, later).is_ok());
}

#[test]
fn what_was_used_is_reduced_to_a_new_burst() {
    let now = Instant::now();
    let table = RateTable::new(now);
    assert!((0..100).all(|_| table.count(&app(1), rate(1, 100), now).is_ok()));
    // The old rate would refill the tokens in 100 s. The new burst leaves 1 s of use.
    let error = table.count(&app(1), rate(10, 10), now).unwrap_err();
    assert_eq!(error.retry_after, 100 * MILLISECOND);
    let later = now + 100 * MILLISECOND;
    assert!(table.count(&app(1), rate(10, 10), later).is_ok());
}

#[test]
fn retry_after_is_rounded_up_and_never_0() {
    for (wait, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2)] {
        assert_eq!(retry_after_seconds(Duration::from_millis(wait)), seconds);
    }
    assert_eq!(retry_after_seconds(Duration::from_micros(1)), 1);
}

#[test]
fn keys_are_in_use_until_their_tokens_are_refilled() {
    let now = Instant::now();
    let table = RateTable::new(now);
    assert_eq!(table.keys_in_use(now), 0);
    // The network and the site around it; an IPv4 address is both.
    served(&table, "2001:db8::1", 1, now);
    served(&table, "192.0.2.1", 1, now);
    assert_eq!(table.keys_in_use(now), 3);
    assert_eq!(table.keys_in_use(now + 99 * MILLISECOND), 2);
    assert_eq!(table.keys_in_use(now + 100 * MILLISECOND), 0);
    let table = RateTable::new(now);
    for id in 0..1000 {
        table.count(&app(id), rate(1, 1), now).unwrap();
    }
    assert_eq!(table.keys_in_use(now), 1000);
    assert_eq!(table.keys_in_use(now + Duration::from_secs(1)), 0);
}

//! Rates, bursts, evictions, changed rates.

use std::net::IpAddr;

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// 10 a second and 5 at once from a network, 20 and 8 from a /48.
fn limiter(now: Instant) -> NetworkLimiter {
    let rate = |per_second, burst| Rate::new(per_second, burst).unwrap();
    NetworkLimiter::new(rate(10, 5), rate(20, 8), now)
}

/// Sends concurrent requests. Returns how many are served, and the error of the last one.
fn served(
    limiter: &NetworkLimiter,
    client: &str,
    requests: usize,
    now: Instant,
) -> (usize, Option<RateExceeded>) {
    let client = client.parse().unwrap();
    let results: Vec<_> = (0..requests).map(|_| limiter.count(client, now)).collect();
    let served = results.iter().filter(|result| result.is_ok()).count();
    (served, results.last().and_then(|result| result.err()))
}

#[test]
fn a_network_has_its_burst_and_then_its_rate() {
    let start = Instant::now();
    let limiter = limiter(start);
    let (count, error) = served(&limiter, "192.0.2.1", 9, start);
    assert_eq!(count, 5);
    assert_eq!(error.unwrap().retry_after, 100 * MILLISECOND);
    assert_eq!(
        served(&limiter, "192.0.2.1", 9, start + 99 * MILLISECOND).0,
        0
    );
    assert_eq!(
        served(&limiter, "192.0.2.1", 9, start + 100 * MILLISECOND).0,
        1
    );
    assert_eq!(
        served(&limiter, "192.0.2.1", 9, start + 400 * MILLISECOND).0,
        3
    );
    let rested = start + Duration::from_secs(3600);
    assert_eq!(served(&limiter, "192.0.2.1", 9, rested).0, 5);
}

#[test]
fn networks_are_counted_separately() {
    let now = Instant::now();
    let limiter = limiter(now);
    for (client, count) in [
        ("192.0.2.1", 5),
        ("192.0.2.2", 5),
        // The same address, mapped to IPv6.
        ("::ffff:192.0.2.2", 0),
        ("2001:db8:0:1::1", 5),
        // The same /64, and another one of the same /48, which has 8.
        ("2001:db8:0:1:ffff::2", 0),
        ("2001:db8:0:2::1", 3),
        ("2001:db8:0:3::1", 0),
        ("2001:db8:1:1::1", 5),
    ] {
        assert_eq!(served(&limiter, client, 9, now).0, count, "{client}");
    }
}

#[test]
fn rejected_requests_of_a_network_do_not_count_against_its_site() {
    let now = Instant::now();
    let limiter = limiter(now);
    assert_eq!(served(&limiter, "2001:db8:0:1::1", 1000, now).0, 5);
    assert_eq!(served(&limiter, "2001:db8:0:2::1", 9, now).0, 3);
}

#[test]
fn more_networks_than_are_tracked_cause_no_rejections() {
    let now = Instant::now();
    let limiter = limiter(now);
    assert_eq!(served(&limiter, "192.0.2.1", 9, now).0, 5);
    for number in 0..3 * u32::try_from(TRACKED_KEYS).unwrap() {
        let stranger = IpAddr::from((0x0b00_0000 + number).to_be_bytes());
        assert_eq!(limiter.count(stranger, now), Ok(()), "{stranger}");
    }
    // The network with the highest debt is still tracked.
    assert_eq!(served(&limiter, "192.0.2.1", 9, now).0, 0);
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
    assert_eq!(Network::from_client(old), Network::from_site(old));
}

#[test]
fn keys_are_counted_separately() {
    let now = Instant::now();
    let limiter = RateLimiter::new(Rate::new(1, 2).unwrap(), now);
    for (key, is_served) in [(1, true), (1, true), (1, false), (2, true)] {
        assert_eq!(limiter.count(&key, now).is_ok(), is_served, "{key}");
    }
    assert!(limiter.count(&1, now + Duration::from_secs(1)).is_ok());
}

#[test]
fn requests_rejected_for_a_site_do_not_count_against_its_networks() {
    let now = Instant::now();
    let limiter = limiter(now);
    for network in ["2001:db8:0:1::1", "2001:db8:0:2::1"] {
        served(&limiter, network, 5, now);
    }
    assert_eq!(served(&limiter, "2001:db8:0:3::1", 9, now).0, 0);
    // By then the site allows 8 again, and the third network its own burst.
    let later = now + Duration::from_millis(400);
    assert_eq!(served(&limiter, "2001:db8:0:3::1", 9, later).0, 5);
}

#[test]
fn debts_stay_when_the_rates_change() {
    let now = Instant::now();
    let rate = |per_second, burst| Rate::new(per_second, burst).unwrap();
    let old = limiter(now);
    assert_eq!(served(&old, "192.0.2.1", 5, now).0, 5);
    let larger = old.with_rates(rate(10, 8), rate(20, 16));
    assert_eq!(served(&larger, "192.0.2.1", 9, now).0, 3);
    assert_eq!(served(&larger, "192.0.2.2", 9, now).0, 8);
    // The old limiter still applies its own rate to the same debts.
    assert_eq!(served(&old, "192.0.2.2", 9, now).0, 0);
}

#[test]
fn an_old_debt_is_reduced_to_the_new_burst() {
    let now = Instant::now();
    let slow = RateLimiter::new(Rate::new(1, 100).unwrap(), now);
    assert!((0..100).all(|_| slow.count(&1, now).is_ok()));
    // The debt is 100 s, of which the faster rate allows 1 s.
    let fast = slow.with_rate(Rate::new(10, 10).unwrap());
    let error = fast.count(&1, now).unwrap_err();
    assert_eq!(error.retry_after, 100 * MILLISECOND);
    assert!(fast.count(&1, now + 100 * MILLISECOND).is_ok());
}

#[test]
fn retry_after_is_rounded_up_and_never_0() {
    for (wait, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2)] {
        assert_eq!(retry_after_seconds(Duration::from_millis(wait)), seconds);
    }
    assert_eq!(retry_after_seconds(Duration::from_micros(1)), 1);
}

#[test]
fn keys_count_until_their_debt_is_paid() {
    let now = Instant::now();
    let networks = limiter(now);
    assert_eq!(networks.keys_with_debt(now), 0);
    // The network and the site around it; an IPv4 address is both.
    served(&networks, "2001:db8::1", 1, now);
    served(&networks, "192.0.2.1", 1, now);
    assert_eq!(networks.keys_with_debt(now), 3);
    assert_eq!(networks.keys_with_debt(now + 99 * MILLISECOND), 2);
    assert_eq!(networks.keys_with_debt(now + 100 * MILLISECOND), 0);
    let keyed = KeyedDebts::new(now);
    for rule in 0..1000 {
        let subject = Subject::Application(1);
        let rate = Rate::new(1, 1).unwrap();
        keyed.count(&Key { rule, subject }, rate, now).unwrap();
    }
    assert_eq!(keyed.keys_with_debt(now), 1000);
    assert_eq!(keyed.keys_with_debt(now + Duration::from_secs(1)), 0);
}

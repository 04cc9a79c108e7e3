//! Quotas, and what two processes use together.

use super::*;

const RULE: u64 = 7;
const SECOND: Duration = Duration::from_secs(1);

fn rate(per_second: u32, burst: u32) -> Rate {
    Rate::new(per_second, burst).unwrap()
}

fn app(id: i64) -> Key {
    Key {
        rule: RULE,
        subject: Subject::Application(id),
    }
}

/// Number of the events that are allowed.
fn allowed(table: &RateTable, key: &Key, rate: Rate, events: u32, now: Instant) -> u32 {
    let results = (0..events).map(|_| table.count(key, rate, now));
    u32::try_from(results.filter(Result::is_ok).count()).unwrap()
}

fn shared(now: Instant) -> RateTable {
    let table = RateTable::new(now);
    table.begin_sharing();
    table
}

#[test]
fn a_quota_has_what_remains_and_the_time_until_it_is_whole() {
    let now = Instant::now();
    let table = RateTable::new(now);
    let first = table.count(&app(1), rate(10, 5), now).unwrap();
    assert_eq!((first.burst.get(), first.remaining), (5, 4));
    assert_eq!(first.window, SECOND / 2);
    assert_eq!(first.whole_after, SECOND / 10);
    assert_eq!(allowed(&table, &app(1), rate(10, 5), 9, now), 4);
    let over = table.count(&app(1), rate(10, 5), now).unwrap_err();
    assert_eq!(over.retry_after, SECOND / 10);
    assert_eq!(
        (over.quota.remaining, over.quota.whole_after),
        (0, SECOND / 2)
    );
}

#[test]
fn each_call_has_its_rate() {
    let now = Instant::now();
    let table = RateTable::new(now);
    assert_eq!(allowed(&table, &app(1), rate(1, 2), 9, now), 2);
    assert_eq!(allowed(&table, &app(2), rate(1, 7), 9, now), 7);
    // Application 1 has used 2 tokens. The new rate allows 5.
    assert_eq!(allowed(&table, &app(1), rate(1, 5), 9, now), 3);
    // What was used beyond the new burst is reduced to it.
    let later = now + SECOND;
    assert_eq!(allowed(&table, &app(2), rate(1, 2), 9, later), 0);
    assert_eq!(allowed(&table, &app(2), rate(1, 2), 9, later + SECOND), 1);
}

#[test]
fn an_event_that_is_given_back_does_not_count() {
    let now = Instant::now();
    let table = shared(now);
    assert_eq!(allowed(&table, &app(1), rate(1, 2), 9, now), 2);
    table.give_back(&app(1), rate(1, 2));
    assert_eq!(table.unreported(9, now)[0].count, 1);
    assert_eq!(allowed(&table, &app(1), rate(1, 2), 9, now), 1);
}

#[test]
fn a_site_has_four_times_the_rate_of_its_networks() {
    let now = Instant::now();
    let table = RateTable::new(now);
    let count = |client: &str| table.count_client(RULE, client.parse().unwrap(), rate(1, 2), now);
    for network in 0..4 {
        let client = format!("2001:db8:0:{network}::1");
        assert!(count(&client).is_ok() && count(&client).is_ok());
        assert!(count(&client).is_err());
    }
    let over = count("2001:db8:0:9::1").unwrap_err();
    assert_eq!(over.quota.burst.get(), 8);
    assert!(count("192.0.2.1").is_ok());
    table.give_back_client(RULE, "2001:db8:0:1::1".parse().unwrap(), rate(1, 2));
    assert!(count("2001:db8:0:9::1").is_ok());
}

/// A store that adds up reports, as the SQL does.
#[derive(Default)]
struct Ledger(std::collections::HashMap<Key, Duration>);

impl Ledger {
    /// Reports everything at `now`, measured since the test's start.
    fn report(&mut self, table: &RateTable, start: Instant, now: Duration) {
        for used in table.unreported(100, start + now) {
            let full_at = self.0.entry(used.key).or_default();
            *full_at = (*full_at).max(now) + used.refill_time();
            table.reported(&used, *full_at - now, start + now);
        }
    }
}

#[test]
fn two_processes_that_share_keep_to_the_rate_and_overshoot_by_a_known_bound() {
    let (start, limit) = (Instant::now(), rate(10, 20));
    let processes = [shared(start), shared(start)];
    let mut ledger = Ledger::default();
    let (seconds, mut served) = (60, 0);
    for tick in 0..seconds * 100 {
        let now = Duration::from_millis(tick * 10);
        for (number, table) in processes.iter().enumerate() {
            served += allowed(table, &app(1), limit, 3, start + now);
            // The processes report half a second apart.
            if tick % 100 == number as u64 * 50 {
                ledger.report(table, start, now);
            }
        }
    }
    let alone = 10 * u32::try_from(seconds).unwrap() + 20;
    assert!(served >= alone - 10, "{served}");
    // `conf/guides/limits.md`: (G - 1) times (burst and two seconds of the rate).
    assert!(served <= alone + 20 + 2 * 10, "{served}");
}

#[test]
fn a_flood_of_keys_reports_nothing_but_those_that_use_much() {
    let now = Instant::now();
    let table = shared(now);
    assert_eq!(allowed(&table, &app(-1), rate(50, 200), 900, now), 200);
    for id in 0..200_000 {
        assert!(table.count(&app(id), rate(50, 200), now).is_ok());
    }
    let reported = table.unreported(4096, now);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!((reported[0].key, reported[0].count), (app(-1), 200));
}

#[test]
fn the_keys_that_have_used_most_are_reported_first() {
    let now = Instant::now();
    let table = shared(now);
    for id in 0..50 {
        let events = u32::try_from(id).unwrap();
        allowed(&table, &app(id), rate(1, 100), events, now);
    }
    let mut counts: Vec<_> = table
        .unreported(3, now)
        .iter()
        .map(|used| used.count)
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [47, 48, 49]);
    // What was not reported stays, and what was reported does not.
    for used in table.unreported(3, now) {
        table.reported(&used, used.refill_time(), now);
    }
    assert_eq!(table.unreported(100, now).len(), 46);
}

#[test]
fn an_insignificant_use_is_dropped() {
    let now = Instant::now();
    let table = shared(now);
    allowed(&table, &app(1), rate(100, 1000), 10, now);
    for _ in 0..MAX_AGE {
        assert_eq!(table.unreported(9, now), []);
    }
    allowed(&table, &app(1), rate(100, 1000), 10, now);
    assert_eq!(table.unreported(9, now), []);
    allowed(&table, &app(1), rate(100, 1000), 1, now);
    assert_eq!(table.unreported(9, now)[0].count, 11);
}

#[test]
fn what_other_processes_used_is_refilled_before_an_event_is_allowed() {
    let now = Instant::now();
    let table = shared(now);
    assert_eq!(allowed(&table, &app(1), rate(10, 10), 2, now), 2);
    let used = table.unreported(9, now)[0];
    // An event since the report began counts in addition.
    assert_eq!(allowed(&table, &app(1), rate(10, 10), 1, now), 1);
    table.reported(&used, 3 * SECOND, now);
    let over = table.count(&app(1), rate(10, 10), now).unwrap_err();
    assert_eq!(over.retry_after, Duration::from_millis(2200));
    assert_eq!(over.quota.whole_after, Duration::from_millis(3100));
    let later = now + Duration::from_millis(2200);
    assert_eq!(allowed(&table, &app(1), rate(10, 10), 9, later), 1);
    // Another rate does not inherit what other processes used of the old one.
    assert_eq!(allowed(&table, &app(1), rate(10, 20), 9, later), 9);
}

#[test]
fn what_was_used_during_an_outage_is_not_charged_later() {
    let start = Instant::now();
    let table = shared(start);
    for second in 0..600 {
        let now = start + second * SECOND;
        allowed(&table, &app(1), rate(10, 10), 9, now);
        for used in table.unreported(9, now) {
            table.not_reported(&used, now);
        }
    }
    let now = start + 600 * SECOND;
    assert!(table.unreported(9, now)[0].count <= 10);
}

#[test]
fn sharing_that_begins_again_forgets_what_was_not_reported() {
    let now = Instant::now();
    let table = RateTable::new(now);
    allowed(&table, &app(1), rate(1, 9), 3, now);
    assert_eq!(table.unreported(9, now), []);
    table.begin_sharing();
    allowed(&table, &app(1), rate(1, 9), 3, now);
    assert_eq!(table.unreported(9, now)[0].count, 3);
    table.begin_sharing();
    assert_eq!(table.unreported(9, now), []);
    assert_eq!(allowed(&table, &app(1), rate(1, 9), 9, now), 3);
}

//! The budget.

use super::*;

#[test]
fn responses_and_time_return_the_budget_but_never_more() {
    let meter = Meter::default();
    meter.spend(BUDGET);
    assert!(!meter.is_over());
    meter.spend(1);
    assert!(meter.is_over());
    meter.credit_piece(0);
    assert!(!meter.is_over());
    meter.credit(10 * BUDGET);
    meter.spend(BUDGET + 1);
    assert!(meter.is_over());
    // A minute: a busy machine may take some seconds between the two.
    let minute = 60 * BUDGET_PER_SECOND;
    let mut last = Instant::now() - std::time::Duration::from_secs(60);
    meter.refill(&mut last);
    assert!(!meter.is_over());
    meter.spend(minute + minute / 2);
    meter.refill(&mut last);
    assert!(meter.is_over());
}

#[test]
fn the_budget_of_a_proxy_grows_with_its_streams_and_requests() {
    let meter = Meter::default();
    for _ in 0..10 {
        meter.credit_response();
    }
    meter.spend(BUDGET + PROXY_STREAM + 10 * PROXY_REQUEST);
    assert!(meter.is_over());
    meter.allow_proxy(1);
    assert!(!meter.is_over());
    meter.allow_proxy(0);
    assert!(meter.is_over());
}

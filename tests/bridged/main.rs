//! The tests of version 1 once more: its program is not started, and version 2 serves its clients over the bridge of
//! `conf/gateway-bridge.toml`.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

#[path = "../both_stores/accounts.rs"]
mod accounts;
#[path = "../both_stores/application_isolation.rs"]
mod application_isolation;
#[path = "../both_stores/events.rs"]
mod events;
#[path = "../both_stores/login_attacks.rs"]
mod login_attacks;
#[path = "../both_stores/polling_login.rs"]
mod polling_login;
#[path = "../installation/polling_page.rs"]
mod polling_page;
#[path = "../both_stores/redirect_login.rs"]
mod redirect_login;
#[path = "../both_stores/renewals.rs"]
mod renewals;
#[path = "../both_stores/return_to.rs"]
mod return_to;
#[path = "../both_stores/sessions.rs"]
mod sessions;
#[path = "../both_stores/waiting_checks.rs"]
mod waiting_checks;

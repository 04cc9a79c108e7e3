//! Poolers between the programs and their Postgres, and engines that have its protocol and fewer abilities.
//!
//! With `SIGNPOST_TEST_FRONT=transaction`, `session` or `limited`, each test of this program runs behind one. Here, some
//! flows do in every run.

use std::{
    env,
    process::{Command, Stdio},
};

use end_to_end::{
    logins::log_in_by_polling,
    program::{Program, output_text},
    stack::Stack,
    store::{FRONT, StoreKind},
};

/// Logins of both kinds, changes that reach other processes, concurrent writes and starts, and an own table of a version.
const FLOWS: [&str; 11] = [
    "fronts::the_log_says_what_is_done_otherwise",
    "polling_login::a_person_logs_in_while_the_client_polls",
    "redirect_login::a_second_callback_changes_nothing",
    "redirect_login::a_ticket_is_redeemed_once_by_concurrent_requests",
    "sessions::logout_invalidates_the_credential_everywhere",
    "renewals::a_renewal_replaces_the_credential_after_an_overlap",
    "events::an_event_with_a_key_is_stored_once",
    "topology::an_application_is_disabled_at_every_gateway",
    "topology::processes_that_start_at_once_migrate_once",
    "applications::a_rotated_key_is_valid_until_its_overlap_ends",
    "administration::the_audit_says_who_changed_what_and_a_stale_revision_changes_nothing",
];

#[test]
fn flows_pass_behind_pgbouncer_that_pools_transactions() {
    pass_behind("transaction");
}

#[test]
fn flows_pass_behind_pgbouncer_that_pools_sessions() {
    pass_behind("session");
}

#[test]
fn flows_pass_on_an_engine_without_notifications_and_locks_and_with_conflicts() {
    pass_behind("limited");
}

fn pass_behind(front: &str) {
    if !StoreKind::Postgres.is_chosen("these are between the programs and Postgres") {
        return;
    }
    if env::var_os(FRONT).is_some() {
        return;
    }
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.args(["--exact", "--test-threads=2"]).args(FLOWS);
    let output = command.env(FRONT, front).stdin(Stdio::null()).output();
    let text = output_text(&output.expect("this program runs once more"));
    let passed = format!("test result: ok. {} passed", FLOWS.len());
    assert!(text.contains(&passed), "{text}");
}

#[tokio::test]
async fn the_log_says_what_is_done_otherwise() {
    let Ok(front) = env::var(FRONT) else {
        return;
    };
    let mut stack = Stack::builder().multi().start().await;
    let client = stack.client_of(&stack.create_application("one", &[]));
    log_in_by_polling(&client, "ada").await;
    for program in [Program::Gateway, Program::V1] {
        let pooled = "a pooler gives each transaction of the store another connection";
        let polled = "its changes are polled instead";
        // A notification that is late at the start is as one that does not come.
        let mut log = stack.log(program);
        let mut starts = 1;
        while front == "session" && starts < 5 && log.contains(polled) {
            let before = stack.log(program).len();
            stack.restart(program).await;
            log = stack.log(program).split_off(before);
            starts += 1;
        }
        assert_eq!(log.contains(pooled), front == "transaction", "{log}");
        assert_eq!(log.contains(polled), front != "session", "{log}");
    }
}

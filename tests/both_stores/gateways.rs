//! The gateways of one store, as each describes itself.

use end_to_end::{
    program::{Program, output_text},
    recording_backend::RecordingBackend,
    stack::Stack,
    waiting::until,
};
use serde_json::Value;

/// What `signpost gateways` lists, in the order of their starts; `None` unless it is so many.
fn listed(stack: &Stack, number: usize) -> Option<Vec<Value>> {
    let output = stack.command(&["gateways", "--json"]);
    assert!(output.status.success(), "{}", output_text(&output));
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    (all.len() == number).then_some(all)
}

/// The row of a process.
fn of(all: &[Value], process: u32) -> Option<&Value> {
    all.iter().find(|one| one["process"] == process)
}

#[tokio::test]
async fn a_gateway_with_another_configuration_is_marked_and_a_killed_one_is_gone() {
    let backend = RecordingBackend::start().await;
    let other = "[limits]\nbody_bytes = 60000";
    let mut stack = Stack::builder()
        .in_front_of(&backend)
        .several(Program::Gateway, 3)
        .multi()
        .only(Program::Gateway.number(2), other)
        .start()
        .await;
    let processes = [0, 1, 2].map(|number| stack.running(Program::Gateway.number(number)).id());
    let wait =
        async |stack: &Stack, what: &str, number: usize, holds: &dyn Fn(&[Value]) -> bool| {
            until(what, || async {
                listed(stack, number).filter(|all| holds(all))
            })
            .await
        };
    let is = |all: &[Value], member: &str| {
        processes.map(|process| of(all, process).is_some_and(|one| one[member] == true))
    };
    let all = wait(&stack, "three rows", 3, &|all| {
        is(all, "is_ready") == [true; 3]
    })
    .await;
    assert_eq!(is(&all, "is_alive"), [true; 3]);
    assert_eq!(is(&all, "differs"), [false, false, true], "{all:?}");
    let first = of(&all, processes[0]).unwrap();
    assert_eq!(first["readiness"], "ready");
    let text = output_text(&stack.command(&["gateways"]));
    assert!(text.contains("(differs)"), "{text}");
    // All have it now.
    for number in [0, 1] {
        stack.configure(Program::Gateway.number(number), other);
        let reloaded = stack.reload(Program::Gateway.number(number));
        assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    }
    let same = |all: &[Value]| is(all, "differs") == [false; 3];
    wait(&stack, "one configuration", 3, &same).await;
    // A file that is rejected changes nothing but what is said of the last reload.
    stack.configure(Program::Gateway.number(2), "threads = \"many\"");
    assert!(!stack.reload(Program::Gateway.number(2)).status.success());
    let rejected = |all: &[Value]| is(all, "is_reload_rejected") == [false, false, true];
    let all = wait(&stack, "a rejected reload", 3, &rejected).await;
    assert!(same(&all), "{all:?}");
    // A stop deletes the row, a kill does not.
    stack.kill(Program::Gateway.number(1));
    stack.running(Program::Gateway.number(2)).terminate();
    stack.wait_for_exit(Program::Gateway.number(2)).await;
    let killed = processes[1];
    let silent = "UPDATE gateways SET seen_at = seen_at - 20000 WHERE state LIKE";
    let of_killed = format!("'%\"process\":{killed},%'");
    stack.store().query(&format!("{silent} {of_killed}"));
    let gone = |all: &[Value]| is(all, "is_alive") == [true, false, false];
    let all = wait(&stack, "a gateway that is gone", 2, &gone).await;
    assert!(of(&all, processes[2]).is_none(), "{all:?}");
    let text = output_text(&stack.command(&["gateways"]));
    assert!(text.contains("gone since"), "{text}");
}

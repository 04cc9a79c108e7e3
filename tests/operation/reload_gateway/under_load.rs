//! Reloads under load: no request fails, and no memory leaks.

use end_to_end::raw_connection::RawConnection;

use super::{load::Load, *};

/// Clients that send requests over connections that they reuse, and return what failed.
fn load_on(stack: &Stack) -> Load<Vec<String>> {
    Load::start(|number, progress| {
        let (client, gateway) = (stack.client(), stack.addresses().gateway);
        async move {
            let mut connection = RawConnection::open(gateway).await;
            let mut failures = Vec::new();
            let mut turn = 0_usize;
            while progress.goes_on() {
                turn += 1;
                // A new connection now and then.
                if turn.is_multiple_of(50) {
                    connection = RawConnection::open(gateway).await;
                }
                let path = format!("/{number}-{turn}");
                let call = match turn % 2 {
                    0 => client.get(&path).param("a", "1"),
                    _ => client.post(&path).param("a", &"x".repeat(turn % 3000)),
                };
                connection.send(&call.bytes(&[])).await;
                match connection.response().await {
                    Some(response) if response.status == 200 => progress.served_one(),
                    other => {
                        failures.push(format!("{path}: {other:?}"));
                        connection = RawConnection::open(gateway).await;
                    }
                }
            }
            failures
        }
    })
}

/// Expects that no request has failed. Returns how many were served.
async fn stop(load: Load<Vec<String>>) -> usize {
    let (failures, served) = load.stop().await;
    let failures = failures.concat();
    assert!(failures.is_empty(), "{failures:#?}");
    served
}

/// The configuration for reload `number`. None of the changes may fail a request.
fn change(number: usize, backends: [&RecordingBackend; 3]) -> String {
    let [one, other, third] = backends.map(at);
    let balances = [
        "round-robin",
        "least-connections",
        "hash-client",
        "hash-app",
    ];
    let versions = match number % 5 {
        0 => format!("backends = [{one}, {other}]"),
        1 => format!("backends = [{other}, {third}]"),
        2 => format!("backends = [{{ address = {one}, weight = 7 }}, {other}, {third}]"),
        3 => format!("backends = [{third}]"),
        _ => format!("backends = [{one}, {other}, {third}]"),
    };
    format!(
        "trusted_proxies = [\"10.{number}.0.0/16\"]\ngateway_secret = \"{}\"\n[sign]\nwindow_seconds = {}\n\
         [limits]\nparams = {}\n[timeouts]\nresponse_seconds = {}\n[log]\nformat = \"{}\"\n\
         [versions.v1]\n{versions}\nbalance = \"{}\"\nhealth = {{ interval_seconds = {}, timeout_seconds = 30, unhealthy_after = 9 }}\n",
        &OTHER_KEY.repeat(2)[number % 32..][..64],
        60 + number % 200,
        256 + number,
        20 + number,
        ["human", "json"][number % 2],
        balances[number % balances.len()],
        1 + number % 3,
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_under_load_fail_no_request_and_leak_no_memory() {
    let (one, other, third) = tokio::join!(
        RecordingBackend::start(),
        RecordingBackend::start(),
        RecordingBackend::start()
    );
    let backends = [&one, &other, &third];
    let mut stack = Stack::builder()
        .in_front_of(&one)
        .without(Program::Gateway, "versions")
        .gateway(&format!("threads = 2\n{}", change(0, backends)))
        .start()
        .await;
    let load = load_on(&stack);
    load.serve(100).await;
    // What is in flight varies by more than a configuration has, some 10 KiB. Memory that reloads leak grows in every round.
    let mut reloads = 0;
    let mut grown = Vec::new();
    while grown.last().is_none_or(|&kib| kib > 1024) {
        assert!(grown.len() < 5, "KiB, by each 50 reloads: {grown:?}");
        let before = stack.running(Program::Gateway).resident_kib();
        for number in reloads + 1..=reloads + 50 {
            reload(&stack, &change(number, backends));
            load.serve(20).await;
        }
        reloads += 50;
        let after = stack.running(Program::Gateway).resident_kib();
        grown.push(after.saturating_sub(before));
    }
    assert!(stop(load).await >= 1000);
    assert!(backends.iter().all(|backend| backend.requests().len() > 50));
    until("every reload to be logged", || async {
        let log = stack.log(Program::Gateway);
        (log.matches("configuration reloaded").count() == reloads).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_ten_quick_sighups_the_last_configuration_applies() {
    let (one, other) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let mut stack = Stack::builder().in_front_of(&one).start().await;
    let load = load_on(&stack);
    load.serve(10).await;
    for number in 0..10 {
        let backend = [&one, &other][number % 2];
        stack.configure(
            Program::Gateway,
            &format!("[versions.v1]\nbackend = {}", at(backend)),
        );
        stack.running(Program::Gateway).reload_by_signal();
    }
    until("the last configuration to apply", || async {
        let before = other.requests().len();
        load.serve(10).await;
        (other.requests().len() >= before + 10).then_some(())
    })
    .await;
    stop(load).await;
}

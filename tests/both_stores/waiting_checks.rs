//! `/check` with `wait`: each holds a connection of the backend, so their number is limited. #22

use end_to_end::{
    browser::{Browser, Decision},
    logins::{begin_polling, confirm_polling, log_in_by_polling, log_in_by_redirect},
    metrics::Scrape,
    program::Program,
    response::Response,
    signed_client::{SignedClient, fetch},
    stack::{Stack, StackBuilder},
    waiting::{WAIT_TIMEOUT, until},
};
use tokio::{task::JoinSet, time::timeout};

const LIMIT: &str = "[limits]\nconnections = 60\n[management]\nlisten = \"$MANAGEMENT\"";
const CHECKED: &str =
    "[versions.v1]\nhealth = { interval_seconds = 1, timeout_seconds = 30, unhealthy_after = 10 }";

fn builder() -> StackBuilder {
    Stack::builder().multi().gateway(CHECKED).backends(LIMIT)
}

/// Begins a login, and sends this number of requests that wait for it.
async fn wait(waits: &mut JoinSet<Response>, client: &SignedClient, number: usize) {
    let token = begin_polling(client).await.token;
    for _ in 0..number {
        let (client, token) = (client.clone(), token.clone());
        waits.spawn(async move {
            let call = client.get("/check").param("token", &token);
            call.param("wait", "30").send().await
        });
    }
}

/// Waits until this number of requests wait, and all others were answered `pending` at once.
async fn expect_waiting(stack: &Stack, waits: &mut JoinSet<Response>, number: usize) {
    let at_once = waits.len() - number;
    for _ in 0..at_once {
        let answered = timeout(WAIT_TIMEOUT, waits.join_next()).await;
        let response = answered.expect("too many requests wait").unwrap().unwrap();
        assert_eq!(response.ok()["status"], "pending", "{}", response.summary());
    }
    until_waiting(stack, number).await;
    assert_eq!(waits.len(), number);
}

async fn until_waiting(stack: &Stack, number: usize) {
    let management = stack.addresses().management_of(Program::V1);
    until(&format!("{number} requests to wait"), || async {
        let waiting = Scrape::of(management).await;
        let waiting = waiting.value("signpost_checks_waiting", &[]);
        (waiting == Some(f64::from(u32::try_from(number).unwrap()))).then_some(())
    })
    .await;
}

/// Logs in by both modes, and waits for a login that completes.
async fn expect_logins(stack: &Stack, client: &SignedClient) {
    log_in_by_redirect(client, "ada").await;
    log_in_by_polling(client, "grace").await;
    let begun = begin_polling(client).await;
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, &begun).await;
    let done = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    assert_eq!(done.response.status, 200, "{}", done.text());
    let call = client.get("/check").param("token", &begun.token);
    let checked = call.param("wait", "30").send().await.ok();
    assert_eq!(checked["status"], "complete", "{checked}");
    let healthz = format!("http://{}/healthz", stack.addresses().v1);
    assert_eq!(fetch(&healthz).await.status, 200);
}

#[tokio::test]
async fn waits_of_one_application_do_not_end_the_logins_of_others() {
    let stack = builder().start().await;
    let one = stack.client_of(&stack.create_application("one", &[]));
    let other = stack.client_of(&stack.create_application("other", &[]));
    let mut waits = JoinSet::new();
    for _ in 0..5 {
        wait(&mut waits, &one, 3).await;
    }
    expect_waiting(&stack, &mut waits, 7).await;
    // Another application can wait.
    wait(&mut waits, &other, 1).await;
    until_waiting(&stack, 8).await;
    expect_logins(&stack, &other).await;
    expect_logins(&stack, &one).await;
    // Requests whose client leaves make room.
    waits.shutdown().await;
    until_waiting(&stack, 0).await;
    wait(&mut waits, &one, 9).await;
    expect_waiting(&stack, &mut waits, 4).await;
    assert_healthy(&stack);
}

#[tokio::test]
async fn waits_of_all_applications_hold_half_of_the_connections() {
    let stack = builder().start().await;
    // Before the first wait, which ends after 30 s.
    let clients: Vec<_> = (0..7)
        .map(|number| format!("application {number}"))
        .map(|name| stack.client_of(&stack.create_application(&name, &[])))
        .collect();
    let (other, clients) = clients.split_last().unwrap();
    let mut waits = JoinSet::new();
    for client in clients {
        for _ in 0..3 {
            wait(&mut waits, client, 3).await;
        }
    }
    expect_waiting(&stack, &mut waits, 30).await;
    for _ in 0..5 {
        expect_logins(&stack, other).await;
    }
    assert_healthy(&stack);
}

fn assert_healthy(stack: &Stack) {
    let log = stack.log(Program::Gateway);
    assert!(!log.contains("unhealthy"), "{log}");
}

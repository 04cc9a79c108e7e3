//! docker-compose.yml in real containers, which `scripts/compose-test` starts and removes: logins through the front, and
//! parts that are killed, vanish and come back under load.
//!
//! One test, since all of it changes the same containers. The settings of the stack are environment variables.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot continue fails at that line; what it measured is printed"
)]

mod containers;
mod load;
mod packages;

use std::{env, future::ready, time::Duration};

use containers::{compose, recreate, scraped, states};
use end_to_end::{
    logins::{credential, log_in_by_polling, log_in_by_redirect},
    signed_client::SignedClient,
    waiting::{until, within},
};
use load::Load;
use serde_json::Value;

/// Requests that were sent while a gateway was killed: the connection is cut off, so the client cannot know the outcome.
const MAX_LOST: usize = 4 * load::CLIENTS;

/// Several of Prometheus' scrape intervals.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(90);

// The load goes on while a command of Compose runs.
#[tokio::test(flavor = "multi_thread")]
async fn the_stack_serves_logins_and_survives_the_loss_of_its_parts() {
    let client = create_application();
    let login = log_in_everywhere(&client, "before").await;
    let credential = credential(&login);
    assert_prometheus_scrapes_all().await;

    // A backend is killed, its container vanishes, and another one takes its place. A GET is retried on the other one.
    for backend in ["v1-a", "v2-b"] {
        let load = Load::start(&client, credential);
        load.more().await;
        compose(&["kill", backend]);
        load.more().await;
        compose(&["rm", "--force", backend]);
        load.more().await;
        recreate(&[backend]);
        load.more().await;
        let sent = load.finish().await;
        println!("{backend} killed, gone and recreated: {sent}");
        assert_eq!(sent.failed, 0, "{sent}");
    }

    // A backend is replaced as an operator does it.
    let load = Load::start(&client, credential);
    load.more().await;
    recreate(&["v1-b", "v2-a"]);
    load.more().await;
    let sent = load.finish().await;
    println!("v1-b and v2-a replaced: {sent}");
    assert_eq!(sent.failed, 0, "{sent}");

    // A gateway is killed: what was in flight is lost, and nothing else.
    let load = Load::start(&client, credential);
    load.more().await;
    compose(&["kill", "gateway-a"]);
    load.more().await;
    recreate(&["gateway-a"]);
    load.more().await;
    let sent = load.finish().await;
    println!("gateway-a killed and recreated: {sent}");
    assert!(sent.failed <= MAX_LOST, "{sent}");

    // The store is killed. Nobody is logged out, and nothing needs a restart.
    compose(&["kill", "postgres"]);
    recreate(&["postgres"]);
    until("a response from the new store", || async {
        is_logged_in(&client, credential).await.then_some(())
    })
    .await;
    let sent = {
        let load = Load::start(&client, credential);
        load.more().await;
        load.finish().await
    };
    assert_eq!(sent.failed, 0, "{sent}");
    log_in_everywhere(&client, "after").await;
    assert_prometheus_scrapes_all().await;

    assert_stops_by_itself();
}

/// Creates an application, as an operator does, and returns its client.
fn create_application() -> SignedClient {
    let created = compose(&[
        "exec",
        "-T",
        "gateway-a",
        "signpost",
        "app",
        "create",
        "Demo",
        "--json",
        "--config",
        "/etc/signpost/config.toml",
    ]);
    let json = created.lines().find(|line| line.starts_with('{')).unwrap();
    let created: Value = serde_json::from_str(json).unwrap();
    let member = |name: &str| created[name].as_str().unwrap().to_owned();
    let front = env::var("SIGNPOST_PUBLIC_URL").expect("scripts/compose-test runs this");
    SignedClient::new(&front, &member("key")).with_app(&member("ident"))
}

/// Logs one user in by polling and one by redirect, and asks every version for the first. Returns the first login.
async fn log_in_everywhere(client: &SignedClient, name: &str) -> Value {
    log_in_by_redirect(client, &format!("any:{name}-redirect")).await;
    let login = log_in_by_polling(client, &format!("any:{name}-polling")).await;
    for version in containers::versions() {
        let call = client.get("/user").version(&version);
        let response = call.authorization(credential(&login)).send().await;
        response.ok();
        assert_eq!(response.header("acme-x-version"), Some(&*version));
    }
    login
}

async fn is_logged_in(client: &SignedClient, credential: &str) -> bool {
    let call = client.get("/user").authorization(credential);
    call.try_send()
        .await
        .is_ok_and(|response| response.status == 200)
}

/// Prometheus scrapes every gateway and every backend; each responses.
async fn assert_prometheus_scrapes_all() {
    let is_program = |name: &String| name.ends_with("-a") || name.ends_with("-b");
    let mut expected: Vec<_> = containers::services()
        .into_iter()
        .filter(is_program)
        .collect();
    expected.sort();
    let mut last = Vec::new();
    let is_complete = within(SCRAPE_TIMEOUT, || {
        last = scraped();
        ready((last == expected).then_some(()))
    });
    assert!(is_complete.await.is_some(), "{last:?} of {expected:?}");
}

/// Stops all containers. Process 1 of each ends by itself: an exit code of 137 would be a kill after the grace period.
fn assert_stops_by_itself() {
    compose(&["stop"]);
    let states = states();
    assert!(states.len() > 8, "{states:?}");
    for (service, exit_code) in states {
        assert_eq!(exit_code, 0, "{service}");
    }
}

//! A share of a version's requests goes to other processes of it. CONTRACT 5.

use std::collections::BTreeMap;

use end_to_end::{
    browser::Decision,
    logins::{begin_polling, check, confirm_polling},
    program::Program,
    raw_connection::{RawConnection, request},
    recording_backend::{RecordedRequest, RecordingBackend},
    stack::{Stack, StackBuilder},
    waiting::until,
};

/// Number of clients, each with an address of its own.
const CLIENTS: u32 = 5_000;
/// Requests sent at once: request and answers fit the buffers of both sides.
const BATCH: u32 = 100;
/// Connections that send at the same time, as many as in `send_all`.
const CONNECTIONS: u32 = 4;

fn canary(backend: &RecordingBackend, percent: u8) -> String {
    format!(
        "{{ name = 'next', percent = {percent}, backend = '{}', health = {{ interval_seconds = 1, unhealthy_after = 3, timeout_seconds = 5 }} }}",
        backend.address()
    )
}

fn canaries(backend: &RecordingBackend, percent: u8) -> String {
    format!("[versions.v1]\ncanaries = [{}]\n", canary(backend, percent))
}

fn gateway(own: &RecordingBackend, further: &str) -> StackBuilder {
    let toml = format!(
        "trusted_proxies = ['127.0.0.1']\n[log]\naccess_sample = 0\n[connections]\nrequests = 1000000\n{further}"
    );
    Stack::builder().in_front_of(own).gateway(&toml)
}

async fn two() -> (RecordingBackend, RecordingBackend) {
    tokio::join!(RecordingBackend::start(), RecordingBackend::start())
}

async fn reload(stack: &Stack, toml: &str) {
    stack.configure(Program::Gateway, toml);
    let output = stack.reload(Program::Gateway);
    let text = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&text)
    );
}

/// Sends a request of each client.
async fn send_of(stack: &Stack, clients: std::ops::Range<u32>) {
    let mut connection = stack.raw().await;
    let end = clients.end;
    for first in clients.step_by(BATCH as usize) {
        let numbers = first..(first + BATCH).min(end);
        let bytes: Vec<u8> = numbers.clone().flat_map(of_client).collect();
        connection.send(&bytes).await;
        for number in numbers {
            assert_eq!(connection.response().await.unwrap().status, 200, "{number}");
        }
    }
}

fn of_client(number: u32) -> Vec<u8> {
    let [_, a, b, c] = number.to_be_bytes();
    let line = format!("X-Forwarded-For: 11.{a}.{b}.{c}");
    request("GET", &format!("/{number}"), &[&line], b"")
}

async fn send_all(stack: &Stack) {
    let share = CLIENTS / CONNECTIONS;
    let part = |number: u32| send_of(stack, number * share..(number + 1) * share);
    tokio::join!(part(0), part(1), part(2), part(3));
}

/// How often each client's request was received.
fn clients(requests: &[RecordedRequest]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for request in requests {
        *found.entry(request.target.clone()).or_default() += 1;
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canary_gets_its_share_and_each_client_keeps_to_its_backend() {
    let (own, next) = two().await;
    let stack = gateway(&own, &canaries(&next, 10)).start().await;
    send_all(&stack).await;
    let (count, all) = (next.requests().len(), CLIENTS as usize);
    assert_eq!(count + own.requests().len(), all);
    // Within 2 % of all requests, as good as never by chance.
    assert!(count.abs_diff(all / 10) <= all / 50, "{count} of {all}");
    // The same clients again.
    send_all(&stack).await;
    for requests in [own.requests(), next.requests()] {
        let often = clients(&requests);
        assert!(often.values().all(|count| *count == 2));
    }
    // A share that grows keeps its clients.
    let before = clients(&next.requests());
    reload(&stack, &canaries(&next, 30)).await;
    send_all(&stack).await;
    let after = clients(&next.requests());
    assert!(before.keys().all(|client| after[client] == 3));
    let share = after.len();
    assert!(share.abs_diff(all * 3 / 10) <= all / 30, "{share} of {all}");
    // None, and all.
    reload(&stack, &canaries(&next, 0)).await;
    let (own_before, next_before) = (own.requests().len(), next.requests().len());
    send_of(&stack, 0..200).await;
    assert_eq!(own.requests().len() - own_before, 200);
    reload(&stack, &canaries(&next, 100)).await;
    send_of(&stack, 0..200).await;
    assert_eq!(next.requests().len() - next_before, 200);
}

#[tokio::test]
async fn an_application_keeps_to_its_backend() {
    let (own, next) = two().await;
    let toml = canaries(&next, 50).replace("[versions.v1]\n", "[versions.v1]\nsticky_by = 'app'\n");
    let stack = gateway(&own, &toml).multi().start().await;
    let mut seen = [0, 0];
    for number in 0..16 {
        let application = stack.create_application(&format!("app {number}"), &[]);
        let client = stack.client_of(&application);
        let before = next.requests().len();
        for _ in 0..3 {
            client.get("/x").send().await.ok();
        }
        let to_canary = next.requests().len() - before;
        assert!(to_canary == 0 || to_canary == 3, "{to_canary}");
        seen[usize::from(to_canary == 3)] += 1;
    }
    // Each half has some: all sixteen in one would be one of 32,768 cases.
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[tokio::test]
async fn an_unhealthy_canary_gets_nothing() {
    let (own, mut next) = two().await;
    let stack = gateway(&own, &canaries(&next, 100)).start().await;
    let mut connection: RawConnection = stack.raw().await;
    connection.send(&of_client(1)).await;
    assert_eq!(connection.response().await.unwrap().status, 200);
    assert_eq!(next.requests().len(), 1);
    let address = next.address();
    next.end().await;
    let log = format!("is unhealthy backend=v1 (canary next) version=v1 backend.addr={address}");
    stack.log_with(Program::Gateway, &log).await;
    for number in 0..20 {
        stack
            .client()
            .get("/x")
            .param("n", &number.to_string())
            .send()
            .await
            .ok();
    }
    assert_eq!(own.requests().len(), 20);
    let next = RecordingBackend::start_at(address).await;
    until("the canary to be used again", || async {
        stack.client().get("/x").send().await.ok();
        (!next.requests().is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_login_that_began_before_a_canary_finishes_on_it() {
    let stack = Stack::builder().several(Program::V1, 2).start().await;
    let table: toml::Table = stack.config_with(Program::Gateway, "").parse().unwrap();
    let backends = table["versions"]["v1"]["backends"].as_array().unwrap();
    let [own, next] = [0, 1].map(|index| backends[index].as_str().unwrap().to_owned());
    let split = |percent: u8| {
        format!(
            "[versions.v1]\nbackends = ['{own}']\n\
             canaries = [{{ name = 'next', percent = {percent}, backend = '{next}' }}]\n"
        )
    };
    reload(&stack, &split(0)).await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    reload(&stack, &split(100)).await;
    let mut browser = stack.browser();
    let provider = confirm_polling(&mut browser, &begun).await;
    let done = browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    assert_eq!(done.response.status, 200, "{}", done.text());
    let checked = check(&client, &begun.token).await;
    assert_eq!(
        checked["login"]["account"]["type"], "bitbucket",
        "{checked}"
    );
}

#[tokio::test]
async fn a_route_has_canaries_of_its_own_and_testers_reach_them() {
    let (own, next) = two().await;
    let toml = format!(
        "[[versions.v1.routes]]\npath = '/orders/**'\nbackend = '{}'\nsticky_by = 'client'\n\
         canaries = [{{ name = 'next', percent = 0, header = 'X-Canary: next', backend = '{}' }}]\n",
        own.address(),
        next.address()
    );
    let stack = gateway(&own, &toml).start().await;
    let client = stack.client();
    let ask = |path: &str, header: &str, value: &str| {
        let call = client.get(path).header(header, value);
        async move { assert_eq!(call.send().await.status, 200) }
    };
    for (path, header, value, is_next) in [
        ("/orders/1", "X-Canary", "next", true),
        ("/orders/1", "x-canary", "other", false),
        ("/orders/1", "Cookie", "a=b; canary=next", false),
        ("/x", "X-Canary", "next", false),
    ] {
        let before = (own.requests().len(), next.requests().len());
        ask(path, header, value).await;
        let after = (own.requests().len(), next.requests().len());
        let expected = match is_next {
            true => (before.0, before.1 + 1),
            false => (before.0 + 1, before.1),
        };
        assert_eq!(after, expected, "{path} {header}: {value}");
    }
    reload(&stack, &toml.replace("percent = 0", "percent = 100")).await;
    let before = next.requests().len();
    ask("/orders/2", "X-A", "b").await;
    ask("/x", "X-A", "b").await;
    assert_eq!(next.requests().len(), before + 1);
    let listed = stack.command(&["versions", "list", "--json"]);
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(text.contains("v1 /orders/** (canary next)"), "{text}");
}

#[tokio::test]
async fn a_version_is_tried_with_a_share_of_the_requests_that_name_none() {
    let (own, next) = two().await;
    let toml = format!(
        "[default_canary]\nversion = 'v3'\npercent = 20\n[versions.v3]\nbackend = '{}'\n",
        next.address()
    );
    let stack = gateway(&own, &toml).start().await;
    send_of(&stack, 0..2_000).await;
    let tried = next.requests().len();
    assert!(tried.abs_diff(400) <= 80, "{tried} of 2000");
    assert!(next.requests().iter().all(|request| {
        request.value("x-gateway-version") == Some("v3")
            && request.value("x-gateway-version-source") == Some("default")
    }));
    // The same clients again.
    send_of(&stack, 0..2_000).await;
    assert!(clients(&next.requests()).values().all(|count| *count == 2));
    let client = stack.client();
    for _ in 0..20 {
        assert_eq!(client.get("/x").version("v1").send().await.status, 200);
    }
    assert_eq!(next.requests().len(), 2 * tried);
}

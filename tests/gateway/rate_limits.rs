//! Rate limits of applications, client addresses and paths. CONTRACT 8.

mod shared;

use std::{iter, net::SocketAddr, time::Instant};

use end_to_end::{
    program::Program,
    raw_connection::{RawConnection, RawResponse, request},
    recording_backend::RecordingBackend,
    response::Response,
    signed_client::{Call, SignedClient},
    stack::{Stack, StackBuilder},
    waiting::until,
};

/// More requests than any limit here admits meanwhile.
const FLOOD: usize = 300;

/// A rate so low that the duration of a test does not matter.
const APPLICATION: &str = "[rate_limits.application]\nper_second = 1\nburst = 5\n";

const ADDRESS: &str =
    "trusted_proxies = [\"127.0.0.1\"]\n[rate_limits.address]\nper_second = 1\nburst = 5\n";

async fn multi(toml: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend).multi().gateway(toml);
    (stack.start().await, backend)
}

async fn single(toml: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack: StackBuilder = Stack::builder().in_front_of(&backend).gateway(toml);
    (stack.start().await, backend)
}

fn signed<'c>(client: &'c SignedClient, path: &str) -> Call<'c> {
    client.get(path).param("a", "1")
}

/// Sends signed requests until one is rejected, and returns that.
async fn flood(client: &SignedClient, path: &str) -> Response {
    flood_of(|| signed(client, path)).await
}

async fn flood_of<'c>(call: impl Fn() -> Call<'c>) -> Response {
    for _ in 0..FLOOD {
        let response = call().send().await;
        if response.status == 429 {
            return response;
        }
        assert_eq!(response.status, 200, "{}", response.text());
    }
    panic!("{FLOOD} requests were served");
}

/// The number behind a parameter of the first item of a header, for example `r` in `"app";r=4;t=1`.
fn number(response: &Response, header: &str, parameter: &str) -> u64 {
    let value = response
        .header(header)
        .unwrap_or_else(|| panic!("no {header}"));
    let prefix = format!("{parameter}=");
    let item = value.split(", ").next().unwrap();
    let found = item.split(';').find_map(|part| part.strip_prefix(&*prefix));
    found.unwrap_or_else(|| panic!("{value}")).parse().unwrap()
}

fn reload(stack: &Stack, toml: &str) {
    stack.configure(Program::Gateway, toml);
    let output = stack.reload(Program::Gateway);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

#[tokio::test]
async fn an_application_at_its_limit_harms_no_other_and_is_told_when_to_come_back() {
    let (stack, backend) = multi(APPLICATION).await;
    let [one, other] = ["one", "other"].map(|name| stack.create_application(name, &[]));
    let [one, other] = [&one, &other].map(|application| stack.client_of(application));
    let first = signed(&one, "/x").send().await;
    assert_eq!(first.header("ratelimit-policy"), Some("\"app\";q=5;w=5"));
    assert_eq!(first.header("ratelimit"), Some("\"app\";r=4;t=1"));
    let rejected = flood(&one, "/x").await;
    let problem = rejected.problem(429, "rate_limited");
    assert!(
        problem["detail"].as_str().unwrap().contains("application"),
        "{problem}"
    );
    assert_eq!(rejected.header("retry-after"), Some("1"));
    assert_eq!(rejected.header("ratelimit-policy"), Some("\"app\";q=5;w=5"));
    assert_eq!(number(&rejected, "ratelimit", "r"), 0);
    assert!((4..=5).contains(&number(&rejected, "ratelimit", "t")));
    let japanese = flood_of(|| signed(&one, "/x").language("ja")).await;
    let problem = japanese.problem(429, "rate_limited");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("アプリケーション"),
        "{problem}"
    );
    let (start, before) = (Instant::now(), backend.requests().len());
    for _ in 0..5 {
        assert_eq!(signed(&other, "/x").send().await.status, 200);
    }
    flood(&other, "/x").await;
    let (served, seconds) = (backend.requests().len() - before, start.elapsed().as_secs());
    assert!(served as u64 <= 6 + seconds, "{served} in {seconds} s");
    let line = "problem.code=rate_limited problem.limit=app ";
    stack.log_with(Program::Gateway, line).await;
}

#[tokio::test]
async fn requests_that_anyone_can_send_do_not_use_up_an_applications_share() {
    let (stack, _backend) = multi(APPLICATION).await;
    let application = stack.create_application("one", &[]);
    let client = stack.client_of(&application);
    for _ in 0..20 {
        let claimed = client.get("/x").send().await;
        assert_eq!(claimed.status, 200);
        assert_eq!(claimed.header("ratelimit"), None);
        let forged = signed(&client, "/x")
            .sign_given(&"0".repeat(32))
            .send()
            .await;
        forged.problem(403, "sign_mismatch");
        assert_eq!(forged.header("ratelimit"), None);
    }
    let response = signed(&client, "/x").send().await;
    assert_eq!(
        (
            response.status.as_u16(),
            number(&response, "ratelimit", "r")
        ),
        (200, 4)
    );
}

#[tokio::test]
async fn a_response_of_the_gateway_itself_has_the_headers_of_a_counted_request() {
    let (stack, _backend) = single(&format!("unknown = 'reject'\n{APPLICATION}")).await;
    let client = stack.client();
    let rejected = signed(&client, "/x").version("v9").send().await;
    rejected.problem(400, "version_unknown");
    assert_eq!(number(&rejected, "ratelimit", "r"), 4);
}

#[tokio::test]
async fn nothing_is_limited_by_default() {
    let (stack, _backend) = single("").await;
    let client = stack.client();
    for _ in 0..FLOOD {
        let response = signed(&client, "/x").send().await;
        assert_eq!(
            (response.status.as_u16(), response.header("ratelimit")),
            (200, None)
        );
    }
}

fn from_client(client: &str, target: &str) -> Vec<u8> {
    let line = format!("X-Forwarded-For: {client}");
    request("GET", target, &[&line], b"")
}

async fn response(connection: &mut RawConnection, bytes: &[u8]) -> RawResponse {
    connection.send(bytes).await;
    connection.response().await.unwrap()
}

async fn flood_from(connection: &mut RawConnection, client: &str, target: &str) -> RawResponse {
    flood_with(connection, iter::repeat(from_client(client, target))).await
}

/// Sends requests until one is rejected, and returns that rejection.
async fn flood_with(
    connection: &mut RawConnection,
    requests: impl Iterator<Item = Vec<u8>>,
) -> RawResponse {
    for bytes in requests.take(FLOOD) {
        let response = response(connection, &bytes).await;
        if response.status == 429 {
            return response;
        }
    }
    panic!("{FLOOD} requests were served");
}

#[tokio::test]
async fn each_client_address_behind_a_trusted_proxy_has_its_own_limit() {
    let (stack, _backend) = single(ADDRESS).await;
    let mut proxy = stack.raw().await;
    let rejected = flood_from(&mut proxy, "198.51.100.1", "/x").await;
    assert_eq!(rejected.code().as_deref(), Some("rate_limited"));
    assert_eq!(
        rejected.header("ratelimit-policy"),
        Some("\"address\";q=5;w=5")
    );
    assert!(
        rejected
            .header("ratelimit")
            .unwrap()
            .starts_with("\"address\";r=0;t=")
    );
    assert_eq!(rejected.header("retry-after"), Some("1"));
    // An address that the client puts before the proxy's entry does not count.
    flood_from(&mut proxy, "203.0.113.9, 198.51.100.1", "/x").await;
    // A signed request of this address is rejected, too; one of another address is not.
    let client = stack.client();
    let call =
        |address: &str| signed(&client, "/x").bytes(&[&format!("X-Forwarded-For: {address}")]);
    flood_with(&mut proxy, iter::repeat(call("198.51.100.1"))).await;
    let served = response(&mut proxy, &call("198.51.100.2")).await;
    assert_eq!((served.status, served.header("ratelimit")), (200, None));
    // A /64 counts as one client; a /48 has four times as much.
    let one_network = (1..).map(|host| from_client(&format!("2001:db8:0:1::{host}"), "/x"));
    let network = flood_with(&mut proxy, one_network).await;
    assert_eq!(
        network.header("ratelimit-policy"),
        Some("\"address\";q=5;w=5")
    );
    let each_network = (2..).map(|network| from_client(&format!("2001:db8:0:{network}::1"), "/x"));
    let site = flood_with(&mut proxy, each_network).await;
    assert_eq!(
        site.header("ratelimit-policy"),
        Some("\"address\";q=20;w=5")
    );
    // The method is checked before.
    let put = request("PUT", "/x", &["X-Forwarded-For: 198.51.100.1"], b"");
    assert_eq!(response(&mut proxy, &put).await.status, 405);
}

#[tokio::test]
async fn a_path_is_limited_by_address() {
    let rule = "[[rate_limits.paths]]\nmethod = 'GET'\npath = '/login'\nby = 'address'\nper_second = 1\nburst = 3\n";
    let (stack, _backend) = single(&format!("trusted_proxies = ['127.0.0.1']\n{rule}")).await;
    let mut proxy = stack.raw().await;
    let rejected = flood_from(&mut proxy, "198.51.100.1", "/login?state=v1.x&code=y").await;
    assert_eq!(
        rejected.header("ratelimit-policy"),
        Some("\"path\";q=3;w=3")
    );
    // No other spelling has a limit of its own, or none.
    flood_from(&mut proxy, "198.51.100.3", "/%6Cogin?state=v1.x&code=y").await;
    for target in ["/login/", "/x"] {
        let other = response(&mut proxy, &from_client("198.51.100.1", target)).await;
        assert_eq!(other.status, 200, "{target}");
    }
    let other = from_client("198.51.100.2", "/login?state=v1.x&code=y");
    assert_eq!(response(&mut proxy, &other).await.status, 200);
}

#[tokio::test]
async fn a_path_is_limited_by_application() {
    let rule = "[[rate_limits.paths]]\npath = '/search'\nper_second = 1\nburst = 2\n";
    let (stack, _backend) = multi(&format!("{APPLICATION}{rule}")).await;
    let [one, other] = ["one", "other"].map(|name| stack.create_application(name, &[]));
    let [one, other] = [&one, &other].map(|application| stack.client_of(application));
    let first = signed(&one, "/search").send().await;
    assert_eq!(
        first.header("ratelimit-policy"),
        Some("\"app\";q=5;w=5, \"path\";q=2;w=2")
    );
    assert_eq!(
        first.header("ratelimit"),
        Some("\"app\";r=4;t=1, \"path\";r=1;t=1")
    );
    let rejected = flood(&one, "/search").await;
    assert_eq!(
        rejected.header("ratelimit-policy"),
        Some("\"path\";q=2;w=2")
    );
    for _ in 0..20 {
        let again = signed(&one, "/search").send().await;
        assert!([200, 429].contains(&again.status.as_u16()));
    }
    // What the path's limit rejected did not use up the application's share.
    assert_eq!(signed(&one, "/x").send().await.status, 200);
    assert_eq!(signed(&other, "/search").send().await.status, 200);
}

#[tokio::test]
async fn an_application_gets_a_rate_of_its_own_while_the_gateway_runs() {
    let (stack, _backend) = multi(APPLICATION).await;
    let own = stack.create_application("own", &["--rate-limit", "1/3"]);
    let response = signed(&stack.client_of(&own), "/x").send().await;
    assert_eq!(response.header("ratelimit-policy"), Some("\"app\";q=3;w=3"));
    let application = stack.create_application("one", &[]);
    let client = stack.client_of(&application);
    flood(&client, "/x").await;
    let update = |rate: &str| {
        let output = stack.command(&["app", "update", &application.ident, "--rate-limit", rate]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let policy_becomes = async |expected: Option<&str>| {
        until(&format!("{expected:?}"), || async {
            let response = signed(&client, "/x").send().await;
            (response.header("ratelimit-policy") == expected).then_some(())
        })
        .await;
    };
    assert!(update("1/300").contains("1/300"));
    policy_becomes(Some("\"app\";q=300;w=300")).await;
    assert_eq!(signed(&client, "/x").send().await.status, 200);
    assert!(update("unlimited").contains("unlimited"));
    policy_becomes(None).await;
    let list = stack.command(&["app", "list"]);
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(
        list.contains("RATE") && list.contains("unlimited"),
        "{list}"
    );
    assert!(!update("default").contains("unlimited"));
    policy_becomes(Some("\"app\";q=5;w=5")).await;
    let refused = stack.command(&["app", "update", &application.ident, "--rate-limit", "100"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && error.contains("100/200"),
        "{error}"
    );
}

#[tokio::test]
async fn every_limit_is_reloaded_and_what_was_used_stays() {
    let (stack, _backend) = single("trusted_proxies = ['127.0.0.1']").await;
    let client = stack.client();
    let policy = async || {
        let response = signed(&client, "/x").send().await;
        (
            response.status.as_u16(),
            response.header("ratelimit-policy").map(str::to_owned),
        )
    };
    assert_eq!(policy().await, (200, None));
    reload(
        &stack,
        "[rate_limits.application]\nper_second = 1\nburst = 100\n",
    );
    flood(&client, "/x").await;
    reload(&stack, "[rate_limits.application]\nburst = 300\n");
    assert_eq!(
        policy().await,
        (200, Some("\"app\";q=300;w=300".to_owned()))
    );
    // What was used stays: about the old burst is no longer left.
    let left = signed(&client, "/x").send().await;
    assert!(number(&left, "ratelimit", "r") < 240);
    reload(
        &stack,
        "[rate_limits.application]\nper_second = 100\nburst = 10000\n",
    );
    assert_eq!(policy().await.1.as_deref(), Some("\"app\";q=10000;w=100"));
    reload(&stack, "[rate_limits.address]\nper_second = 1\nburst = 5\n");
    let mut proxy = stack.raw().await;
    flood_from(&mut proxy, "198.51.100.1", "/x").await;
    reload(
        &stack,
        "[rate_limits.address]\nper_second = 1\nburst = 300\n",
    );
    assert_eq!(
        response(&mut proxy, &from_client("198.51.100.1", "/x"))
            .await
            .status,
        200
    );
    let by = |by: &str| {
        format!("[[rate_limits.paths]]\npath = '/y'\nby = '{by}'\nper_second = 1\nburst = 2\n")
    };
    reload(&stack, &by("address"));
    flood_from(&mut proxy, "198.51.100.1", "/y").await;
    reload(&stack, &by("application"));
    assert_eq!(
        response(&mut proxy, &from_client("198.51.100.1", "/y"))
            .await
            .status,
        200
    );
    assert_eq!(
        flood(&client, "/y").await.header("ratelimit-policy"),
        Some("\"path\";q=2;w=2")
    );
    reload(&stack, "[rate_limits]\npaths = []\n");
    assert_eq!(signed(&client, "/y").send().await.status, 200);
}

/// Number of client addresses in the flood.
const ADDRESSES: u32 = 60_000;
/// Requests sent at once: request and answers fit the buffers of both sides.
const BATCH: u32 = 200;
/// The tables' 1.1 MB, and what the allocator keeps of the traffic.
const MAX_GROWTH_KIB: u64 = 4 * 1024;

/// Sends a request of each address, which the gateway answers itself after counting it.
async fn flood_of_addresses(gateway: SocketAddr, addresses: std::ops::Range<u32>) {
    let mut connection = RawConnection::open(gateway).await;
    let end = addresses.end;
    for first in addresses.step_by(BATCH as usize) {
        let numbers = first..(first + BATCH).min(end);
        let twice = ["Acme-X-Version: v1", "Acme-X-Version: v1"];
        let bytes: Vec<u8> = numbers
            .clone()
            .flat_map(|number| {
                let [_, a, b, c] = number.to_be_bytes();
                let line = format!("X-Forwarded-For: 11.{a}.{b}.{c}");
                request("GET", "/x", &[&line, twice[0], twice[1]], b"")
            })
            .collect();
        connection.send(&bytes).await;
        for number in numbers {
            let response = connection.response().await.unwrap();
            assert_eq!(response.status, 400, "{number}");
        }
    }
}

#[tokio::test]
async fn a_flood_of_addresses_takes_no_memory_and_gets_nobody_rejected() {
    let (mut stack, _backend) = single(&format!(
        "{ADDRESS}[log]\naccess_sample = 0\n[connections]\nrequests = 1000000\n"
    ))
    .await;
    let gateway = stack.addresses().gateway;
    // The table, buffers, and threads' arenas exist after some requests.
    flood_of_addresses(gateway, 0..10_000).await;
    let mut proxy = stack.raw().await;
    flood_from(&mut proxy, "198.51.100.1", "/x").await;
    let before = stack.running(Program::Gateway).resident_kib();
    flood_of_addresses(gateway, 10_000..ADDRESSES).await;
    let after = stack.running(Program::Gateway).resident_kib();
    assert!(
        after < before + MAX_GROWTH_KIB,
        "{before} KiB, then {after} KiB"
    );
    // On a busy machine the first connection has been idle for too long.
    let mut proxy = stack.raw().await;
    assert_eq!(
        response(&mut proxy, &from_client("198.51.100.2", "/x"))
            .await
            .status,
        200
    );
}

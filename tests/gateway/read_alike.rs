//! What the gateway accepts is read alike by what is behind it: Node, uvicorn, Go's net/http, nginx and hyper.
//!
//! Each gets the same generated requests, pipelined on connections that stay open. Of an accepted one it reports method,
//! target, path and body as a strict reading of the client's bytes has them; of a refused one it sees nothing.
//! `SIGNPOST_READ_ALIKE_REQUESTS` sets how many there are for each server, 2,000 by default; `scripts/test --all` sets
//! 20,000.

mod generate;
mod readers;

use std::env;

use end_to_end::{
    random::Random,
    raw_connection::{RawConnection, RawResponse},
    signer::sha256_hex,
    stack::Stack,
};
use percent_encoding::percent_decode_str;
use tokio::task::JoinSet;

use self::{
    generate::{Expected, Generated, MAX_BODY, generate},
    readers::Reader,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_reads_what_the_gateway_accepts() {
    read_alike("node").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uvicorn_reads_what_the_gateway_accepts() {
    read_alike("uvicorn").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn go_reads_what_the_gateway_accepts() {
    read_alike("go").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nginx_reads_what_the_gateway_accepts() {
    read_alike("nginx").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hyper_reads_what_the_gateway_accepts() {
    read_alike("hyper").await;
}

const SETTINGS: &str = "[sign]
carrier = 'headers'
[spool]
folder = '$FOLDER'
[versions.v1]
methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']
bodies = 'any'
max_body = $MAX_BODY
unsigned = 'accept'
";

/// Connections at a time, and pipelines of each before the server's count is compared.
const CONNECTIONS: usize = 8;
const PIPELINES: usize = 5;

async fn read_alike(server: &str) {
    let goal = env::var("SIGNPOST_READ_ALIKE_REQUESTS").map_or(2_000, |goal| goal.parse().unwrap());
    let Some(reader) = Reader::start(server).await else {
        return;
    };
    let settings = SETTINGS.replace("$MAX_BODY", &(2 * MAX_BODY).to_string());
    let stack = Stack::builder().in_front_of_address(reader.address);
    let stack = stack.gateway(&settings).start().await;
    let gateway = stack.addresses().gateway;
    let (mut all, mut next) = (Counts::default(), 1);
    while all.served + all.refused < goal {
        let mut connections = JoinSet::new();
        for first in (next..).step_by(PIPELINES).take(CONNECTIONS) {
            connections.spawn(async move {
                let (mut connection, mut counts) = (None, Counts::default());
                for pipeline in first..first + PIPELINES {
                    let opened = match connection.take() {
                        Some(opened) => opened,
                        None => RawConnection::open(gateway).await,
                    };
                    connection = send(opened, pipeline, &mut counts).await;
                }
                counts
            });
        }
        for counts in connections.join_all().await {
            all.served += counts.served;
            all.refused += counts.refused;
        }
        let read = reader.total().await;
        assert_eq!(
            read,
            all.served,
            "pipelines {next} and {} after it",
            CONNECTIONS * PIPELINES
        );
        next += CONNECTIONS * PIPELINES;
    }
    // Few are refused, and enough.
    let percent = all.refused * 100 / (all.served + all.refused);
    assert!((5..20).contains(&percent), "{percent} % are refused");
}

#[derive(Default)]
struct Counts {
    served: usize,
    refused: usize,
}

/// Sends a pipeline and compares its responses. Returns the connection, if it stays open.
async fn send(
    mut connection: RawConnection,
    pipeline: usize,
    counts: &mut Counts,
) -> Option<RawConnection> {
    // Numbers far apart: the first ones that a small seed generates resemble each other.
    let seed = (pipeline as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = Random(seed);
    let requests: Vec<_> = (0..=random.below(5))
        .map(|number| generate(&mut random, pipeline * 5 + number))
        .collect();
    let bytes: Vec<_> = requests
        .iter()
        .flat_map(|request| request.bytes.clone())
        .collect();
    let (first, second) = bytes.split_at(random.below(bytes.len()));
    connection.send(first).await;
    tokio::task::yield_now().await;
    connection.send(second).await;
    for request in &requests {
        let response = loop {
            let response = connection.response_to(request.method).await;
            let response =
                response.unwrap_or_else(|| panic!("pipeline {pipeline}: no response to {request}"));
            if response.status >= 200 {
                break response;
            }
        };
        match response.header("x-read") {
            Some(read) => {
                assert_eq!(
                    Read::of(read),
                    Read::strictly(request, read),
                    "pipeline {pipeline}: {request}"
                );
                assert_ne!(
                    request.expected,
                    Expected::Refused,
                    "pipeline {pipeline}: {request}"
                );
                counts.served += 1;
            }
            None => {
                let head = &response.head;
                assert!(is_own(&response), "pipeline {pipeline}: {request}: {head}");
                assert_ne!(
                    request.expected,
                    Expected::Served,
                    "pipeline {pipeline}: {request}: {head}"
                );
                counts.refused += 1;
            }
        }
        let closes = response
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if closes {
            let further = connection.responses_until_close().await;
            assert!(
                further.is_empty() && connection.unread().is_empty(),
                "pipeline {pipeline}: {further:?}"
            );
            return None;
        }
    }
    Some(connection)
}

/// Whether a response without a report is the gateway's own: a problem, or a bare 400.
fn is_own(response: &RawResponse) -> bool {
    let is_problem = response.header("content-type") == Some("application/problem+json");
    let is_bare = response.status == 400 && response.header("x-request-id").is_none();
    matches!(response.status, 400..=499 | 501) && (is_problem || is_bare)
}

/// What was read of a request.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    method: String,
    target: String,
    length: String,
    hash: String,
    path: String,
}

impl Read {
    /// What a server reports.
    fn of(report: &str) -> Self {
        let mut parts = report.split(' ').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Self {
            method: next(),
            target: without_empty_query(&next()),
            length: next(),
            hash: next(),
            path: next(),
        }
    }

    /// What a server must report, which may not decode the path.
    fn strictly(request: &Generated, report: &str) -> Self {
        let path = request.target.split('?').next().unwrap_or_default();
        let path = match report.ends_with(" -") {
            true => "-".to_owned(),
            false => hex::encode(percent_decode_str(path).collect::<Vec<_>>()),
        };
        Self {
            method: request.method.to_owned(),
            target: without_empty_query(&request.target),
            length: request.body.len().to_string(),
            hash: sha256_hex(&request.body),
            path,
        }
    }
}

/// Not every server tells an empty query from none.
fn without_empty_query(target: &str) -> String {
    match target.split_once('?') {
        Some((path, "")) => path.to_owned(),
        _ => target.to_owned(),
    }
}

//! Dates of a life cycle take effect at their second, without a reload.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use arc_swap::ArcSwap;
use signpost_kit::clock::{Clock, ManualClock};

use super::*;
use crate::{
    config::tests::load,
    downstream::http1::connection::serve_connection,
    request::{
        client::ConnectionInfo,
        drain::Drain,
        scripted::{Script, Step},
    },
};

/// The clock begins at 2023-11-14T22:13:20Z. Nothing listens at the backend.
const CONFIG: &str = r#"
prefix = "Acme"
cors.origins = ["https://app.example"]
[versions.v1]
backend = "127.0.0.1:1"
deprecated = "2023-11-14T22:13:21Z"
sunset = "2023-11-14T22:13:30Z"
after_sunset = "gone"
link = "https://acme.example/v2"
brownouts = ["2023-11-14T22:13:22Z/PT3S"]
[versions.v2]
backend = "127.0.0.1:1"
[application]
key = "4283fefc63f0cd0e873a0000c6d07ef74283fefc63f0cd0e873a0000c6d07ef7"
"#;

pub(crate) use crate::testing::gateway;

fn current(clock: &ManualClock) -> ArcSwap<Gateway> {
    let mut gateway = gateway(load(CONFIG).unwrap());
    let state = Arc::get_mut(&mut gateway.state).unwrap();
    state.clock = Arc::new(clock.clone());
    ArcSwap::from_pointee(gateway)
}

/// The head and body of the response to a request with this target and version.
async fn response(current: &ArcSwap<Gateway>, target: &str, version: &str) -> String {
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: h\r\nAcme-X-Version: {version}\r\nOrigin: https://app.example\r\n\
         Connection: close\r\n\r\n"
    );
    let stream = Script::new([Step::Give(request.into())]);
    let client = Box::new(ConnectionInfo::plain(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let beginning = Arc::new(Drain::new()).begin_connection();
    serve_connection(current, stream.clone(), client, beginning).await;
    String::from_utf8(stream.written()).unwrap()
}

const FIELDS: [&str; 4] = [
    "deprecation: @1700000001\r\n",
    "sunset: Tue, 14 Nov 2023 22:13:30 GMT\r\n",
    "link: <https://acme.example/v2>; rel=\"deprecation\"; type=\"text/html\", \
     <https://acme.example/v2>; rel=\"sunset\"; type=\"text/html\"\r\n",
    "acme-x-version: v1\r\n",
];

#[tokio::test]
async fn every_response_has_the_dates_and_ends_at_the_second_of_the_sunset() {
    let clock = ManualClock::default();
    let current = current(&clock);
    for (second, expected, retry_after) in [
        (0, "502", None),
        (1, "502", None),
        (2, "503", Some(3)),
        (3, "503", Some(2)),
        (4, "503", Some(1)),
        (5, "502", None),
        (9, "502", None),
        (10, "410", None),
        (11, "410", None),
    ] {
        let now = clock.now().as_millis() - 1_700_000_000_000;
        let ahead = second * 1000 - u64::try_from(now).unwrap();
        clock.advance(Duration::from_millis(ahead));
        for target in ["/x", "/login?state=v1.x&code=y"] {
            let response = response(&current, target, "v1").await;
            let found = &response["HTTP/1.1 ".len()..][..3];
            assert_eq!(found, expected, "at {second}: {response}");
            for field in FIELDS {
                assert!(response.contains(field), "{field} at {second}: {response}");
            }
            let exposed = "Acme-X-Version-Source, Deprecation, Link, Sunset\r\n";
            assert!(response.contains(exposed), "{response}");
            let retry_after = retry_after.map(|seconds| format!("retry-after: {seconds}\r\n"));
            match retry_after {
                Some(line) => assert!(response.contains(&line), "at {second}: {response}"),
                None => assert!(!response.contains("retry-after"), "at {second}: {response}"),
            }
        }
        let other = response(&current, "/x", "v2").await;
        assert!(other.starts_with("HTTP/1.1 502"), "{other}");
        assert!(!other.contains("deprecation: ") && !other.contains("sunset: "));
    }
}

#[tokio::test]
async fn a_request_that_is_not_verified_learns_nothing_of_the_dates() {
    let clock = ManualClock::default();
    clock.advance(Duration::from_secs(60));
    let response = response(&current(&clock), "/x?a=1", "v1").await;
    assert!(response.starts_with("HTTP/1.1 403"), "{response}");
    assert!(
        !response.contains("deprecation: ") && !response.contains("acme.example"),
        "{response}"
    );
}

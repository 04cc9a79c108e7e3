//! Every published vector, through a running gateway.
//!
//! The vectors' `time` lies in the past, so each vector is sent with the current time and a new signature. The
//! harness's signer computes it; its unit test covers the unchanged vectors. The vectors published by others have no
//! `time`: it is added.

use std::collections::BTreeMap;

use end_to_end::{
    clock::now_ms,
    raw_connection::request,
    recording_backend::RecordingBackend,
    signer::{Cover, Profile, Request, sign},
    stack::Stack,
    vectors::{Case, cases},
};

/// `time` in the vectors.
const VECTOR_TIME: &str = "1732104000000";

#[tokio::test]
async fn every_vector_passes_the_gateway() {
    let mut groups: BTreeMap<(Profile, String), Vec<Case>> = BTreeMap::new();
    for case in cases() {
        let group = (case.profile.clone(), case.app_key.clone());
        groups.entry(group).or_default().push(case);
    }
    let mut passed = 0;
    for ((profile, key), cases) in groups {
        let backend = RecordingBackend::start().await;
        let config = format!("application.key = \"{key}\"\n{}", toml_of(&profile));
        let stack = Stack::builder()
            .in_front_of(&backend)
            .gateway(&config)
            .start()
            .await;
        for case in cases {
            assert_passes(&stack, &backend, &profile, &key, &case).await;
            passed += 1;
        }
    }
    assert_eq!(passed, 287);
}

/// Sends a vector with one digit of its signature changed, then with the right signature.
async fn assert_passes(
    stack: &Stack,
    backend: &RecordingBackend,
    profile: &Profile,
    key: &str,
    case: &Case,
) {
    let now = now_ms().to_string();
    let query = case.query.replace(VECTOR_TIME, &now);
    let body = case.body.replace(VECTOR_TIME, &now);
    let has_time = query.contains(&now) || body.contains(&now);
    let query = if has_time {
        query
    } else {
        format!("{query}&time={now}")
    };

    let unsigned = Request {
        method: "POST",
        path: "/user/login",
        query: &query,
        body: &body,
    };
    let right = sign(profile, key, unsigned);
    let wrong = if let Some(rest) = right.strip_prefix('0') {
        format!("1{rest}")
    } else {
        format!("0{}", &right[1..])
    };
    let about = format!("{} {profile:?}", case.name);
    for (sign, status) in [(&wrong, 403), (&right, 200)] {
        // Some vectors have a placeholder for `sign`; in the others it is appended.
        let query = if query.contains("deadbeef") {
            query.replace("deadbeef", sign)
        } else {
            format!("{query}&sign={sign}")
        };
        let target = format!("/user/login?{query}");
        let length = format!("Content-Length: {}", body.len());
        let form = ["Content-Type: application/x-www-form-urlencoded", &length];
        let headers = if body.is_empty() {
            &form[1..]
        } else {
            &form[..]
        };
        let bytes = request("POST", &target, headers, body.as_bytes());
        let before = backend.requests().len();
        let mut connection = stack.raw().await;
        connection.send(&bytes).await;
        let response = connection.response().await.unwrap();
        assert_eq!(
            response.status,
            status,
            "{about}: {}",
            String::from_utf8_lossy(&response.body)
        );
        assert_eq!(
            backend.requests().len(),
            before + usize::from(status == 200),
            "{about}"
        );
        if status == 200 {
            let request = backend.request_number(before + 1).await;
            assert_eq!(request.target, target, "{about}");
            assert_eq!(request.body, body.as_bytes(), "{about}");
        }
    }
}

/// The profile in the gateway's configuration format.
fn toml_of(profile: &Profile) -> String {
    let word = |value: &dyn std::fmt::Debug| {
        // `PairsKey` is `pairs-key`, `HmacSha256` is `hmac-sha256`.
        let mut word = String::new();
        for (index, letter) in format!("{value:?}").chars().enumerate() {
            if letter.is_ascii_uppercase() && index > 0 {
                word.push('-');
            }
            word.push(letter.to_ascii_lowercase());
        }
        word
    };
    let cover = if profile.cover == Cover::Request {
        "request"
    } else {
        "parameters"
    };
    format!(
        "[sign]\nallow_weak_key = true\nvalues = \"{}\"\nlayout = \"{}\"\nempty = \"{}\"\nleave_out = {:?}\n\
         cover = \"{cover}\"\nalgorithm = \"{}\"\n",
        word(&profile.values),
        word(&profile.layout),
        word(&profile.empty),
        profile.leave_out,
        word(&profile.algorithm),
    )
}

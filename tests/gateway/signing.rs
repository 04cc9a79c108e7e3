//! CONTRACT 3 from a client's side: `time`, `sign`, profiles and hints.

use end_to_end::{
    clock::now_ms,
    program::Program,
    recording_backend::RecordingBackend,
    signed_client::{fetch, send_form},
    signer::{Cover, Empty, Layout, Profile, Values, md5_hex},
    stack::{APP_KEY, Stack},
    waiting::until,
};
use signpost_protocol::sign::SignProfile;

#[tokio::test]
async fn a_signed_call_passes_with_parameters_in_query_and_form() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    client
        .get("/check")
        .param("token", "v1.x")
        .send()
        .await
        .ok();
    client
        .post("/check")
        .param("token", "v1.x")
        .send()
        .await
        .ok();
    client
        .post("/check")
        .query("token", "v1.x")
        .param("wait", "1")
        .send()
        .await
        .ok();
    client
        .post("/check")
        .query("token", "v1.x")
        .send()
        .await
        .ok();
    client
        .get("/check")
        .param("name", "张三 & +%")
        .send()
        .await
        .ok();
    assert_eq!(backend.requests().len(), 5);
}

#[tokio::test]
async fn a_signature_may_be_in_capitals() {
    let (stack, _backend) = Stack::recording().await;
    let time = now_ms().to_string();
    let sign = md5_hex(&format!("time={time}&token=v1.x{APP_KEY}")).to_uppercase();
    let client = stack.client();
    client
        .get("/check")
        .param("token", "v1.x")
        .time(&time)
        .sign_given(&sign)
        .send()
        .await
        .ok();
}

#[tokio::test]
async fn a_request_without_parameters_needs_no_signature() {
    let (stack, backend) = Stack::recording().await;
    stack.client().get("/user").send().await.ok();
    stack.client().post("/user/logout").send().await.ok();
    assert_eq!(backend.requests().len(), 2);
}

#[tokio::test]
async fn post_login_must_always_be_signed() {
    let (stack, backend) = Stack::recording().await;
    stack
        .client()
        .post("/login")
        .unsigned()
        .send()
        .await
        .problem(403, "sign_missing");
    stack.client().post("/login").signed().send().await.ok();
    assert_eq!(backend.requests().len(), 1);
}

#[tokio::test]
async fn the_window_limits_past_and_future() {
    let backend = RecordingBackend::start().await;
    let narrow = Stack::builder()
        .in_front_of(&backend)
        .gateway("[sign]\nwindow_seconds = 40");
    let stack = narrow.start().await;
    let client = stack.client();
    for within in [-20_000, 0, 39_500] {
        client
            .get("/x")
            .param("a", "1")
            .later_by_ms(within)
            .send()
            .await
            .ok();
    }
    for outside in [-40_100, -86_400_000, 60_000, 86_400_000] {
        let response = client
            .get("/x")
            .param("a", "1")
            .later_by_ms(outside)
            .send()
            .await;
        let problem = response.problem(403, "time_out_of_window");
        let server_time = problem["server_time"].as_i64().unwrap();
        assert!((server_time - now_ms()).abs() < 20_000, "{problem}");
    }
    assert_eq!(backend.requests().len(), 3);
}

#[tokio::test]
async fn the_window_is_a_minute_by_default() {
    let (stack, _backend) = Stack::recording().await;
    let client = stack.client();
    // Two seconds before the end: one that takes longer is late.
    until("a request in time", || async {
        let call = client.get("/x").param("a", "1").later_by_ms(-58_000);
        (call.send().await.status == 200).then_some(())
    })
    .await;
    let late = client
        .get("/x")
        .param("a", "1")
        .later_by_ms(-60_500)
        .send()
        .await;
    late.problem(403, "time_out_of_window");
}

#[tokio::test]
async fn a_malformed_time_is_invalid() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    let call = |time: &str| client.get("/x").param("a", "1").time(time);
    let now = now_ms();
    for time in [
        "",
        "now",
        "-1",
        "1e12",
        "17321040000x0",
        "+1732104000000",
        "１７３２１０４００００００",
    ] {
        call(time).send().await.problem(400, "time_invalid");
    }
    let seconds = (now / 1000).to_string();
    let problem = call(&seconds).send().await.problem(400, "time_invalid");
    assert!(
        problem["hint"].as_str().unwrap().contains("seconds"),
        "{problem}"
    );
    for far in [
        "99999999999999999999999999",
        "18446744073709551616",
        "9223372036854775808",
    ] {
        let response = call(far).send().await;
        assert!(
            [400, 403].contains(&response.status.as_u16()),
            "{far}: {}",
            response.summary()
        );
    }
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn time_and_sign_are_required_once_each() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    let call = || client.get("/x").param("a", "1");
    call()
        .without_time()
        .send()
        .await
        .problem(403, "time_missing");
    call()
        .without_sign()
        .send()
        .await
        .problem(403, "sign_missing");
    call().unsigned().send().await.problem(403, "time_missing");
    call()
        .query("time", "1")
        .send()
        .await
        .problem(400, "param_duplicated");
    call()
        .query("sign", "1")
        .send()
        .await
        .problem(400, "param_duplicated");
    let split = client
        .post("/x")
        .query("time", "1")
        .param("a", "1")
        .send()
        .await;
    split.problem(400, "param_duplicated");
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_wrong_signature_is_rejected_without_details() {
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    let call = || client.get("/x").param("a", "1");
    // The form of `sign` alone decides.
    for (sign, says) in [
        ("0".repeat(32), "signpost sign --canonical"),
        ("1".repeat(40), "uses MD5, with 32 hex digits"),
        ("2".repeat(64), "uses MD5, with 32 hex digits"),
        ("3".repeat(128), "uses MD5, with 32 hex digits"),
        (String::new(), "is not the hex of a hash"),
        ("xyz".to_owned(), "is not the hex of a hash"),
        ("0".repeat(31), "too few hex digits"),
        ("g".repeat(32), "is not the hex of a hash"),
    ] {
        let response = call().sign_given(&sign).send().await;
        let problem = response.problem(403, "sign_mismatch");
        let hint = problem["hint"].as_str().unwrap();
        assert!(hint.contains(says), "{sign}: {hint}");
    }
    let other_key = client.with_key(&"1".repeat(64));
    let problem = other_key
        .get("/x")
        .param("a", "1")
        .send()
        .await
        .problem(403, "sign_mismatch");
    let hint = problem["hint"].as_str().unwrap();
    assert!(hint.contains("signpost sign --canonical"), "{hint}");
    let log = stack.log(Program::Gateway);
    assert!(
        !log.contains(APP_KEY) && !log.contains(&"0".repeat(31)),
        "{log}"
    );
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_changed_parameter_is_detected() {
    let (stack, backend) = Stack::recording().await;
    let (target, _) = stack
        .client()
        .get("/x")
        .param("amount", "1")
        .param("b", "")
        .parts();
    for changed in [
        target.replace("amount=1", "amount=2"),
        target.replace("amount=1", "amount=1&c=3"),
        target.replace("&b=", ""),
        target.replace("amount=1&b=", "amount=1%26b="),
    ] {
        fetch(&stack.url(&changed))
            .await
            .problem(403, "sign_mismatch");
    }
    assert_eq!(backend.connections(), 0);
}

/// The common slips of CONTRACT 3, each with the right key. `T` stands for the time.
const SLIPS: [(&str, &str, &str); 12] = [
    ("unsorted", "z=1&a=%E5%BC%A0", "z=1&a=%E5%BC%A0&time=T{KEY}"),
    ("empty dropped", "z=&a=1", "a=1&time=T{KEY}"),
    ("decoded", "a=%E5%BC%A0", "a=张&time=T{KEY}"),
    ("&key=", "a=1", "a=1&time=T&key={KEY}"),
    ("concatenated", "a=1", "a1timeT{KEY}"),
    ("concatenated, key on both ends", "a=1", "{KEY}a1timeT{KEY}"),
    ("key in front", "a=1", "{KEY}a=1&time=T"),
    ("trailing newline", "a=1", "a=1&time=T{KEY}\n"),
    (
        "lower-case escapes",
        "a=%E5%BC%A0",
        "a=%e5%bc%a0&time=T{KEY}",
    ),
    ("time not signed", "b=2&a=1", "a=1&b=2{KEY}"),
    ("+ sent, %20 signed", "a=x+y", "a=x%20y&time=T{KEY}"),
    ("%20 sent, + signed", "a=x%20y", "a=x+y&time=T{KEY}"),
];

#[tokio::test]
async fn a_common_slip_is_explained() {
    let (stack, backend) = Stack::recording().await;
    for (slip, query, canonical) in SLIPS {
        let time = now_ms().to_string();
        let sign = md5_hex(&canonical.replace('T', &time).replace("{KEY}", APP_KEY));
        let url = stack.url(&format!("/x?{query}&time={time}&sign={sign}"));
        let problem = fetch(&url).await.problem(403, "sign_mismatch");
        let hint = problem["hint"].as_str();
        assert!(
            hint.is_some_and(|hint| !hint.is_empty()),
            "{slip}: {problem}"
        );
        assert!(!problem.to_string().contains(APP_KEY), "{slip}: {problem}");
    }
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn a_form_that_is_signed_without_the_query_is_explained() {
    let (stack, backend) = Stack::recording().await;
    let form = format!("c=3&time={}", now_ms());
    let sign = md5_hex(&format!("{form}{APP_KEY}"));
    let response = send_form(&stack.url("/x?a=1"), &format!("{form}&sign={sign}")).await;
    let problem = response.problem(403, "sign_mismatch");
    assert!(
        problem["hint"].as_str().unwrap().contains("query"),
        "{problem}"
    );
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn an_applications_wrong_signatures_leave_hints_to_the_others() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend).multi().start().await;
    let [busy, other] = ["busy", "other"].map(|name| stack.create_application(name, &[]));
    let is_searched = async |application| {
        let client = stack.client_of(application);
        let call = client.get("/x").param("a", "1").sign_given(&"0".repeat(32));
        let problem = call.send().await.problem(403, "sign_mismatch");
        let hint = problem["hint"].as_str().unwrap();
        let is_searched = !hint.contains("not searched");
        assert!(
            is_searched || hint.contains("Try again in a second"),
            "{hint}"
        );
        is_searched
    };
    let mut searched = 0;
    while is_searched(&busy).await {
        searched += 1;
        assert!(
            searched < 1_000,
            "no limit of the searches of an application"
        );
    }
    assert!(searched >= 10, "{searched}");
    assert!(is_searched(&other).await);
}

#[tokio::test]
async fn a_large_request_is_not_searched() {
    let (stack, _backend) = Stack::recording().await;
    let client = stack.client();
    let large = client.post("/x").param("a", &"1".repeat(9_000));
    let response = large.sign_given(&"0".repeat(32)).send().await;
    let problem = response.problem(403, "sign_mismatch");
    let hint = problem["hint"].as_str().unwrap();
    assert!(
        hint.contains("not searched") && hint.contains("8 KiB"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_mistaken_time_is_explained() {
    const HOUR_MS: i64 = 3_600_000;
    let (stack, backend) = Stack::recording().await;
    let client = stack.client();
    let now = now_ms();
    for (time, code, hint) in [
        (format!("{now}000000"), "time_invalid", "Nanoseconds?"),
        (format!("{}.123", now / 1000), "time_invalid", "fraction"),
        (format!("{now}.0"), "time_invalid", "fraction"),
        ("1.732104E12".to_owned(), "time_invalid", "exponent"),
        (format!("\"{now}\""), "time_invalid", "quotes"),
        (format!("{now}\n"), "time_invalid", "white space"),
        ("2024-11-20T12:00:00Z".to_owned(), "time_invalid", "a date"),
        (
            "Wed, 20 Nov 2024 12:00:00 GMT".to_owned(),
            "time_invalid",
            "a date",
        ),
        (format!("{now}000"), "time_out_of_window", "Microseconds?"),
        (
            (now + 8 * HOUR_MS).to_string(),
            "time_out_of_window",
            "by +8 h. Was local time taken for UTC",
        ),
        (
            (now - 11 * HOUR_MS / 2).to_string(),
            "time_out_of_window",
            "by -5 h 30 min. Was local time taken for UTC",
        ),
    ] {
        let call = client.get("/x").param("a", "1").time(&time);
        let status = if code == "time_invalid" { 400 } else { 403 };
        let problem = call.send().await.problem(status, code);
        let shown = problem["hint"].as_str().unwrap_or_default();
        assert!(shown.contains(hint), "{time}: {problem}");
        let has_time = problem["server_time"].is_u64();
        assert_eq!(has_time, status == 403, "{problem}");
    }
    // A clock that is 20 minutes off is no time zone.
    let call = client.get("/x").param("a", "1").later_by_ms(HOUR_MS / 3);
    let problem = call.send().await.problem(403, "time_out_of_window");
    assert_eq!(problem.get("hint"), None, "{problem}");
    assert_eq!(backend.connections(), 0);
}

#[tokio::test]
async fn each_preset_is_accepted() {
    let decoded = Profile {
        values: Values::Decoded,
        ..Profile::default()
    };
    let dropping = Profile {
        empty: Empty::Drop,
        ..decoded.clone()
    };
    let alipay = Profile {
        leave_out: vec!["sign_type".to_owned()],
        ..dropping.clone()
    };
    let wechat = Profile {
        layout: Layout::PairsKey,
        ..dropping.clone()
    };
    let top = Profile {
        layout: Layout::ConcatBoth,
        ..dropping
    };
    let presets = [
        ("plain", Profile::default()),
        ("decoded", decoded),
        ("bilibili", Profile::default()),
        ("alipay", alipay),
        ("wechat", wechat),
        ("top", top),
    ];
    assert_eq!(
        presets.each_ref().map(|(name, _)| *name),
        SignProfile::PRESETS
    );
    let backend = RecordingBackend::start().await;
    for (preset, profile) in presets {
        let sign = format!("[sign]\npreset = \"{preset}\"");
        let stack = Stack::builder()
            .in_front_of(&backend)
            .gateway(&sign)
            .start()
            .await;
        let client = stack.client().with_profile(profile);
        let call = client
            .post("/x")
            .param("b", "")
            .param("sign_type", "MD5")
            .param("a", "1 +张");
        let response = call.send().await;
        assert_eq!(response.status, 200, "{preset}: {}", response.summary());
    }
}

#[tokio::test]
async fn a_signature_over_the_request_is_valid_for_one_method_and_path() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[sign]\ncover = \"request\"");
    let stack = stack.start().await;
    let profile = Profile {
        cover: Cover::Request,
        ..Profile::default()
    };
    let client = stack.client().with_profile(profile);
    let (target, _) = client.get("/x").param("a", "1").parts();
    let elsewhere = fetch(&stack.url(&target.replace("/x", "/y"))).await;
    elsewhere.problem(403, "sign_mismatch");
    let otherwise = send_form(&stack.url(&target), "").await;
    otherwise.problem(403, "sign_mismatch");
    fetch(&stack.url(&target)).await.ok();
}

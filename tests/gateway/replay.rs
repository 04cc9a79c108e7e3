//! The replay memory: if so configured, a signature is valid once. CONTRACT 3.

use end_to_end::{
    raw_connection::RawConnection,
    recording_backend::RecordingBackend,
    signed_client::{fetch, send_form},
    stack::Stack,
};

#[tokio::test]
async fn a_replayed_request_is_rejected() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[sign]\nreplay = \"reject\"");
    let stack = stack.start().await;
    let client = stack.client();
    let call = client.post("/x").param("a", "1");
    call.send().await.ok();
    call.send().await.problem(409, "request_replayed");
    // In capitals it is the same signature.
    let (_, form) = call.parts();
    let (before, sign) = form.split_once("&sign=").unwrap();
    let capitals = format!("{before}&sign={}", sign.to_uppercase());
    let again = send_form(&stack.url("/x"), &capitals).await;
    again.problem(409, "request_replayed");
    stack.client().post("/x").param("a", "2").send().await.ok();
    assert_eq!(backend.requests().len(), 2);
}

#[tokio::test]
async fn a_full_replay_memory_rejects_requests_and_keeps_its_entries() {
    let backend = RecordingBackend::start().await;
    let small = "[sign]\nreplay = \"reject\"\nreplay_entries = 100\nwindow_seconds = 300";
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(small)
        .start()
        .await;
    let client = stack.client();
    let first = client.get("/x").param("number", "0");
    first.send().await.ok();
    for number in 1..100 {
        client
            .get("/x")
            .param("number", &number.to_string())
            .send()
            .await
            .ok();
    }
    let over = client.get("/x").param("number", "100").send().await;
    over.problem(429, "rate_limited");
    assert!(over.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
    first.send().await.problem(409, "request_replayed");
    // A request without parameters needs no entry.
    client.get("/x").send().await.ok();
    assert_eq!(backend.requests().len(), 101);
}

#[tokio::test]
async fn a_rejected_request_takes_no_replay_entry() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[sign]\nreplay = \"reject\"");
    let stack = stack.start().await;
    let client = stack.client();
    let call = client.get("/x").param("a", "1");
    let wrong = client.with_key(&"1".repeat(64));
    let (target, _) = call.parts();
    // Without the key, an attacker cannot use up a signature.
    wrong
        .get("/x")
        .param("a", "1")
        .send()
        .await
        .problem(403, "sign_mismatch");
    fetch(&stack.url(&target.replace("a=1", "a=2")))
        .await
        .problem(403, "sign_mismatch");
    call.send().await.ok();
}

#[tokio::test]
async fn one_of_many_equal_concurrent_requests_passes() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[sign]\nreplay = \"reject\"");
    let stack = stack.start().await;
    let client = stack.client();
    let call = client.post("/x").param("a", "1");
    let bytes = call.bytes(&[]);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (address, bytes) = (stack.addresses().gateway, bytes.clone());
        tasks.spawn(async move {
            let mut connection = RawConnection::open(address).await;
            connection.send(&bytes).await;
            connection.response().await.unwrap().status
        });
    }
    let statuses = tasks.join_all().await;
    assert_eq!(
        statuses.iter().filter(|status| **status == 200).count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|status| **status == 409).count(),
        19,
        "{statuses:?}"
    );
    assert_eq!(backend.requests().len(), 1);
}

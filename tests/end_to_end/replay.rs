//! The replay memory: a sign serves once, where it is told to. CONTRACT 3.

use end_to_end::{
    raw_connection::RawConnection,
    recording_backend::RecordingBackend,
    signed_client::{fetch, send_form},
    stack::Stack,
};

#[tokio::test]
async fn a_replayed_request_is_refused() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[sign]\nreplay = \"reject\"");
    let stack = stack.start().await;
    let client = stack.client();
    let call = client.post("/x").param("a", "1");
    call.send().await.ok();
    call.send().await.problem(409, "request_replayed");
    // The same sign in other letters is the same sign.
    let (_, form) = call.parts();
    let (before, sign) = form.split_once("&sign=").unwrap();
    let capitals = format!("{before}&sign={}", sign.to_uppercase());
    let again = send_form(&stack.url("/x"), &capitals).await;
    again.problem(409, "request_replayed");
    stack.client().post("/x").param("a", "2").send().await.ok();
    assert_eq!(backend.requests().len(), 2);
}

#[tokio::test]
async fn a_full_replay_memory_refuses_rather_than_forgets() {
    let backend = RecordingBackend::start().await;
    let small = "[sign]\nreplay = \"reject\"\nreplay_entries = 100";
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
    // A wrong sign takes no room, and a request without parameters needs none.
    client.get("/x").send().await.ok();
    assert_eq!(backend.requests().len(), 101);
}

#[tokio::test]
async fn a_refused_request_is_not_remembered() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway("[sign]\nreplay = \"reject\"");
    let stack = stack.start().await;
    let client = stack.client();
    let call = client.get("/x").param("a", "1");
    let wrong = client.with_key(&"1".repeat(64));
    let (target, _) = call.parts();
    // Somebody without the key cannot use a sign up by guessing at it.
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
async fn of_many_equal_requests_at_once_one_passes() {
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
            connection.answer().await.unwrap().status
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

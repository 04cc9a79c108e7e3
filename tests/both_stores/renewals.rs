//! A renewed credential has at most one valid successor, also if renewals are repeated, cancelled, or their responses
//! lost. CONTRACT 8.

use end_to_end::{
    browser::{Browser, Decision},
    logins::{begin_polling, check, confirm_polling, credential, log_in_by_redirect},
    recording_backend::RecordingBackend,
    signed_client::SignedClient,
    stack::Stack,
    waiting::until,
};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

/// Concurrent renewals with one credential; half of them are cancelled.
const RENEWALS: usize = 40;

/// Renews a credential, and returns the new one.
async fn renew(client: &SignedClient, credential: &str) -> String {
    let call = client.post("/user/renew").authorization(credential);
    let renewed = call.send().await.ok();
    assert_eq!(renewed["expires_in"], 30 * 24 * 60 * 60, "{renewed}");
    renewed["authorization"].as_str().unwrap().to_owned()
}

async fn status(client: &SignedClient, credential: &str, version: &str) -> u16 {
    let call = client.get("/user").version(version);
    call.authorization(credential).send().await.status.as_u16()
}

async fn is_invalid(client: &SignedClient, credential: &str) {
    until("the credential to end everywhere", || async {
        let [v1, v2] = ["v1", "v2"].map(|version| status(client, credential, version));
        ((v1.await, v2.await) == (401, 401)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_renewal_replaces_the_credential_after_an_overlap() {
    let stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let mut browser = Browser::default();
    let provider = confirm_polling(&mut browser, &begun).await;
    browser
        .decide_and_follow(&provider, "ada", Decision::Allow)
        .await;
    let login = check(&client, &begun.token).await["login"].clone();
    let first = credential(&login);
    let second = renew(&client, first).await;
    assert_eq!(second.len(), 43);
    for one in [first, &second] {
        let user = client.get("/user").authorization(one).send().await.ok();
        assert_eq!(user, login["account"]);
    }
    // The overlap is over, at a backend that has not cached the credential.
    let over = "UPDATE credentials SET previous_until = 1 WHERE previous_until > 1 RETURNING 1";
    assert_eq!(stack.store().query(over).number(), 1);
    assert_eq!(status(&client, first, "v2").await, 401);
    let late = client
        .post("/user/renew")
        .version("v2")
        .authorization(first);
    late.send().await.problem(401, "authorization_invalid");
    // `/check` returns the credential of the login, and does not bring it back.
    let again = check(&client, &begun.token).await;
    assert_eq!(again["login"]["authorization"], first);
    assert_eq!(status(&client, first, "v2").await, 401);
    assert_eq!(status(&client, &second, "v2").await, 200);
    let wrong = client.get("/user/renew").send().await;
    wrong.problem(405, "method_not_allowed");
    let none = client.post("/user/renew").send().await;
    none.problem(401, "authorization_missing");
}

#[tokio::test]
async fn a_logout_with_either_credential_ends_both() {
    let stack = Stack::start().await;
    let client = stack.client();
    for with_renewed in [false, true] {
        let login = log_in_by_redirect(&client, "ada").await;
        let first = credential(&login);
        let second = renew(&client, first).await;
        assert_eq!(status(&client, first, "v2").await, 200);
        let out = if with_renewed { first } else { &second };
        let logout = client.post("/user/logout").authorization(out);
        logout.send().await.ok();
        is_invalid(&client, first).await;
        is_invalid(&client, &second).await;
        let renewal = client.post("/user/renew").authorization(&second);
        renewal.send().await.problem(401, "authorization_invalid");
    }
}

#[tokio::test]
async fn the_gateway_learns_what_a_repeated_renewal_has_ended() {
    let backend = RecordingBackend::start().await;
    let route = format!(
        "[[versions.v1.routes]]\npath = \"/required\"\nbackend = \"{}\"\naccount = \"required\"",
        backend.address()
    );
    let stack = Stack::builder().gateway(&route).start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let first = credential(&login);
    let call = |credential: &str| client.get("/required").authorization(credential);
    let lost = renew(&client, first).await;
    // Both are cached now.
    call(first).send().await.ok();
    call(&lost).send().await.ok();
    let second = renew(&client, first).await;
    call(&second).send().await.ok();
    until("the gateway to reject the lost credential", || async {
        (call(&lost).send().await.status == 401).then_some(())
    })
    .await;
    call(first).send().await.ok();
    call(&second).send().await.ok();
}

#[tokio::test]
async fn concurrent_and_cancelled_renewals_leave_one_successor_and_one_row() {
    let stack = Stack::start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let (first, gateway) = (credential(&login).to_owned(), stack.addresses().gateway);
    let mut renewals = JoinSet::new();
    for index in 0..RENEWALS {
        let (client, first) = (client.clone(), first.clone());
        let version = ["v1", "v2"][index / 2 % 2];
        renewals.spawn(async move {
            let call = client
                .post("/user/renew")
                .version(version)
                .authorization(&first);
            if index % 2 == 0 {
                let mut connection = TcpStream::connect(gateway).await.unwrap();
                connection.write_all(&call.bytes(&[])).await.unwrap();
                return None;
            }
            let renewed = call.send().await.ok();
            Some(renewed["authorization"].as_str().unwrap().to_owned())
        });
    }
    let renewed: Vec<_> = renewals.join_all().await.into_iter().flatten().collect();
    assert_eq!(renewed.len(), RENEWALS / 2);
    // Cancelled renewals may still run, and end this one.
    let last = until("the last renewal", || async {
        let last = renew(&client, &first).await;
        let [v1, v2] = ["v1", "v2"].map(|version| status(&client, &last, version));
        ((v1.await, v2.await) == (200, 200)).then_some(last)
    })
    .await;
    for ended in &renewed {
        is_invalid(&client, ended).await;
    }
    assert_eq!(status(&client, &last, "v1").await, 200);
    let rows = stack.store().query("SELECT count(*) FROM credentials");
    assert_eq!(rows.number(), 1);
}

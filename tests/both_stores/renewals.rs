//! A renewal writes once however often it is repeated, and any credential of a login ends the login. CONTRACT 8.

use end_to_end::{
    logins::{
        begin_polling, check, complete_polling, credential, log_in_by_polling, log_in_by_redirect,
    },
    program::Program,
    recording_backend::RecordingBackend,
    signed_client::SignedClient,
    stack::{Stack, is_bridged},
    waiting::until,
};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

/// Concurrent renewals with one credential; half of them are cancelled.
const RENEWALS: usize = 40;

/// A credential of no login.
const UNKNOWN: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Seconds that a new credential is valid.
const LIFETIME: i64 = 30 * 24 * 60 * 60;

/// Renews a credential, and returns the new one.
async fn renew(client: &SignedClient, credential: &str) -> String {
    let (renewed, seconds) = renewed(client, credential).await;
    assert_eq!(seconds, LIFETIME);
    renewed
}

/// Repeats a renewal of the last 60 s, and returns the credential that it has made.
async fn renew_again(client: &SignedClient, credential: &str) -> String {
    let (renewed, seconds) = renewed(client, credential).await;
    assert!((LIFETIME - 60..=LIFETIME).contains(&seconds), "{seconds}");
    renewed
}

/// The credential, and its seconds.
async fn renewed(client: &SignedClient, credential: &str) -> (String, i64) {
    let call = client.post("/user/renew").authorization(credential);
    let renewed = call.send().await.ok();
    let seconds = renewed["expires_in"].as_i64().unwrap();
    (
        renewed["authorization"].as_str().unwrap().to_owned(),
        seconds,
    )
}

async fn status(client: &SignedClient, credential: &str, version: &str) -> u16 {
    let call = client.get("/user").version(version);
    call.authorization(credential).send().await.status.as_u16()
}

/// Ends the overlap of the last renewal. Caches do not notice.
fn end_overlap(stack: &Stack) {
    let end = "UPDATE credentials SET previous_until = 1 WHERE previous_until > 1 RETURNING 1";
    assert_eq!(stack.store().query(end).number(), 1);
}

/// The number of changes of credentials that processes were notified of.
fn changes(stack: &Stack) -> i64 {
    let count = "SELECT count(*) FROM changes WHERE topic = 'credential'";
    stack.store().query(count).number()
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
    let mut stack = Stack::start().await;
    let client = stack.client();
    let begun = begin_polling(&client).await;
    let login = complete_polling(&client, &begun, "ada").await;
    let first = credential(&login);
    let second = renew(&client, first).await;
    assert_eq!(second.len(), 43);
    for one in [first, &second] {
        let user = client.get("/user").authorization(one).send().await.ok();
        assert_eq!(user, login["account"]);
    }
    // The overlap is over, at a backend that has not cached the credential.
    end_overlap(&stack);
    if is_bridged() {
        stack.restart(Program::V2).await;
    }
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
async fn a_logout_with_any_credential_of_a_login_ends_all() {
    let backend = RecordingBackend::start().await;
    let route = format!(
        "[[versions.v1.routes]]\npath = \"/required\"\nbackend = \"{}\"\naccount = \"required\"",
        backend.address()
    );
    let stack = Stack::builder().gateway(&route).start().await;
    let client = stack.client();
    for out in 0..3 {
        let login = log_in_by_redirect(&client, "ada").await;
        let mut credentials = vec![credential(&login).to_owned()];
        for index in 0..2 {
            // Cached at the gateway and at the version that does not renew it.
            let route = client.get("/required").authorization(&credentials[index]);
            route.send().await.ok();
            assert_eq!(status(&client, &credentials[index], "v2").await, 200);
            let renewed = renew(&client, &credentials[index]).await;
            credentials.push(renewed);
            end_overlap(&stack);
        }
        let logout = || client.post("/user/logout").version("v2");
        let out = &credentials[out];
        logout().authorization(out).send().await.ok();
        for credential in &credentials {
            is_invalid(&client, credential).await;
            until("the gateway to reject it", || async {
                let route = client.get("/required").authorization(credential);
                (route.send().await.status == 401).then_some(())
            })
            .await;
            let again = logout().authorization(credential).send().await;
            again.problem(401, "authorization_invalid");
            let renewal = client.post("/user/renew").authorization(credential);
            renewal.send().await.problem(401, "authorization_invalid");
        }
    }
}

#[tokio::test]
async fn only_its_own_application_ends_a_login() {
    let stack = Stack::builder().multi().start().await;
    let one = stack.client_of(&stack.create_application("one", &[]));
    let two = stack.client_of(&stack.create_application("two", &[]));
    let login = log_in_by_polling(&one, "ada").await;
    let logout = two.post("/user/logout").authorization(credential(&login));
    logout.send().await.problem(401, "authorization_invalid");
    assert_eq!(status(&one, credential(&login), "v1").await, 200);
}

#[tokio::test]
async fn concurrent_and_repeated_renewals_write_once() {
    let stack = Stack::start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let (first, gateway) = (credential(&login).to_owned(), stack.addresses().gateway);
    let mut renewals = JoinSet::new();
    for index in 0..RENEWALS {
        let (client, first) = (client.clone(), first.clone());
        let version = ["v1", "v2"][index / 2 % 2];
        renewals.spawn(async move {
            let call = client.post("/user/renew").version(version);
            let call = call.authorization(&first);
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
    // A client whose response was lost gets the same one.
    let second = renew_again(&client, &first).await;
    assert!(renewed.iter().all(|one| *one == second), "two successors");
    for _ in 0..20 {
        let soon = client.post("/user/renew").authorization(&second);
        let soon = soon.send().await;
        soon.problem(429, "rate_limited");
        let seconds: u64 = soon.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    for version in ["v1", "v2"] {
        assert_eq!(status(&client, &second, version).await, 200);
    }
    // None of this writes.
    let lock = stack.store().lock();
    assert_eq!(renew_again(&client, &first).await, second);
    let soon = client.post("/user/renew").authorization(&second);
    soon.send().await.problem(429, "rate_limited");
    let unknown = client.post("/user/logout").authorization(UNKNOWN);
    let unknown = unknown.send().await;
    unknown.problem(401, "authorization_invalid");
    drop(lock);
    assert_eq!(changes(&stack), 1);
    let rows = stack.store().query("SELECT count(*) FROM credentials");
    assert_eq!(rows.number(), 1);
    end_overlap(&stack);
    renew(&client, &second).await;
    assert_eq!(changes(&stack), 2);
}

#[tokio::test]
async fn renewals_do_not_prolong_a_login_for_ever() {
    let times = "[login]\ncredential_ttl_seconds = 6000\nrenewal_ttl_seconds = 9000";
    let stack = Stack::builder().backends(times).start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let renew = async |credential: &str| {
        let call = client.post("/user/renew").authorization(credential);
        let renewed = call.send().await.ok();
        let seconds = renewed["expires_in"].as_u64().unwrap();
        let credential = renewed["authorization"].as_str().unwrap().to_owned();
        end_overlap(&stack);
        (credential, seconds)
    };
    let (second, seconds) = renew(credential(&login)).await;
    assert!((5950..=6000).contains(&seconds), "{seconds}");
    let age = "UPDATE credentials SET created_at = created_at - 5000000, expires_at = expires_at - 5000000 RETURNING 1";
    assert_eq!(stack.store().query(age).number(), 1);
    let (third, seconds) = renew(&second).await;
    assert!((3950..=4000).contains(&seconds), "{seconds}");
    let (_, later) = renew(&third).await;
    assert!((3900..=seconds).contains(&later), "{later}");
}

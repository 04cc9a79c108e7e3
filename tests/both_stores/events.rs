//! `GET /events`: an endpoint that version 2 has and version 1 has not. CONTRACT 8.

use std::collections::BTreeSet;

use end_to_end::{
    logins::{credential, log_in_by_polling, log_in_by_redirect},
    program::{Program, output_text},
    response::Response,
    signed_client::{SignedClient, http_client},
    stack::Stack,
};
use serde_json::Value;
use tokio::task::JoinSet;

/// A logged-in person, at version 2.
#[derive(Clone)]
struct Person {
    client: SignedClient,
    credential: String,
}

impl Person {
    async fn log_in(client: SignedClient, user: &str) -> Self {
        let login = log_in_by_polling(&client, user).await;
        Self {
            credential: credential(&login).to_owned(),
            client,
        }
    }

    /// Reports an event, and returns the response.
    async fn report(&self, event: &str, data: Option<&str>) -> Value {
        let mut call = self.client.post("/event/send").param("event", event);
        if let Some(data) = data {
            call = call.param("data", data);
        }
        call.authorization(&self.credential).send().await.ok()
    }

    async fn events(&self, params: &[(&str, &str)]) -> Response {
        let call = self.client.get("/events").version("v2");
        let call = params
            .iter()
            .fold(call, |call, (name, value)| call.param(name, value));
        call.authorization(&self.credential).send().await
    }

    /// The names on a page, and its `next`.
    async fn page(&self, params: &[(&str, &str)]) -> (Vec<String>, Option<String>) {
        let page = self.events(params).await.ok();
        let names = page["events"].as_array().unwrap().iter();
        let names = names.map(|event| event["event"].as_str().unwrap().to_owned());
        let next = page["next"].as_str().map(str::to_owned);
        (names.collect(), next)
    }
}

#[tokio::test]
async fn a_person_reads_their_own_events_by_page() {
    let stack = Stack::start().await;
    let ada = Person::log_in(stack.client(), "ada").await;
    assert_eq!(
        ada.events(&[]).await.ok(),
        serde_json::json!({ "events": [] })
    );
    let mut sent = Vec::new();
    for name in ["a", "b", "c", "d"] {
        sent.push(ada.report(name, None).await);
    }
    sent.push(ada.report("e", Some("{\"page\":\"首页\"}")).await);

    // Without parameters the request is unsigned: the credential suffices.
    let all = ada.events(&[]).await.ok();
    let mut newest = sent[4].clone();
    newest["data"] = "{\"page\":\"首页\"}".into();
    assert_eq!(all["events"][0], newest);
    assert_eq!(all["events"][4], sent[0], "without `data`");
    assert_eq!(all["events"].as_array().unwrap().len(), 5);
    assert!(all.get("next").is_none(), "{all}");

    let (first, next) = ada.page(&[("limit", "2")]).await;
    assert_eq!(first, ["e", "d"]);
    ada.report("f", None).await;
    let next = next.unwrap();
    let (second, last) = ada.page(&[("limit", "2"), ("before", &next)]).await;
    assert_eq!(second, ["c", "b"], "a new event shifts no page");
    let (third, end) = ada
        .page(&[("limit", "2"), ("before", &last.unwrap())])
        .await;
    assert_eq!((third, end), (vec!["a".to_owned()], None));
    assert_eq!(ada.page(&[("limit", "1")]).await.0, ["f"]);

    // Nobody else sees them, not even from a page's end.
    let lin = Person::log_in(stack.client(), "lin").await;
    assert_eq!(lin.page(&[]).await, (vec![], None));
    assert_eq!(lin.page(&[("before", &next)]).await, (vec![], None));
    lin.report("g", None).await;
    assert_eq!(lin.page(&[]).await.0, ["g"]);
    assert_eq!(ada.page(&[("limit", "1")]).await.0, ["f"]);

    // Twenty without a limit.
    for _ in 0..15 {
        ada.report("more", None).await;
    }
    let (names, next) = ada.page(&[]).await;
    assert_eq!(names.len(), 20);
    assert_eq!(
        ada.page(&[("before", &next.unwrap())]).await,
        (vec!["a".to_owned()], None)
    );
}

#[tokio::test]
async fn an_event_with_a_key_is_stored_once() {
    let stack = Stack::start().await;
    let ada = Person::log_in(stack.client(), "ada").await;
    let send = |person: &Person, event: &'static str, key: &str, version: &'static str| {
        let (person, key) = (person.clone(), key.to_owned());
        async move {
            let call = person.client.post("/event/send").version(version);
            let call = call.param("event", event).param("idempotency_key", &key);
            call.authorization(&person.credential).send().await
        }
    };
    // Equal requests in flight, at two backends.
    let mut sends = JoinSet::new();
    for index in 0..20 {
        sends.spawn(send(&ada, "paid", "order-7", ["v1", "v2"][index % 2]));
    }
    let sent: BTreeSet<_> = sends.join_all().await.iter().map(Response::text).collect();
    assert_eq!(sent.len(), 1, "{sent:?}");
    let first = send(&ada, "paid", "order-7", "v1").await;
    assert!(sent.contains(&first.text()), "{sent:?}");
    let first = first.ok();
    let events = stack.store().query("SELECT count(*) FROM events");
    assert_eq!(events.number(), 1);
    let other = send(&ada, "refunded", "order-7", "v2").await;
    other.problem(409, "idempotency_conflict");
    assert_eq!(ada.page(&[]).await.0, ["paid"]);
    // Another account's keys are its own, and other keys are other events.
    let lin = Person::log_in(stack.client(), "lin").await;
    send(&lin, "refunded", "order-7", "v1").await.ok();
    assert_ne!(
        send(&ada, "paid", "Order-7", "v1").await.ok()["id"],
        first["id"]
    );
    for wrong in ["", "a b", "ä", &"a".repeat(65)] {
        let problem = send(&ada, "paid", wrong, "v1").await;
        problem.problem(400, "param_invalid");
    }
    let data = ada.client.post("/event/send").param("event", "paid");
    let data = data.param("data", "").param("idempotency_key", "order-7");
    let data = data.authorization(&ada.credential).send().await;
    data.problem(409, "idempotency_conflict");
}

#[tokio::test]
async fn only_version_2_has_events() {
    let stack = Stack::start().await;
    let ada = Person::log_in(stack.client(), "ada").await;
    for version in [None, Some("v1")] {
        let call = ada.client.get("/events").authorization(&ada.credential);
        let call = match version {
            Some(version) => call.version(version),
            None => call,
        };
        call.send().await.problem(404, "not_found");
    }
    ada.events(&[]).await.ok();
    let post = ada.client.post("/events").version("v2").send().await;
    post.problem(405, "method_not_allowed");
    assert_eq!(post.header("allow"), Some("GET"));
    let below = ada.client.get("/events/1").version("v2").send().await;
    below.problem(404, "not_found");
}

#[tokio::test]
async fn wrong_parameters_and_credentials_are_rejected() {
    let stack = Stack::start().await;
    let ada = Person::log_in(stack.client(), "ada").await;
    for (name, wrong) in [
        ("limit", "0"),
        ("limit", "101"),
        ("limit", "-1"),
        ("limit", "x"),
        ("limit", ""),
        ("limit", "99999999999999999999"),
        ("before", ""),
        ("before", "1"),
        ("before", "AAAAAAAAAAAA"),
        ("before", "AAAAAAAAAA="),
    ] {
        let problem = ada
            .events(&[(name, wrong)])
            .await
            .problem(400, "param_invalid");
        assert!(
            problem["detail"].as_str().unwrap().contains(name),
            "{problem}"
        );
    }
    let twice = ada.events(&[("limit", "1"), ("limit", "1")]).await;
    twice.problem(400, "param_invalid");
    let unsigned = ada.client.get("/events").version("v2").param("limit", "1");
    let unsigned = unsigned.authorization(&ada.credential).unsigned();
    unsigned.send().await.problem(403, "time_missing");

    let events = || ada.client.get("/events").version("v2");
    events().send().await.problem(401, "authorization_missing");
    let wrong = events().authorization("x").language("ja").send().await;
    let problem = wrong.problem(401, "authorization_malformed");
    let user = ada.client.get("/user").authorization("x").language("ja");
    let expected = user.send().await.problem(401, "authorization_malformed");
    assert_eq!(problem["title"], expected["title"]);
    let logout = ada.client.post("/user/logout").version("v2");
    logout.authorization(&ada.credential).send().await.ok();
    ada.events(&[]).await.problem(401, "authorization_invalid");
}

#[tokio::test]
async fn an_application_shows_its_own_events_only() {
    let stack = Stack::builder().multi().start().await;
    let one = stack.client_of(&stack.create_application("one", &[]));
    let two = stack.client_of(&stack.create_application("two", &[]));
    let (at_one, at_two) = (
        Person::log_in(one, "ada").await,
        Person::log_in(two, "ada").await,
    );
    at_one.report("one", None).await;
    at_two.report("two", None).await;
    assert_eq!(at_one.page(&[]).await.0, ["one"]);
    assert_eq!(at_two.page(&[]).await.0, ["two"]);
    let stolen = Person {
        client: at_two.client,
        credential: at_one.credential,
    };
    stolen
        .events(&[])
        .await
        .problem(401, "authorization_invalid");
}

#[tokio::test]
async fn own_endpoints_are_served_in_one_process_too() {
    let stack = Stack::builder().internal_forwarding().start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let ada = Person {
        credential: credential(&login).to_owned(),
        client,
    };
    for name in ["a", "b", "c"] {
        ada.report(name, None).await;
    }
    let (first, next) = ada.page(&[("limit", "2")]).await;
    assert_eq!(first, ["c", "b"]);
    assert_eq!(ada.page(&[("before", &next.unwrap())]).await.0, ["a"]);
    let first = ada.client.get("/events").version("v1");
    first.send().await.problem(404, "not_found");
}

#[tokio::test]
async fn own_endpoints_need_the_gateways_secret_before_and_after_a_reload() {
    let secret = "gateway_secret = \"between-us-4283fefc63f0cd0e\"";
    let stack = Stack::builder()
        .gateway(secret)
        .backends(secret)
        .start()
        .await;
    let ada = Person::log_in(stack.client(), "ada").await;
    ada.report("a", None).await;
    let direct = async || {
        let request = http_client()
            .get(format!("http://{}/events", stack.addresses().v2))
            .header("X-Gateway-App-Id", "0")
            .header("Acme-X-Authorization", &ada.credential);
        Response::read(request.send().await.unwrap()).await
    };
    direct().await.problem(403, "gateway_required");
    assert_eq!(ada.page(&[]).await.0, ["a"]);
    stack.configure(Program::V2, "[limits]\ncallbacks_burst = 1000");
    let reloaded = stack.reload(Program::V2);
    assert!(reloaded.status.success(), "{}", output_text(&reloaded));
    direct().await.problem(403, "gateway_required");
    assert_eq!(ada.page(&[]).await.0, ["a"]);
}

/// The bound of a response: 100 events with 4 KiB of data each, here of characters that JSON escapes.
#[tokio::test]
async fn a_page_of_the_largest_events_arrives_whole() {
    let stack = Stack::start().await;
    let ada = Person::log_in(stack.client(), "ada").await;
    let data = "\u{1}".repeat(4096);
    let mut sent = BTreeSet::new();
    for _ in 0..101 {
        sent.insert(ada.report("a", Some(&data)).await["id"].as_i64().unwrap());
    }
    let page = ada.events(&[("limit", "100")]).await.ok();
    let events = page["events"].as_array().unwrap();
    assert_eq!(events.len(), 100);
    assert!(events.iter().all(|event| event["data"] == data));
    let last = ada
        .page(&[("before", page["next"].as_str().unwrap())])
        .await;
    assert_eq!(last, (vec!["a".to_owned()], None));
    let ids: BTreeSet<_> = events
        .iter()
        .map(|event| event["id"].as_i64().unwrap())
        .collect();
    assert!(ids.is_subset(&sent) && ids.len() == 100);
}

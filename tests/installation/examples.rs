//! The example backends in Python and in Node: behind the gateway, and called without it. CONTRACT 9.

use std::{
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

use end_to_end::{
    documents::root,
    folder::Folder,
    logins::{credential, log_in_by_redirect},
    port::free_address,
    program::output_text,
    raw_connection::{RawConnection, request},
    signed_client::{Call, fetch, http_client},
    stack::Stack,
    waiting::until,
};
use serde_json::{Value, json};

const SECRET: &str = "8b1a9953c4611296a827abf8c47804d7";

/// A running example. When dropped, it is killed.
struct Example {
    address: SocketAddr,
    child: Child,
}

impl Example {
    /// Starts an example, and waits until it is healthy.
    async fn start(interpreter: &str, file: &str, folder: &Path) -> Self {
        let (address, secret) = (free_address(), folder.join("example.secret"));
        std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
        let child = Command::new(interpreter)
            .arg(root().join("backends/examples").join(file))
            .arg(address.to_string())
            .arg(secret)
            .env("DRAIN_SECONDS", "2")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|cause| {
                panic!("{interpreter}: {cause}; run scripts/prerequisites test")
            });
        let mut example = Self { address, child };
        until(&format!("{file} to be healthy"), || {
            assert!(example.status().is_none(), "{file} has exited");
            let health = http_client()
                .get(format!("http://{address}/healthz"))
                .send();
            async move {
                health
                    .await
                    .is_ok_and(|health| health.status() == 200)
                    .then_some(())
            }
        })
        .await;
        example
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // It may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn the_example_in_python_serves_the_orders_of_an_account() {
    assert_serves_orders("python3", "python/orders.py").await;
}

#[tokio::test]
async fn the_example_in_node_serves_the_orders_of_an_account() {
    assert_serves_orders("node", "node/orders.mjs").await;
}

async fn assert_serves_orders(interpreter: &str, file: &str) {
    let folder = Folder::create();
    let mut example = Example::start(interpreter, file, folder.path()).await;
    let address = example.address;
    let routes = format!(
        "gateway_secret = \"{SECRET}\"\n[[versions.v1.routes]]\npath = \"/orders\"\nbackend = \"{address}\"\n\
         account = \"required\"\n[[versions.v1.routes]]\npath = \"/shop/\"\nbackend = \"{address}\""
    );
    let stack = Stack::builder().gateway(&routes).start().await;
    let client = stack.client();
    let [ada, grace] = [
        log_in_by_redirect(&client, "ada").await,
        log_in_by_redirect(&client, "grace").await,
    ];
    let get = |login: &Value| client.get("/orders").authorization(credential(login));
    let order = |login: &Value, item: &str| {
        let order = client.post("/orders").param("item", item);
        order.authorization(credential(login))
    };
    for item in ["tea", "Käse & 茶"] {
        order(&ada, item).send().await.ok();
    }
    let orders = get(&ada).send().await.ok();
    let username = &ada["account"]["username"];
    let expected = json!({ "username": username, "orders": ["tea", "Käse & 茶"] });
    assert_eq!(orders, expected);
    assert_eq!(get(&grace).send().await.ok()["orders"], json!([]));
    client
        .get("/orders")
        .send()
        .await
        .problem(401, "authorization_missing");
    // The examples' own problems.
    for (call, status, code) in [
        (
            client
                .post("/orders")
                .signed()
                .authorization(credential(&ada)),
            400,
            "param_missing",
        ),
        (client.get("/shop/x"), 404, "not_found"),
        (client.get("/shop/healthz"), 404, "not_found"),
    ] {
        let response = call.send().await;
        assert_eq!(response.status, status, "{}", response.summary());
        assert_eq!(response.json()["code"], code);
        assert_eq!(
            response.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(
            response.json()["request_id"],
            response.header("x-request-id").unwrap()
        );
    }
    // As many headers, of as many bytes, as the gateway passes on; and the largest form.
    let large = (0..90).fold(get(&ada), |call, number| {
        call.header(&format!("X-Large-{number}"), &"x".repeat(300))
    });
    assert_eq!(large.send().await.ok(), expected);
    let form = order(&grace, &"x".repeat(60_000));
    form.send().await.ok();
    assert_requires_the_gateway(address).await;
    assert_ends_in_order(&mut example, get(&ada)).await;
}

/// An empty file has no secret to compare with.
#[test]
fn an_example_does_not_start_with_an_empty_secret() {
    let folder = Folder::create();
    for content in ["", " \n"] {
        let secret = folder.write("empty.secret", content);
        for (interpreter, file) in [("python3", "python/orders.py"), ("node", "node/orders.mjs")] {
            let output = Command::new(interpreter)
                .arg(root().join("backends/examples").join(file))
                .arg(free_address().to_string())
                .arg(&secret)
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let printed = output_text(&output);
            assert_eq!(output.status.code(), Some(1), "{file}: {printed}");
            assert!(
                printed.contains("empty.secret is empty"),
                "{file}: {printed}"
            );
        }
    }
}

/// Python's library leaves it to the program to check this header.
#[tokio::test]
async fn the_example_in_python_responds_whatever_the_length_is() {
    let folder = Folder::create();
    let mut example = Example::start("python3", "python/orders.py", folder.path()).await;
    let secret = format!("X-Gateway-Secret: {SECRET}");
    for length in ["-1", "+1", "1_0", "x", "", "65537", "99999999999999999999"] {
        let length = format!("Content-Length: {length}");
        for (lines, status) in [
            (vec![&*length], 403),
            (vec![&*length, &*secret, "X-Gateway-Account-Id: 1"], 400),
        ] {
            let mut connection = RawConnection::open(example.address).await;
            connection
                .send(&request("POST", "/orders", &lines, b""))
                .await;
            let responses = connection.responses_until_close().await;
            let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
            assert_eq!(statuses, [status], "{length}: {responses:?}");
            assert_eq!(responses[0].header("connection"), Some("close"), "{length}");
        }
    }
    // A client without the secret, whose body never comes, does not keep the program from ending.
    let mut connection = RawConnection::open(example.address).await;
    let lines = ["Content-Length: 65536"];
    connection
        .send(&request("POST", "/orders", &lines, b"x"))
        .await;
    assert_eq!(connection.response().await.unwrap().status, 403);
    example.terminate();
    let status = until("the example to exit", || {
        let status = example.status();
        async move { status }
    });
    assert!(status.await.success());
}

/// Without the secret, nothing but the health is answered.
async fn assert_requires_the_gateway(address: SocketAddr) {
    let account = ["X-Gateway-Account-Id: 1", "X-Gateway-Account-Username: ada"];
    let form = "Content-Type: application/x-www-form-urlencoded";
    let wrong = format!("X-Gateway-Secret: {}", SECRET.replace('8', "9"));
    for (method, target, secret, body) in [
        ("GET", "/orders", None, ""),
        ("GET", "/orders", Some("X-Gateway-Secret: "), ""),
        ("GET", "/orders", Some("X-Gateway-Secret: \u{e9}"), ""),
        ("POST", "/orders", Some(&*wrong), "item=x"),
        ("GET", "/nothing", Some(&wrong), ""),
    ] {
        let length = format!("Content-Length: {}", body.len());
        let mut lines = vec![form, &length];
        lines.extend(account);
        lines.extend(secret);
        let mut connection = RawConnection::open(address).await;
        connection
            .send(&request(method, target, &lines, body.as_bytes()))
            .await;
        let responses = connection.responses_until_close().await;
        let [response] = &responses[..] else {
            panic!("{responses:?}")
        };
        assert_eq!(response.status, 403);
        assert_eq!(response.header("x-gateway-refused"), Some("secret"));
        assert_eq!(response.header("connection"), Some("close"));
        assert_eq!(
            response.header("content-type"),
            Some("application/problem+json")
        );
        let body = String::from_utf8_lossy(&response.body);
        assert!(body.contains("\"gateway_required\""), "{body}");
    }
}

/// While it drains, health checks fail, requests are served on connections that close, and then it exits.
async fn assert_ends_in_order(example: &mut Example, call: Call<'_>) {
    let health = format!("http://{}/healthz", example.address);
    example.terminate();
    until("health checks to fail", || async {
        (fetch(&health).await.status == 503).then_some(())
    })
    .await;
    call.send().await.ok();
    let status = until("the example to exit", || {
        let status = example.status();
        async move { status }
    });
    assert!(status.await.success());
}

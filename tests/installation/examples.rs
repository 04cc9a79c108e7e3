//! The example backends, each by its framework: behind the gateway, and called without it. CONTRACT 9.

use std::{
    env,
    net::SocketAddr,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use end_to_end::{
    documents::root,
    folder::Folder,
    logins::{credential, log_in_by_redirect},
    port::free_address,
    raw_connection::{RawConnection, request},
    signed_client::{Call, SignedClient, fetch, http_client},
    stack::Stack,
    waiting::until,
};
use serde_json::{Value, json};

const SECRET: &str = "8b1a9953c4611296a827abf8c47804d7";
/// Valid, too, as during a rotation.
const NEXT_SECRET: &str = "1f3870be274f6c49b3e31a0c6728957f";

/// The examples; each has its name in its path.
const NAMES: [&str; 4] = ["flask", "django", "fastapi", "express"];

/// A running example. When dropped, it is killed.
struct Example {
    name: &'static str,
    address: SocketAddr,
    child: Child,
}

/// The command that starts an example as its documentation tells. `None` if `scripts/test` has reported that the frameworks
/// cannot be installed here.
fn command(name: &str, address: SocketAddr, folder: &Path) -> Option<Command> {
    if env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_some() {
        return None;
    }
    let frameworks = root().join("target/examples").canonicalize();
    let frameworks = frameworks.expect("run scripts/prerequisites examples");
    let (python, module) = (frameworks.join("python/bin"), format!("orders_{name}:app"));
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let mut command = match name {
        "express" => {
            // Modules are searched beside the program.
            let own: PathBuf = folder.join(format!("{}", address.port()));
            std::fs::create_dir_all(&own).unwrap();
            for file in ["gateway.mjs", "orders.mjs"] {
                std::fs::copy(
                    root().join("backends/examples/node").join(file),
                    own.join(file),
                )
                .unwrap();
            }
            symlink(
                frameworks.join("node/node_modules"),
                own.join("node_modules"),
            )
            .unwrap();
            let mut command = Command::new("node");
            command.current_dir(own).args(["orders.mjs", &host, &port]);
            command
        }
        "fastapi" => {
            let mut command = Command::new(python.join("uvicorn"));
            command.args(["--timeout-keep-alive", "120", "--host", &host]);
            command.args(["--port", &port, &module]);
            command
        }
        _ => {
            let mut command = Command::new(python.join("gunicorn"));
            command.args(["--bind", &address.to_string(), &module]);
            command
        }
    };
    if name != "express" {
        command
            .current_dir(root().join("backends/examples/python"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
    }
    command
        .env("GATEWAY_SECRET", SECRET)
        .env("GATEWAY_SECRET_NEXT", NEXT_SECRET)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Some(command)
}

impl Example {
    /// Starts an example, and waits until it is healthy.
    async fn start(name: &'static str, folder: &Path) -> Option<Self> {
        let address = free_address();
        let child = command(name, address, folder)?.spawn().unwrap();
        let mut example = Self {
            name,
            address,
            child,
        };
        until(&format!("{name} to be healthy"), || {
            assert!(
                example.child.try_wait().unwrap().is_none(),
                "{name} has exited"
            );
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
        Some(example)
    }

    fn path(&self) -> String {
        format!("/{}/orders", self.name)
    }

    /// Without a secret of the gateway, nothing but the health is answered.
    async fn assert_requires_the_gateway(&self) {
        let path = self.path();
        let account = ["X-Gateway-App-Id: 0", "X-Gateway-Account-Id: 1"];
        let username = "X-Gateway-Account-Username: Zo%C3%AB%25";
        let form = "Content-Type: application/x-www-form-urlencoded";
        let wrong = SECRET.replace('8', "9");
        for (method, path, secret, status) in [
            ("GET", &*path, None, 403),
            ("GET", &*path, Some(""), 403),
            ("GET", &*path, Some("\u{e9}"), 403),
            ("POST", &*path, Some(&*wrong), 403),
            ("GET", "/nothing", Some(&*wrong), 403),
            ("GET", "/nothing", Some(SECRET), 404),
            ("GET", &*path, Some(SECRET), 200),
            ("POST", &*path, Some(NEXT_SECRET), 200),
        ] {
            let body = if method == "POST" { "item=x" } else { "" };
            let length = format!("Content-Length: {}", body.len());
            let secret = secret.map(|secret| format!("X-Gateway-Secret: {secret}"));
            let mut lines = vec![form, &length, "X-Gateway-Version: v1", username];
            lines.extend(account);
            lines.extend(secret.as_deref());
            let mut connection = RawConnection::open(self.address).await;
            connection
                .send(&request(method, path, &lines, body.as_bytes()))
                .await;
            let response = connection.response().await.unwrap();
            let body = String::from_utf8_lossy(&response.body);
            let context = format!("{} {method} {path} {secret:?}: {body}", self.name);
            assert_eq!(response.status, status, "{context}");
            if status == 403 {
                assert_eq!(response.header("x-gateway-refused"), Some("secret"));
                let media_type = response.header("content-type").unwrap();
                assert!(
                    media_type.starts_with("application/problem+json"),
                    "{context}"
                );
                assert!(body.contains("\"gateway_required\""), "{context}");
            } else if status == 200 {
                let found: Value = serde_json::from_str(&body).unwrap();
                assert_eq!(found["username"], "Zoë%", "{context}");
            }
        }
        // A callback has no application, and a request of a client can have the path of the health check.
        let secret = format!("X-Gateway-Secret: {SECRET}");
        for line in ["X-Gateway-Version: v1", "X-Gateway-App-Id: 0"] {
            let lines = [&*secret, "X-Gateway-Version: v1", line];
            let mut connection = RawConnection::open(self.address).await;
            connection
                .send(&request("GET", "/healthz", &lines, b""))
                .await;
            assert_eq!(connection.response().await.unwrap().status, 404, "{line}");
        }
    }

    /// Each user has orders of their own, whatever a client claims.
    async fn assert_serves(&self, client: &SignedClient, users: &[Value; 2]) {
        let [ada, zoe] = users;
        let path = self.path();
        let get = |login: &Value| client.get(&path).authorization(credential(login));
        let order = |login: &Value, item: &str| {
            let order = client.post(&path).param("item", item);
            order.authorization(credential(login))
        };
        for item in ["tea", "Käse & 茶"] {
            found(order(ada, item)).await;
        }
        let expected = json!({
            "username": ada["account"]["username"],
            "application": "0",
            "orders": ["tea", "Käse & 茶"],
        });
        assert_eq!(found(get(ada)).await, expected, "{}", self.name);
        let other = found(get(zoe)).await;
        assert_eq!(other["username"], zoe["account"]["username"]);
        assert_eq!(other["orders"], json!([]), "{}", self.name);
        let forged = get(zoe)
            .header("X-Gateway-Account-Id", "1")
            .header("X-Gateway-Account-Username", "ada")
            .header("X-Gateway-App-Id", "7")
            .header("X_Gateway_Account_Id", "1");
        assert_eq!(found(forged).await, other, "{}", self.name);
        let without = client.get(&path).header("X-Gateway-Account-Id", "1");
        without.send().await.problem(401, "authorization_missing");
        // As many headers, of as many bytes, as the gateway passes on; and the largest form.
        let large = (0..90).fold(get(ada), |call, number| {
            call.header(&format!("X-Large-{number}"), &"x".repeat(300))
        });
        assert_eq!(found(large).await, expected, "{}", self.name);
        found(order(zoe, &"x".repeat(60_000))).await;
        // An unsigned request without a user has a route that does not require one.
        let public = client.get(&format!("/public{path}")).send().await;
        assert_eq!(public.status, 404, "{}", self.name);
    }
}

/// The JSON of a response with 200.
async fn found(call: Call<'_>) -> Value {
    let response = call.send().await;
    assert_eq!(response.status, 200, "{}", response.summary());
    response.json()
}

impl Drop for Example {
    fn drop(&mut self) {
        // It may have exited. gunicorn ends its workers by SIGTERM only.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn the_examples_serve_the_accounts_that_the_gateway_has_checked() {
    let folder = Folder::create();
    let mut examples = Vec::new();
    let mut gateway = format!("gateway_secret = \"{SECRET}\"\n");
    for name in NAMES {
        let Some(example) = Example::start(name, folder.path()).await else {
            return;
        };
        let (path, address) = (example.path(), example.address);
        for (path, account) in [
            (path.clone(), "required"),
            (format!("/public{path}"), "optional"),
        ] {
            gateway += &format!(
                "[[versions.v1.routes]]\npath = \"{path}\"\nbackend = \"{address}\"\naccount = \"{account}\"\n"
            );
        }
        examples.push(example);
    }
    let stack = Stack::builder().gateway(&gateway).start().await;
    let client = stack.client();
    let users = [
        log_in_by_redirect(&client, "ada").await,
        log_in_by_redirect(&client, "any:Zoë 茶").await,
    ];
    for example in &examples {
        example.assert_serves(&client, &users).await;
        example.assert_requires_the_gateway().await;
        let health = fetch(&format!("http://{}/healthz", example.address)).await;
        assert_eq!(health.status, 200, "{}", example.name);
    }
}

/// With no secret to compare with, anybody could call.
#[tokio::test]
async fn an_example_does_not_start_without_a_secret() {
    let folder = Folder::create();
    for name in NAMES {
        let Some(mut command) = command(name, free_address(), folder.path()) else {
            return;
        };
        let output = command
            .env("GATEWAY_SECRET", "")
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name}: {printed}");
        assert!(
            printed.contains("GATEWAY_SECRET is empty"),
            "{name}: {printed}"
        );
    }
}

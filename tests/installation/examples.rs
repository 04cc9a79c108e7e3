//! The example backends, each by its framework: behind the gateway, and called without it. CONTRACT 9.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use end_to_end::{
    documents::root,
    folder::Folder,
    framework::{self, Server},
    logins::{credential, log_in_by_redirect},
    port::free_address,
    program::{Program, output_text},
    raw_connection::{RawConnection, request},
    signed_client::{Call, SignedClient, fetch, http_client},
    stack::Stack,
    waiting::until,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The first secret of an example is its name with this, the next one with [`NEXT`].
const FIRST: &str = "-8b1a9953c4611296a827abf8c47804d7";
const NEXT: &str = "-1f3870be274f6c49b3e31a0c6728957f";

/// The examples; each has its name in its path.
const NAMES: [&str; 4] = ["flask", "django", "fastapi", "express"];

/// A running example. When dropped, it is ended.
struct Example {
    name: &'static str,
    address: SocketAddr,
    /// The file with its valid secrets.
    secrets: PathBuf,
    _server: Server,
}

impl Example {
    /// Starts an example with its first secret, and waits until it is healthy.
    async fn start(name: &'static str, folder: &Path) -> Option<Self> {
        let (address, secrets) = (free_address(), folder.join(format!("{name}.secrets")));
        write_secrets(&secrets, &[&format!("{name}{FIRST}")]);
        let mut command = framework::example("orders", name, address, folder)?;
        command.env("GATEWAY_SECRETS", &secrets);
        Some(Self {
            name,
            address,
            secrets,
            _server: Server::start(command, address, "/healthz").await,
        })
    }

    fn path(&self) -> String {
        format!("/{}/orders", self.name)
    }

    fn secret(&self, which: &str) -> String {
        format!("{}{which}", self.name)
    }

    /// A route to it, with its secret from a file.
    fn route(&self, path: &str, account: &str, secret: &Path) -> String {
        let (address, secret) = (self.address, secret.display());
        format!(
            "[[versions.v1.routes]]\npath = \"{path}\"\nbackend = \"{address}\"\naccount = \"{account}\"\n\
             gateway_secret = \"file:{secret}\"\nunsigned = \"reject\"\n"
        )
    }

    /// The status of a request that is sent to it directly.
    async fn status(&self, secret: &str) -> u16 {
        let url = format!("http://{}{}", self.address, self.path());
        let call = http_client().get(url).header("X-Gateway-Secret", secret);
        let call = call.header("X-Gateway-App-Id", "0");
        let call = call.header("X-Gateway-Account-Id", "1");
        call.send().await.unwrap().status().as_u16()
    }

    /// Without a secret of the gateway, nothing but the health is answered.
    async fn assert_requires_the_gateway(&self) {
        let path = self.path();
        let account = ["X-Gateway-App-Id: 0", "X-Gateway-Account-Id: 1"];
        let username = "X-Gateway-Account-Username: Zo%C3%AB%25";
        let name = "X-Gateway-Account-Name: Zo%C3%AB%20Q";
        let form = "Content-Type: application/x-www-form-urlencoded";
        let [first, next] = [FIRST, NEXT].map(|which| self.secret(which));
        let wrong = first.replace('8', "9");
        write_secrets(&self.secrets, &[&first, &next]);
        let invalid = if self.name == "fastapi" { 422 } else { 400 };
        for (method, path, secret, body, status) in [
            ("GET", &*path, None, "", 403),
            ("GET", &*path, Some(""), "", 403),
            ("GET", &*path, Some("\u{e9}"), "", 403),
            ("POST", &*path, Some(&*wrong), "item=x", 403),
            ("GET", "/nothing", Some(&*wrong), "", 403),
            ("GET", "/nothing", Some(&*first), "", 404),
            ("GET", &*path, Some(&*first), "", 200),
            ("POST", &*path, Some(&*next), "item=x", 200),
            ("POST", &*path, Some(&*first), "", invalid),
            ("POST", &*path, Some(&*first), "other=x", invalid),
        ] {
            let length = format!("Content-Length: {}", body.len());
            let secret = secret.map(|secret| format!("X-Gateway-Secret: {secret}"));
            let mut lines = vec![form, &length, "X-Gateway-Version: v1", username, name];
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
                assert_eq!(found["name"], "Zoë Q", "{context}");
            }
        }
        // A callback has no application, and a request of a client can have the path of the health check.
        let secret = format!("X-Gateway-Secret: {first}");
        for line in ["X-Gateway-Version: v1", "X-Gateway-App-Id: 0"] {
            let lines = [&*secret, "X-Gateway-Version: v1", line];
            let mut connection = RawConnection::open(self.address).await;
            connection
                .send(&request("GET", "/healthz", &lines, b""))
                .await;
            assert_eq!(connection.response().await.unwrap().status, 404, "{line}");
        }
    }

    /// Each user has orders of their own; headers of a client have no effect.
    async fn assert_serves(&self, client: &SignedClient, users: &[Value; 2]) {
        let [ada, zoe] = users;
        let path = self.path();
        let get = |login: &Value| {
            let get = client.get(&path).header("X-Forwarded-For", "203.0.113.9");
            let get = get.header("X-Forwarded-Proto", "https").signed();
            get.authorization(credential(login))
        };
        let order = |login: &Value, item: &str| {
            let order = client.post(&path).param("item", item);
            order.authorization(credential(login))
        };
        for item in ["tea", "Käse & 茶"] {
            found(order(ada, item)).await;
        }
        let expected = json!({
            "username": ada["account"]["username"],
            "name": null,
            "application": "0",
            "client": { "address": "203.0.113.9", "scheme": "https" },
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
        let unsigned = client.get(&path).authorization(credential(ada));
        unsigned.send().await.problem(403, "sign_missing");
        let without = client.get(&path).signed();
        let without = without.header("X-Gateway-Account-Id", "1");
        without.send().await.problem(401, "authorization_missing");
        // As many headers, of as many bytes, as the gateway passes on; and the largest form.
        let large = (0..90).fold(get(ada), |call, number| {
            call.header(&format!("X-Large-{number}"), &"x".repeat(300))
        });
        assert_eq!(found(large).await, expected, "{}", self.name);
        found(order(zoe, &"x".repeat(60_000))).await;
        // A request without a user has a route that does not require one.
        let public = client.get(&format!("/public{path}"));
        let public = public.signed().send().await;
        assert_eq!(public.status, 404, "{}", self.name);
    }
}

/// Replaces the file at once, as its documentation tells.
fn write_secrets(file: &Path, secrets: &[&str]) {
    let new = file.with_extension("new");
    fs::write(&new, secrets.join("\n") + "\n").unwrap();
    fs::rename(new, file).unwrap();
}

/// All examples, each with its first secret.
async fn start_all(folder: &Path) -> Option<Vec<Example>> {
    let mut examples = Vec::new();
    for name in NAMES {
        examples.push(Example::start(name, folder).await?);
    }
    Some(examples)
}

/// The JSON of a response with 200.
async fn found(call: Call<'_>) -> Value {
    let response = call.send().await;
    assert_eq!(response.status, 200, "{}", response.summary());
    response.json()
}

#[tokio::test]
async fn the_examples_serve_the_accounts_that_the_gateway_has_checked() {
    let folder = Folder::create();
    let Some(examples) = start_all(folder.path()).await else {
        return;
    };
    let mut gateway = "trusted_proxies = [\"127.0.0.1\"]\n".to_owned();
    for example in &examples {
        let path = example.path();
        gateway += &example.route(&path, "required", &example.secrets);
        gateway += &example.route(&format!("/public{path}"), "optional", &example.secrets);
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

/// Without a secret, an example would accept every caller.
#[tokio::test]
async fn an_example_does_not_start_without_a_secret() {
    let folder = Folder::create();
    let (absent, empty) = (folder.path().join("absent"), folder.write("empty", "\n \n"));
    for name in NAMES {
        for secrets in [Path::new(""), &absent, &empty] {
            let command = framework::example("orders", name, free_address(), folder.path());
            let Some(mut command) = command else {
                return;
            };
            command.env("GATEWAY_SECRETS", secrets);
            let output = command.stdin(Stdio::null()).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{name}: {printed}");
            let expected = "GATEWAY_SECRETS must name a file";
            assert!(printed.contains(expected), "{name}: {printed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_secrets_are_replaced_under_load_without_a_failed_request() {
    let folder = Folder::create();
    let Some(examples) = start_all(folder.path()).await else {
        return;
    };
    let set = |which: &str| {
        for example in &examples {
            let file = folder.path().join(format!("{}.gateway", example.name));
            write_secrets(&file, &[&example.secret(which)]);
        }
    };
    let accept = |which: &[&str]| {
        for example in &examples {
            let secrets: Vec<_> = which.iter().map(|which| example.secret(which)).collect();
            let secrets: Vec<_> = secrets.iter().map(String::as_str).collect();
            write_secrets(&example.secrets, &secrets);
        }
    };
    set(FIRST);
    let routes = examples.iter().map(|example| {
        let secret = folder.path().join(format!("{}.gateway", example.name));
        example.route(&example.path(), "required", &secret)
    });
    let stack = Stack::builder().gateway(&routes.collect::<String>());
    let stack = stack.start().await;
    let ada = log_in_by_redirect(&stack.client(), "ada").await;
    let is_stopping = Arc::new(AtomicBool::new(false));
    let rounds: [_; 4] = std::array::from_fn(|_| Arc::new(AtomicUsize::new(0)));
    let mut clients = JoinSet::new();
    for rounds in rounds.clone() {
        let (client, credential) = (stack.client(), credential(&ada).to_owned());
        let is_stopping = Arc::clone(&is_stopping);
        clients.spawn(async move {
            while !is_stopping.load(Ordering::Relaxed) {
                for path in NAMES.map(|name| format!("/{name}/orders")) {
                    let get = client.get(&path).signed();
                    found(get.authorization(&credential)).await;
                    let order = client.post(&path).param("item", "tea");
                    found(order.authorization(&credential)).await;
                }
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    // Every client has then finished what it had begun before, and has called all examples.
    let serve = async || {
        let goals = rounds
            .clone()
            .map(|rounds| (rounds.load(Ordering::Relaxed) + 3, rounds));
        until("every client to be served", async || {
            let is_reached = |(goal, rounds): &(usize, Arc<AtomicUsize>)| {
                rounds.load(Ordering::Relaxed) >= *goal
            };
            goals.iter().all(is_reached).then_some(())
        })
        .await;
    };
    serve().await;
    accept(&[FIRST, NEXT]);
    serve().await;
    set(NEXT);
    let output = stack.reload(Program::Gateway);
    assert!(output.status.success(), "{}", output_text(&output));
    serve().await;
    accept(&[NEXT]);
    serve().await;
    for example in &examples {
        assert_eq!(example.status(&example.secret(FIRST)).await, 403);
        assert_eq!(example.status(&example.secret(NEXT)).await, 200);
    }
    // A mistake in the file changes nothing.
    accept(&[]);
    serve().await;
    for example in &examples {
        fs::remove_file(&example.secrets).unwrap();
    }
    serve().await;
    is_stopping.store(true, Ordering::Relaxed);
    clients.join_all().await;
}

/// A WSGI application cannot close the connection. It reads what the gateway sends at most, and of a stranger no more.
#[test]
fn a_rejected_body_is_read_to_its_end() {
    const READ: &str = "
import io, gateway
for length in ['', '0', '7', '65536', '65537', '-1']:
    body, statuses = io.BytesIO(b'x' * 70000), []
    gateway.Wsgi(None)({'CONTENT_LENGTH': length, 'wsgi.input': body}, lambda status, headers: statuses.append(status))
    print(*statuses, body.tell())
";
    let Some(frameworks) = framework::frameworks() else {
        return;
    };
    let folder = Folder::create();
    let examples = root().join("backends/examples/python");
    let mut command = framework::python(&frameworks, "python3", &examples);
    command
        .args(["-c", READ])
        .env("GATEWAY_SECRETS", folder.write("secrets", FIRST));
    let output = command.output().unwrap();
    let expected = [0, 0, 7, 65_536, 0, 0].map(|read| format!("403 Gateway {read}\n"));
    assert_eq!(output_text(&output), expected.concat(),);
}

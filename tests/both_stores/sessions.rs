//! Credentials: what they authorize, and how logout invalidates them. Also health checks of both programs. CONTRACT 8.

use std::time::Duration;

use end_to_end::{
    clock::now_ms,
    logins::{credential, log_in_by_polling, log_in_by_redirect, rejection_of},
    program::Program,
    raw_connection::{RawConnection, request},
    response::Response,
    signed_client::{fetch, http_client},
    stack::Stack,
    waiting::until,
};

#[tokio::test]
async fn logout_invalidates_the_credential_everywhere() {
    let stack = Stack::start().await;
    let client = stack.client();
    let login = log_in_by_polling(&client, "ada").await;
    let other = log_in_by_redirect(&client, "ada").await;
    let credential_ = credential(&login);
    // Both versions have it cached now.
    for version in ["v1", "v2"] {
        client
            .get("/user")
            .version(version)
            .authorization(credential_)
            .send()
            .await
            .ok();
    }
    let response = client
        .post("/user/logout")
        .authorization(credential_)
        .send()
        .await
        .ok();
    assert_eq!(response, serde_json::json!({}));
    client
        .get("/user")
        .authorization(credential_)
        .send()
        .await
        .problem(401, "authorization_invalid");
    until("v2 to reject it", || async {
        let call = client.get("/user").version("v2").authorization(credential_);
        (call.send().await.status == 401).then_some(())
    })
    .await;
    let again = client
        .post("/user/logout")
        .authorization(credential_)
        .send()
        .await;
    again.problem(401, "authorization_invalid");
    // The same person's other login stays valid.
    client
        .get("/user")
        .authorization(credential(&other))
        .send()
        .await
        .ok();
}

#[tokio::test]
async fn a_credential_is_required_and_must_be_valid() {
    let stack = Stack::start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let right = credential(&login);
    assert_eq!(right.len(), 43, "256 bits in base64url");
    client
        .get("/user")
        .send()
        .await
        .problem(401, "authorization_missing");
    client
        .post("/user/logout")
        .send()
        .await
        .problem(401, "authorization_missing");
    let event = client.post("/event/send").param("event", "x");
    event.send().await.problem(401, "authorization_missing");
    client
        .get("/user")
        .authorization(&format!("Bearer {right}"))
        .send()
        .await
        .ok();
    for wrong in [
        "x",
        &right[1..],
        &format!("{right}A"),
        &format!("Basic {right}"),
        &right.to_lowercase(),
    ] {
        let response = client.get("/user").authorization(wrong).send().await;
        let problem = response.problem(401, rejection_of(wrong));
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("Acme-X-Authorization"), "{detail}");
    }
    // The gateway does not read the standard `Authorization` header.
    let usual = client
        .get("/user")
        .header("Authorization", &format!("Bearer {right}"))
        .send()
        .await;
    usual.problem(401, "authorization_missing");
}

#[tokio::test]
async fn an_event_is_stored_with_the_account() {
    let stack = Stack::start().await;
    let client = stack.client();
    let login = log_in_by_redirect(&client, "ada").await;
    let send = |event: &str| {
        client
            .post("/event/send")
            .param("event", event)
            .authorization(credential(&login))
    };
    let before = now_ms();
    let sent = send("page.open")
        .param("data", "{\"page\":\"首页\"}")
        .send()
        .await
        .ok();
    assert_eq!(sent["event"], "page.open");
    let received_at = sent["received_at"].as_i64().unwrap();
    assert!((before - 1000..=now_ms()).contains(&received_at), "{sent}");
    assert!(!sent["id"].is_null());
    let second = send("a").send().await.ok();
    assert_ne!(second["id"], sent["id"]);
    send(&"a".repeat(64))
        .param("data", &"d".repeat(4096))
        .send()
        .await
        .ok();

    for wrong in ["", "A", "a b", "ä", "a-b", &"a".repeat(65)] {
        let response = send(wrong).send().await;
        let code = if wrong.is_empty() {
            ["param_missing", "param_invalid"]
        } else {
            ["param_invalid"; 2]
        };
        let problem = response.json();
        assert!(
            code.contains(&problem["code"].as_str().unwrap()),
            "{wrong}: {problem}"
        );
    }
    send("a")
        .param("data", &"d".repeat(4097))
        .send()
        .await
        .problem(400, "param_invalid");
    client
        .post("/event/send")
        .signed()
        .authorization(credential(&login))
        .send()
        .await
        .problem(400, "param_missing");
    let unsigned = client
        .post("/event/send")
        .param("event", "a")
        .authorization(credential(&login));
    unsigned
        .unsigned()
        .send()
        .await
        .problem(403, "time_missing");

    let events = stack.store().query("SELECT count(*) FROM events");
    assert_eq!(events.number(), 3);
}

#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let stack = Stack::start().await;
    let client = stack.client();
    for path in ["/", "/nope", "/user/", "/USER", "/user/login/x", "/%75ser"] {
        client.get(path).send().await.problem(404, "not_found");
    }
    client
        .post("/user")
        .send()
        .await
        .problem(405, "method_not_allowed");
    client
        .get("/user/logout")
        .send()
        .await
        .problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_backend_with_a_gateway_secret_serves_only_the_gateway() {
    let secret = "gateway_secret = \"between-us-4283fefc63f0cd0e\"";
    let stack = Stack::builder()
        .gateway(secret)
        .backends(secret)
        .start()
        .await;
    log_in_by_redirect(&stack.client(), "ada").await;
    let direct = |secret: Option<&str>| {
        let url = format!("http://{}/user", stack.addresses().v1);
        let request = http_client().get(url);
        match secret {
            Some(secret) => request.header("X-Gateway-Secret", secret),
            None => request,
        }
    };
    for wrong in [
        None,
        Some(""),
        Some("between-us-4283fefc63f0cd0"),
        Some("between-us-4283fefc63f0cd0e ."),
        Some("BETWEEN-US-4283FEFC63F0CD0E"),
    ] {
        let response = direct(wrong).send().await.unwrap();
        Response::read(response)
            .await
            .problem(403, "gateway_required");
    }
    // Health checks need no secret.
    let readyz = format!("http://{}/readyz", stack.addresses().v1);
    until("it to be ready", || async {
        (fetch(&readyz).await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn health_is_served_on_the_management_address() {
    let mut stack = Stack::start().await;
    let management = stack.addresses().management;
    // As HAProxy's `httpchk HEAD` and others ask: on the login service's own listener, too.
    for address in [management, stack.addresses().v1] {
        for path in ["/healthz", "/readyz"] {
            let url = format!("http://{address}{path}");
            // 503, if the store does not answer in time.
            let (whole, head) = until("both to succeed", || async {
                let whole = fetch(&url).await;
                let head = http_client().head(&url).send().await.unwrap();
                (whole.status == 200 && head.status() == 200).then_some((whole, head))
            })
            .await;
            let length = head.headers()["content-length"].to_str().unwrap();
            assert_eq!(length, whole.body.len().to_string(), "{url}");
            assert_eq!(head.bytes().await.unwrap().len(), 0, "{url}");
            let post = http_client().post(&url).send().await.unwrap();
            assert_eq!(post.status(), 405, "{url}");
            assert_eq!(post.headers()["allow"], "GET, HEAD", "{url}");
            let text = post.text().await.unwrap();
            assert!(text.contains("only GET, HEAD"), "{url}: {text}");
        }
    }
    let metrics = http_client().head(format!("http://{management}/metrics"));
    assert_eq!(metrics.send().await.unwrap().status(), 200);
    let other = fetch(&format!("http://{management}/user")).await;
    assert_eq!(other.status, 404);
    stack.running(Program::Gateway).terminate();
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
}

#[tokio::test]
async fn a_backends_health_is_hidden_from_the_gateways_clients() {
    let stack = Stack::start().await;
    for path in ["/healthz", "/readyz"] {
        let response = stack.client().get(path).send().await;
        response.problem(404, "not_found");
    }
}

/// The gateway pools its connections to a backend, and does not retry a POST that finds one closed.
#[tokio::test]
async fn a_response_before_a_late_body_announces_the_close() {
    let stack = Stack::start().await;
    let internal = [
        "X-Gateway-App-Id: 0",
        "X-Gateway-Version: v1",
        "X-Gateway-Version-Source: default",
        "X-Request-Id: late",
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 7",
    ];
    for path in ["/event/send", "/user/logout", "/user", "/nope"] {
        let mut connection = RawConnection::open(stack.addresses().v1).await;
        connection
            .send(&request("POST", path, &internal, b""))
            .await;
        let is_early = connection
            .has_activity_within(Duration::from_millis(300))
            .await;
        if !is_early {
            connection.send(b"event=x").await;
        }
        let response = connection.response().await.unwrap();
        let announces_end = response.header("connection") == Some("close");
        assert!(
            !is_early || announces_end,
            "{path} was answered before its body, without `Connection: close`: {}",
            response.head
        );
    }
}

#[tokio::test]
async fn management_responds_under_addresses_localhost_and_configured_names_only() {
    let named = |name: &str| format!("[management]\nlisten = '$MANAGEMENT'\nhosts = ['{name}']\n");
    let builder = Stack::builder().gateway(&named("gateway-a"));
    let stack = builder.program(Program::V1, &named("v1-a")).start().await;
    for (program, name) in [(Program::Gateway, "gateway-a"), (Program::V1, "v1-a")] {
        let management = stack.addresses().management_of(program);
        let status = async |path: &str, host: &str| {
            let call = http_client().get(format!("http://{management}{path}"));
            let response = call.header("host", host).send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        };
        for path in ["/healthz", "/readyz", "/metrics"] {
            for host in [&*management.to_string(), "localhost", name, "10.0.0.1:80"] {
                let (status, text) = status(path, host).await;
                // The store may not answer in time.
                let is_unready = path == "/readyz" && status == 503;
                assert!(
                    status == 200 || is_unready,
                    "{program} {path} {host}: {text}"
                );
            }
            for host in ["attacker.example", "localhost.attacker.example:8081"] {
                let (status, text) = status(path, host).await;
                assert_eq!(status, 421, "{program} {path} {host}");
                assert!(text.contains("management.hosts"), "{text}");
            }
        }
    }
}

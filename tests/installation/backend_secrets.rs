//! Each backend has a secret of its own, which is replaced without a failed request. CONTRACT 9.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use end_to_end::{
    program::{Program, output_text},
    recording_backend::RecordingBackend,
    response::Response,
    signed_client::http_client,
    stack::Stack,
    waiting::until,
};
use tokio::task::JoinSet;

const OF_V1: &str = "4283fefc63f0cd0e873a0000c6d07ef7";
const OF_V2: &str = "b77e90d3593ad699fc1f7cd5bb2e35cb";
const OF_ORDERS: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
const NEXT: &str = "8b1a9953c4611296a827abf8c47804d7";

fn secret(secret: &str) -> String {
    format!("gateway_secret = '{secret}'\n")
}

fn reload(stack: &Stack, program: Program, toml: &str) {
    stack.configure(program, toml);
    let output = stack.reload(program);
    assert!(output.status.success(), "{}", output_text(&output));
}

#[tokio::test]
async fn each_backend_gets_its_secret_and_no_other() {
    let orders = RecordingBackend::start().await;
    let gateway = format!(
        "[versions.v1]\n{}[versions.v2]\n{}[[routes]]\npath = '/orders'\nbackend = '{}'\n{}",
        secret(OF_V1),
        secret(OF_V2),
        orders.address(),
        secret(OF_ORDERS),
    );
    let stack = Stack::builder()
        .gateway(&gateway)
        .program(Program::V1, &secret(OF_V1))
        .program(Program::V2, &secret(OF_V2))
        .start()
        .await;
    let client = stack.client();
    for version in ["v1", "v2"] {
        let begun = client.post("/login").version(version).signed().send().await;
        begun.ok();
        client.get("/orders").version(version).send().await.ok();
    }
    for request in orders.requests() {
        assert_eq!(request.value("x-gateway-secret"), Some(OF_ORDERS));
    }
    // The secret of another backend is not valid here.
    for (held, is_accepted) in [(OF_V1, true), (OF_V2, false), (OF_ORDERS, false)] {
        let url = format!("http://{}/user", stack.addresses().v1);
        let request = http_client().get(url).header("X-Gateway-Secret", held);
        let response = request
            .header("X-Gateway-App-Id", "0")
            .send()
            .await
            .unwrap();
        let response = Response::read(response).await;
        if is_accepted {
            response.problem(401, "authorization_missing");
        } else {
            response.problem(403, "gateway_required");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_replaced_under_load_without_a_failed_request() {
    let of_v1 = |secret: &str| format!("[versions.v1]\ngateway_secret = '{secret}'\n");
    let stack = Stack::builder()
        .gateway(&of_v1(OF_V1))
        .program(Program::V1, &secret(OF_V1))
        .start()
        .await;
    let is_stopping = Arc::new(AtomicBool::new(false));
    let served = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        let (is_stopping, served) = (Arc::clone(&is_stopping), Arc::clone(&served));
        let client = stack.client();
        clients.spawn(async move {
            while !is_stopping.load(Ordering::Relaxed) {
                // The login service answers this after it has compared the secret.
                let response = client.get("/user").version("v1").send().await;
                response.problem(401, "authorization_missing");
                served.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let serve = async || {
        let goal = served.load(Ordering::Relaxed) + 50;
        until("requests to be served", async || {
            (served.load(Ordering::Relaxed) >= goal).then_some(())
        })
        .await;
    };
    serve().await;
    let next = format!("gateway_secret_next = '{NEXT}'\n");
    for (program, toml) in [(Program::V1, next), (Program::Gateway, of_v1(NEXT))] {
        reload(&stack, program, &toml);
        serve().await;
    }
    let mut text = stack.config_with(Program::V1, &secret(NEXT));
    let next = text.find("gateway_secret_next").unwrap();
    text.insert_str(next, "# ");
    fs::write(stack.config(Program::V1), text).unwrap();
    reload(&stack, Program::V1, "");
    serve().await;
    is_stopping.store(true, Ordering::Relaxed);
    clients.join_all().await;
    // The old one is not valid any more.
    reload(&stack, Program::Gateway, &of_v1(OF_V1));
    let rejected = stack.client().get("/user").version("v1").send().await;
    rejected.problem(502, "backend_unreachable");
    let log = stack
        .log_with(Program::Gateway, "rejects this gateway")
        .await;
    assert!(!log.contains(OF_V1) && !log.contains(NEXT), "{log}");
}

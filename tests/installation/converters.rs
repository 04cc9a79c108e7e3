//! A version is retired: by steps where they suffice, by a converter elsewhere; proven by copies, then switched.
//! conf/guides/bridges.md.

use std::{fs, net::SocketAddr, process::Command};

use end_to_end::{
    documents::root,
    framework::Server,
    metrics::Scrape,
    port::free_address,
    program::{Program, output_text},
    signed_client::SignedClient,
    stack::Stack,
    waiting::until,
};
use reqwest::Method;
use serde_json::{Value, json};
use toml::Table;

/// v1 of the shop, whose orders a converter changes, and whose customers steps do.
fn file(v1: &Server, v2: &Server, converter: &Server) -> String {
    format!(
        r#"
        [sign]
        carrier = "both"
        [versions.v3]
        backend = "{}"
        bodies = "json"
        [versions.v1]
        backend = "{}"
        bodies = "json"
        [versions.v1.shadow]
        to = "v3"
        percent = 100.0
        noise_percent = 0
        paths = ["/orders", "/orders/", "/customer"]
        post_paths = ["/orders"]
        headers = ["X-Shop"]
        [[versions.v1.changes]]
        name = "customer"
        method = "GET"
        paths = ["/customer"]
        request = [{{ path = "/customer", to = "/customers/{{id}}" }}, {{ set_header = "X-Level", value = "2" }}]
        response = [
            {{ to_number = "$.id" }},
            {{ rename = "$.display_name", to = "name" }},
            {{ move = "$.address.street", to = "$.street" }},
            {{ move = "$.address.city", to = "$.city" }},
            {{ remove = "$.address" }},
            {{ map = "$.level", values = ["GOLD=gold"], else = "keep" }},
            {{ remove_null = "$.phone" }},
            {{ rename = "$.tags", to = "tag" }},
            {{ unwrap = "$.tag", in = "[0]" }},
            {{ set_header = "X-Shop", value = "v1" }},
        ]
        [[versions.v1.changes]]
        name = "shop"
        paths = ["/orders", "/orders/**"]
        response = [{{ set_header = "X-Shop", value = "v1" }}]
        status = ["2xx", "404"]
        [[versions.v1.changes]]
        name = "orders"
        paths = ["/orders", "/orders/**"]
        status = ["2xx", "404"]
        converter = "{}"
        "#,
        v2.address, v1.address, converter.address
    )
}

async fn start(program: &str, script: &str, before: &[&str], address: SocketAddr) -> Server {
    let mut command = Command::new(program);
    command.arg(root().join(script)).args(before);
    command.args([address.ip().to_string(), address.port().to_string()]);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Server::start(command, address, "/").await
}

/// All that v1's clients do, and what they get, with the header of the shop.
async fn use_v1(client: &SignedClient) -> Vec<(u16, Option<String>, Value)> {
    let order =
        json!({ "customer": "Lin Ada", "date": "24.12.2027", "total": "19.99", "tags": "a,b" });
    let mut all = Vec::new();
    for call in [
        client.get("/orders").signed(),
        client.get("/orders").query("page", "3"),
        client.get("/orders/5").signed(),
        client.get("/orders/99").signed(),
        client.call(Method::POST, "/orders").json(&order),
        client.get("/customer").query("id", "7"),
    ] {
        let response = call.version("v1").send().await;
        let shop = response.header("x-shop").map(str::to_owned);
        assert_eq!(response.header("content-type"), Some("application/json"));
        all.push((response.status.as_u16(), shop, response.json()));
    }
    all
}

async fn is_proven_and_switched(program: &str, script: &str) {
    let shop = "tests/installation/converters/shop.py";
    let v1 = start("python3", shop, &["v1"], free_address()).await;
    let v2 = start("python3", shop, &["v2"], free_address()).await;
    let converter = start(program, script, &[], free_address()).await;
    let builder = Stack::builder().in_front_of_address(v2.address).multi();
    let stack = builder.gateway(&file(&v1, &v2, &converter)).start().await;
    let client = stack.client_of(&stack.create_application("Shop", &[]));
    let before = use_v1(&client).await;
    assert_eq!(before[1].2["orders"][0]["total"], "7.05");
    assert_eq!(before[2].2["items"][0]["name"], "pen");
    assert_eq!((before[3].0, before[4].0), (404, 201));
    assert_eq!(before[5].2["tag"], "new");
    until("all copies to be equal", || async {
        let scrape = Scrape::of(stack.addresses().management).await;
        let of = |result: &str| scrape.sum("signpost_shadow_copies_total", &[("result", result)]);
        let others = of("different") + of("failed") + of("skipped");
        if others > 0.0 {
            let output = stack.command(&["bridge", "check", "v1"]);
            let log = stack.log(Program::Gateway);
            panic!("{}\n{log}", output_text(&output));
        }
        (of("equal") == 6.0).then_some(())
    })
    .await;
    until("the proof", || async {
        let output = stack.command(&["bridge", "check", "v1"]);
        output.status.success().then_some(())
    })
    .await;
    let config = stack.config(Program::Gateway);
    let mut table: Table = fs::read_to_string(&config).unwrap().parse().unwrap();
    let of_v1 = table["versions"]["v1"].as_table_mut().unwrap();
    of_v1.remove("backend").unwrap();
    of_v1.remove("shadow").unwrap();
    of_v1.insert("bridge".to_owned(), "v3".into());
    fs::write(&config, toml::to_string(&table).unwrap()).unwrap();
    let output = stack.reload(Program::Gateway);
    assert!(output.status.success(), "{}", output_text(&output));
    drop(v1);
    assert_eq!(use_v1(&client).await, before);
}

#[tokio::test]
async fn a_version_is_retired_with_a_converter_in_python() {
    is_proven_and_switched("python3", "backends/examples/python/converter.py").await;
}

#[tokio::test]
async fn a_version_is_retired_with_a_converter_in_node() {
    is_proven_and_switched("node", "backends/examples/node/converter.mjs").await;
}

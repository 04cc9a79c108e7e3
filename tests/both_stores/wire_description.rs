//! The login service, driven by the description of each version: schemathesis sends what the description allows and what it does
//! not, signed by the client library for Python, and checks each response against it. CONTRACT 8.

use std::{env, process::Command};

use end_to_end::{
    documents::root,
    folder::Folder,
    logins::{begin_polling, complete_polling, credential},
    program::{Program, output_text},
    stack::Stack,
};
use serde_json::Value;
use tokio::task::spawn_blocking;

/// Cases for each endpoint; those of its boundaries come in addition.
const CASES: &str = "5";

/// These would end the credential that the calls have. They have tests of their own.
const LEFT_OUT: [&str; 2] = ["/user/logout", "/user/renew"];

/// Not checked: a valid call can be refused, for example by a name that no provider has; the gateway judges method and body
/// before it knows the path; and the hooks make version and signature right.
const NOT_CHECKED: &str = "positive_data_acceptance,unsupported_method,allow_header_conformance,missing_required_header,ignored_auth";

/// Drives a version by its description.
async fn drive(version: &str, program: Program) {
    if env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_some() {
        return;
    }
    let many = "[limits]\nstarts_per_second = 10000\nstarts_burst = 10000";
    let stack = Stack::builder().multi().backends(many).start().await;
    let application = stack.create_application("Shop", &[]);
    let client = stack.client_of(&application);
    let begun = begin_polling(&client).await;
    let login = complete_polling(&client, &begun, "ada").await;

    let document = client.get("/openapi.json").version(version).send().await;
    assert_eq!(
        document.header("link"),
        Some("</openapi.json>; rel=\"service-desc\"")
    );
    let tests = root().join("tests/both_stores");
    let mut command = Command::new(root().join("target/examples/schemathesis/bin/schemathesis"));
    command
        .env("SCHEMATHESIS_HOOKS", tests.join("schemathesis_hooks.py"))
        .env("CLIENT_LIBRARY", root().join("gateway/clients/python"))
        .env("APP_KEY", &application.key)
        .env("LOGIN_TOKEN", &begun.token)
        .env("VERSION", version)
        .args(["run", &stack.url("/openapi.json")])
        .args(["--header", &format!("Acme-X-App: {}", application.ident)])
        .args(["--header", &format!("Acme-X-Version: {version}")])
        .args([
            "--header",
            &format!("Acme-X-Authorization: {}", credential(&login)),
        ])
        .args(["--max-examples", CASES, "--seed", "1", "--no-color"])
        .args(["--suppress-health-check", "all"])
        .args(["--request-timeout", "60"])
        .args(["--exclude-checks", NOT_CHECKED]);
    for path in LEFT_OUT {
        command.args(["--exclude-path", path]);
    }
    let folder = Folder::create();
    command.current_dir(folder.path());
    let output = spawn_blocking(move || command.output().unwrap()).await;
    let output = output.unwrap();
    assert!(output.status.success(), "{}", output_text(&output));

    // Each endpoint has served some.
    let log = stack.log(program);
    for (path, item) in document.ok()["paths"].as_object().unwrap() {
        let methods = ["get", "post"].into_iter();
        for method in methods.filter(|method| item[method] != Value::Null) {
            let served = format!("answered {} {path} with ", method.to_uppercase());
            let is_served = ["200", "302"]
                .iter()
                .any(|status| log.contains(&format!("{served}{status}")));
            assert!(
                is_served || LEFT_OUT.contains(&path.as_str()),
                "{served}\n{}",
                output_text(&output)
            );
        }
    }
}

#[tokio::test]
async fn version_1_responds_as_its_description_says() {
    drive("v1", Program::V1).await;
}

#[tokio::test]
async fn version_2_responds_as_its_description_says() {
    drive("v2", Program::V2).await;
}

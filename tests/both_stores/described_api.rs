//! The management API, driven by its own description: schemathesis sends what the description allows and what it does not, and
//! checks each response against it.

use std::{env, process::Command};

use end_to_end::{
    documents::root, folder::Folder, program::output_text, recording_backend::RecordingBackend,
    stack::Stack,
};
use tokio::task::spawn_blocking;

/// Cases for each route; those of its boundaries come in addition.
const CASES: &str = "5";

/// Streams do not end, and revocations would end the token that the calls have. All have tests of their own.
const LEFT_OUT: [&str; 2] = ["/api/v1/requests", "/api/v1/tokens/{id}/revoke"];

/// An installation with the API, and an administrator's token.
async fn start() -> (Stack, String) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().multi().in_front_of(&backend);
    let stack = stack.gateway("[management.api]").start().await;
    let token = stack.create_token("admin");
    (stack, token)
}

/// Drives the calls that `filter` chooses, at an installation of their own: each network may send ten wrong tokens at once, and
/// schemathesis sends one to each call.
async fn drive(filter: &[&str]) {
    if env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_some() {
        return;
    }
    let (stack, token) = start().await;
    let program = root().join("target/examples/schemathesis/bin/schemathesis");
    let mut command = Command::new(program);
    let description = stack.api_url(0, "openapi.json");
    command.args([
        "run",
        &description,
        "--header",
        &format!("Authorization: Bearer {token}"),
    ]);
    command.args([
        "--max-examples",
        CASES,
        "--seed",
        "1",
        "--no-color",
        "--suppress-health-check",
        "all",
    ]);
    command.args(filter);
    // A valid call can be refused: by a revision, by a name that has no application.
    command.args(["--exclude-checks", "positive_data_acceptance"]);
    command.args(["--request-timeout", "60"]);
    for path in LEFT_OUT {
        command.args(["--exclude-path", path]);
    }
    let folder = Folder::create();
    command.current_dir(folder.path());
    let output = spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
}

#[tokio::test]
async fn no_call_about_applications_fails_or_gets_what_the_description_has_not() {
    drive(&["--include-tag", "apps"]).await;
}

#[tokio::test]
async fn no_call_about_backends_fails_or_gets_what_the_description_has_not() {
    let tags = ["--include-tag", "backends", "--include-tag", "gateways"];
    drive(&[&tags[..], &["--include-tag", "versions"]].concat()).await;
}

#[tokio::test]
async fn no_other_call_fails_or_gets_what_the_description_has_not() {
    let tags = ["--exclude-tag", "apps", "--exclude-tag", "backends"];
    let further = ["--exclude-tag", "gateways", "--exclude-tag", "versions"];
    drive(&[tags, further].concat()).await;
}

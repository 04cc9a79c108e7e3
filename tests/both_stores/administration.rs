//! Changing applications, and importing existing ones. Issue 9, rows 16 and 19.

use std::{io::Write, process::Stdio};

use end_to_end::{
    program::Program,
    recording_backend::RecordingBackend,
    stack::{Application, Stack},
    waiting::{PROPAGATION_TIMEOUT, within},
};

const KEYS: [&str; 2] = [
    "0f3fefc63f0cd0e873a0000c6d07ef7b77e90d3593ad699fc1f7cd5bb2e35cb4",
    "1e83fefc63f0cd0e873a0000c6d07ef7b77e90d3593ad699fc1f7cd5bb2e35cb",
];

async fn recording() -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder().in_front_of(&backend).multi().start().await;
    (stack, backend)
}

fn application(ident: &str, key: &str) -> Application {
    Application {
        ident: ident.to_owned(),
        key: key.to_owned(),
    }
}

/// The version that serves an application's requests without a version header, and its source.
async fn served_by(stack: &Stack, application: &Application) -> Option<(String, String)> {
    let client = stack.client_of(application);
    let response = client.get("/x").param("a", "1").send().await;
    let header = |name| response.header(name).map(str::to_owned);
    Some((header("acme-x-version")?, header("acme-x-version-source")?))
}

async fn expect_served_by(stack: &Stack, application: &Application, expected: (&str, &str)) {
    let served = within(PROPAGATION_TIMEOUT, || async {
        let (version, source) = served_by(stack, application).await?;
        ((&*version, &*source) == expected).then_some(())
    });
    assert!(
        served.await.is_some(),
        "{expected:?} within {PROPAGATION_TIMEOUT:?}"
    );
}

fn run(stack: &Stack, arguments: &[&str]) -> String {
    let output = stack.command(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn run_failing(stack: &Stack, arguments: &[&str]) -> String {
    let output = stack.command(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    stderr
}

#[tokio::test]
async fn an_update_reaches_a_running_gateway_within_a_second() {
    let (stack, _backend) = recording().await;
    let app = stack.create_application("one", &["--return-to", "https://a.example"]);
    expect_served_by(&stack, &app, ("v1", "default")).await;
    let update = |further: &[&str]| {
        let mut arguments = vec!["app", "update", &*app.ident, "--json"];
        arguments.extend(further);
        let shown = run(&stack, &arguments);
        serde_json::from_str::<serde_json::Value>(&shown).unwrap()
    };
    let updated = update(&["--default-version", "v2"]);
    assert_eq!(updated["return_to"][0], "https://a.example", "{updated}");
    expect_served_by(&stack, &app, ("v2", "app")).await;
    let updated = update(&["--no-default-version", "--name", "another name"]);
    assert_eq!(updated["name"], "another name");
    expect_served_by(&stack, &app, ("v1", "default")).await;
    let updated = update(&["--no-return-to", "--preset", "wechat"]);
    assert_eq!(updated["return_to"], serde_json::json!([]));
    assert_eq!(updated["name"], "another name");
    let status = |expected: u16| {
        let (stack, app) = (&stack, &app);
        within(PROPAGATION_TIMEOUT, move || async move {
            let response = stack.client_of(app).get("/x").param("a", "1").send().await;
            (response.status == expected).then_some(())
        })
    };
    assert!(status(403).await.is_some(), "signed with another profile");
    update(&["--no-profile"]);
    assert!(
        status(200).await.is_some(),
        "signed with the gateway's profile"
    );
}

#[tokio::test]
async fn an_unknown_default_version_is_rejected_and_a_removed_one_is_reported() {
    let (mut stack, _backend) = recording().await;
    let app = stack.create_application("one", &["--default-version", "v2"]);
    let file = stack.folder().join("apps.csv");
    let content = format!(
        "ident,key,name,default_version\nteam-1,{},One,v9\n",
        KEYS[0]
    );
    std::fs::write(&file, content).unwrap();
    for arguments in [
        &["app", "create", "two", "--default-version", "v9"][..],
        &["app", "update", &app.ident, "--default-version", "v9"],
        &["app", "import", &file.display().to_string()],
    ] {
        let stderr = run_failing(&stack, arguments);
        assert!(stderr.contains("v1, v2"), "{stderr}");
    }
    stack
        .store()
        .query("UPDATE applications SET default_version = 'removed'");
    let checked = run(&stack, &["check"]);
    let named = format!("{} (removed)", app.ident);
    assert!(checked.contains(&named), "{checked}");
    stack.restart(Program::Gateway).await;
    let log = stack.log_with(Program::Gateway, &named).await;
    let is_warned = |line: &str| line.contains("WARN") && line.contains(&named);
    assert!(log.lines().any(is_warned), "{log}");
}

#[tokio::test]
async fn applications_are_imported_with_their_idents_and_keys() {
    let (stack, backend) = recording().await;
    let one = application("team-1.mobile_app", KEYS[0]);
    let two = application(&"t".repeat(64), KEYS[1]);
    // These requests make the gateway cache that the idents are unknown.
    for app in [&one, &two] {
        let client = stack.client_of(app);
        let response = client.get("/x").param("a", "1").send().await;
        response.problem(404, "app_not_found");
    }
    let file = stack.folder().join("apps.csv");
    let content = format!(
        "ident,key,name,origins,profile,default_version\n\
         {},{},First,https://a.example https://b.example,,v2\n",
        one.ident, one.key
    );
    std::fs::write(&file, content).unwrap();
    let imported = run(
        &stack,
        &["app", "import", &file.display().to_string(), "--json"],
    );
    assert_eq!(imported.trim(), "{\"imported\":1}");
    expect_served_by(&stack, &one, ("v2", "app")).await;

    // The other one is imported from standard input.
    let config = stack.folder().join("signpost.toml").display().to_string();
    let mut command = Program::Gateway.command(stack.folder());
    let mut importing = command
        .args(["app", "import", "-", "--config", &config])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = serde_json::json!({ "ident": two.ident, "key": two.key, "name": "Second" });
    let mut input = importing.stdin.take().unwrap();
    writeln!(input, "{line}").unwrap();
    drop(input);
    let output = importing.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    expect_served_by(&stack, &two, ("v1", "default")).await;
    let arrived = backend.requests();
    let idents: Vec<_> = arrived
        .iter()
        .filter_map(|request| request.value("x-gateway-app"))
        .collect();
    assert!(
        idents.contains(&&*one.ident) && idents.contains(&&*two.ident),
        "{idents:?}"
    );
    for key in [&one.key, &two.key] {
        assert_eq!(stack.store().find(key.as_bytes()), None);
        assert!(!stderr.contains(key));
    }
}

#[tokio::test]
async fn an_import_with_errors_reports_each_line_and_imports_nothing() {
    let (stack, _backend) = recording().await;
    let existing = stack.create_application("existing", &[]);
    let file = stack.folder().join("apps.csv");
    let path = file.display().to_string();
    let content = format!(
        "ident,key,name\ngood,{},Good\n{},{},There\nweak,hush,Weak\ngood,{},Again\n",
        KEYS[0], existing.ident, KEYS[1], KEYS[1]
    );
    std::fs::write(&file, content).unwrap();
    let stderr = run_failing(&stack, &["app", "import", &path]);
    for expected in [
        "line 3: ident",
        "line 4: key: a weak key",
        "line 5: ident",
        "nothing was",
    ] {
        assert!(stderr.contains(expected), "{expected} in {stderr}");
    }
    let shows_key = KEYS.iter().any(|key| stderr.contains(key)) || stderr.contains("hush");
    assert!(!shows_key, "{stderr}");
    assert!(!run(&stack, &["app", "list"]).contains("good"));
    std::fs::write(&file, "ident,key,name\nweak,hush,Weak\n").unwrap();
    let allowed = ["app", "import", &path, "--allow-weak-key"];
    assert!(run(&stack, &allowed).contains("imported 1"));
    expect_served_by(&stack, &application("weak", "hush"), ("v1", "default")).await;
    let help = Program::Gateway.run(stack.folder(), &["app", "import", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout);
    assert!(
        help.contains("ident,key,name,origins,profile,default_version"),
        "{help}"
    );
    let missing = run_failing(&stack, &["app", "import", "nowhere.csv"]);
    assert!(missing.contains("nowhere.csv"), "{missing}");
}

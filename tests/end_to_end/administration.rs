//! Changing applications, and bringing along those that a team has already. Issue 9, rows 16 and 19.

use std::{io::Write, process::Stdio, time::Duration};

use end_to_end::{
    program::Program,
    recording_backend::RecordingBackend,
    stack::{Application, Stack},
    waiting::within,
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

/// The version that serves an application's requests that name none, and why.
async fn served_by(stack: &Stack, application: &Application) -> Option<(String, String)> {
    let client = stack.client_of(application);
    let answer = client.get("/x").param("a", "1").send().await;
    let header = |name| answer.header(name).map(str::to_owned);
    Some((header("acme-x-version")?, header("acme-x-version-source")?))
}

async fn comes_to_be_served_by(stack: &Stack, application: &Application, expected: (&str, &str)) {
    let served = within(Duration::from_secs(1), || async {
        let (version, source) = served_by(stack, application).await?;
        ((&*version, &*source) == expected).then_some(())
    });
    assert!(served.await.is_some(), "{expected:?} within a second");
}

fn succeeded(stack: &Stack, arguments: &[&str]) -> String {
    let output = stack.command(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(stack: &Stack, arguments: &[&str]) -> String {
    let output = stack.command(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

#[tokio::test]
async fn an_update_reaches_a_running_gateway_within_a_second() {
    let (stack, _backend) = recording().await;
    let app = stack.create_application("one", &["--return-to", "https://a.example"]);
    comes_to_be_served_by(&stack, &app, ("v1", "default")).await;
    let update = |further: &[&str]| {
        let mut arguments = vec!["app", "update", &*app.ident, "--json"];
        arguments.extend(further);
        let shown = succeeded(&stack, &arguments);
        serde_json::from_str::<serde_json::Value>(&shown).unwrap()
    };
    let updated = update(&["--default-version", "v2"]);
    assert_eq!(updated["return_to"][0], "https://a.example", "{updated}");
    comes_to_be_served_by(&stack, &app, ("v2", "app")).await;
    let updated = update(&["--no-default-version", "--name", "another name"]);
    assert_eq!(updated["name"], "another name");
    comes_to_be_served_by(&stack, &app, ("v1", "default")).await;
    let updated = update(&["--no-return-to", "--preset", "wechat"]);
    assert_eq!(updated["return_to"], serde_json::json!([]));
    assert_eq!(updated["name"], "another name");
    let status = |expected: u16| {
        let (stack, app) = (&stack, &app);
        within(Duration::from_secs(1), move || async move {
            let answer = stack.client_of(app).get("/x").param("a", "1").send().await;
            (answer.status == expected).then_some(())
        })
    };
    assert!(status(403).await.is_some(), "signed by another profile");
    update(&["--no-profile"]);
    assert!(status(200).await.is_some(), "signed by the gateway's");
}

#[tokio::test]
async fn an_unknown_default_version_is_refused_and_one_that_has_gone_is_told() {
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
        let said = refused(&stack, arguments);
        assert!(said.contains("v1, v2"), "{said}");
    }
    stack
        .store()
        .query("UPDATE applications SET default_version = 'gone'");
    let checked = succeeded(&stack, &["check"]);
    let named = format!("{} (gone)", app.ident);
    assert!(checked.contains(&named), "{checked}");
    stack.restart(Program::Gateway).await;
    let log = stack.log_with(Program::Gateway, &named).await;
    let is_warned = |line: &str| line.contains("WARN") && line.contains(&named);
    assert!(log.lines().any(is_warned), "{log}");
}

#[tokio::test]
async fn applications_are_brought_along_with_their_idents_and_keys() {
    let (stack, backend) = recording().await;
    let one = application("team-1.mobile_app", KEYS[0]);
    let two = application(&"t".repeat(64), KEYS[1]);
    // Gateways remember that nobody has these idents.
    for app in [&one, &two] {
        let client = stack.client_of(app);
        let answer = client.get("/x").param("a", "1").send().await;
        answer.problem(404, "app_not_found");
    }
    let file = stack.folder().join("apps.csv");
    let content = format!(
        "ident,key,name,origins,profile,default_version\n\
         {},{},First,https://a.example https://b.example,,v2\n",
        one.ident, one.key
    );
    std::fs::write(&file, content).unwrap();
    let imported = succeeded(
        &stack,
        &["app", "import", &file.display().to_string(), "--json"],
    );
    assert_eq!(imported.trim(), "{\"imported\":1}");
    comes_to_be_served_by(&stack, &one, ("v2", "app")).await;

    // The other from standard input.
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
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    comes_to_be_served_by(&stack, &two, ("v1", "default")).await;
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
        assert!(!said.contains(key));
    }
}

#[tokio::test]
async fn an_import_with_problems_tells_all_by_line_and_brings_nothing() {
    let (stack, _backend) = recording().await;
    let there = stack.create_application("there", &[]);
    let file = stack.folder().join("apps.csv");
    let path = file.display().to_string();
    let content = format!(
        "ident,key,name\ngood,{},Good\n{},{},There\nweak,hush,Weak\ngood,{},Again\n",
        KEYS[0], there.ident, KEYS[1], KEYS[1]
    );
    std::fs::write(&file, content).unwrap();
    let said = refused(&stack, &["app", "import", &path]);
    for expected in [
        "line 3: ident",
        "line 4: key: a weak key",
        "line 5: ident",
        "nothing was",
    ] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
    let is_told = KEYS.iter().any(|key| said.contains(key)) || said.contains("hush");
    assert!(!is_told, "{said}");
    assert!(!succeeded(&stack, &["app", "list"]).contains("good"));
    std::fs::write(&file, "ident,key,name\nweak,hush,Weak\n").unwrap();
    let allowed = ["app", "import", &path, "--allow-weak-key"];
    assert!(succeeded(&stack, &allowed).contains("imported 1"));
    comes_to_be_served_by(&stack, &application("weak", "hush"), ("v1", "default")).await;
    let help = Program::Gateway.run(stack.folder(), &["app", "import", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout);
    assert!(
        help.contains("ident,key,name,origins,profile,default_version"),
        "{help}"
    );
    let missing = refused(&stack, &["app", "import", "nowhere.csv"]);
    assert!(missing.contains("nowhere.csv"), "{missing}");
}

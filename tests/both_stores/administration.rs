//! Changing applications, and importing existing ones. Issue 9, rows 16 and 19.

use std::{io::Write, process::Stdio, time::Duration};

use end_to_end::{
    program::Program,
    recording_backend::RecordingBackend,
    stack::{Application, Stack},
    waiting::until,
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
    until(&format!("{expected:?}"), || async {
        let (version, source) = served_by(stack, application).await?;
        ((&*version, &*source) == expected).then_some(())
    })
    .await;
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
async fn an_update_reaches_a_running_gateway() {
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
    let status = |what, expected: u16| {
        let (stack, app) = (&stack, &app);
        until(what, move || async move {
            let response = stack.client_of(app).get("/x").param("a", "1").send().await;
            (response.status == expected).then_some(())
        })
    };
    status("signed with another profile", 403).await;
    update(&["--no-profile"]);
    status("signed with the gateway's profile", 200).await;
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

#[tokio::test]
async fn the_audit_says_who_changed_what_and_a_stale_revision_changes_nothing() {
    let (stack, _backend) = recording().await;
    let app = stack.create_application("one", &["--reason", "a new customer"]);
    let update = |revision, name| {
        [
            "app",
            "update",
            &*app.ident,
            "--name",
            name,
            "--revision",
            revision,
        ]
    };
    run(&stack, &update("1", "two"));
    let stale = run_failing(&stack, &update("1", "three"));
    assert!(stale.contains("revision 2"), "{stale}");
    run(&stack, &["app", "rotate", &app.ident, "--overlap", "0h"]);
    let bidirectional = stack.command(&["app", "delete", &app.ident, "--reason", "a\u{202e}b"]);
    assert_eq!(bidirectional.status.code(), Some(2));

    let shown = run(
        &stack,
        &["audit", "--json", "--subject", &app.ident, "--since", "1h"],
    );
    let rows: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let of = |member: &str| -> Vec<_> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row[member].clone()).collect()
    };
    assert_eq!(of("action"), ["app.rotate", "app.update", "app.create"]);
    assert_eq!(of("revision"), [3, 2, 1]);
    assert_eq!(
        rows[1]["changes"],
        serde_json::json!({ "name": ["one", "two"] })
    );
    assert_eq!(rows[0]["changes"]["key"], "changed");
    assert_eq!(rows[2]["reason"], "a new customer");
    let actor = rows[0]["actor"].as_str().unwrap();
    assert!(!actor.is_empty() && !shown.contains(&app.key), "{shown}");
    assert!(
        rows[0]["origin"].as_str().unwrap().starts_with("cli "),
        "{shown}"
    );
    let page = run(&stack, &["audit", "--actor", actor, "--limit", "1"]);
    assert!(
        page.contains("app.rotate") && !page.contains("app.update"),
        "{page}"
    );
    let before = rows[0]["id"].to_string();
    let page = run(&stack, &["audit", "--before", &before, "--limit", "1"]);
    assert!(
        page.contains("app.update") && !page.contains("app.create"),
        "{page}"
    );
    assert_eq!(
        run(&stack, &["audit", "--actor", "nobody", "--json"]).trim(),
        "[]"
    );

    // Whatever the store has, the terminal gets it escaped.
    let hostile = format!("UPDATE audit SET actor = 'x\u{202e}y' WHERE id = {before}");
    stack.store().query(&hostile);
    for further in [&[][..], &["--json"]] {
        let shown = run(&stack, &[&["audit"], further].concat());
        assert!(
            shown.contains("202e") && !shown.contains('\u{202e}'),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn a_token_is_shown_once_listed_and_revoked_and_the_audit_says_so() {
    let (stack, _backend) = recording().await;
    let create = ["token", "create", "--name", "ci", "--role", "operator"];
    let options = ["--days", "7", "--reason", "a new script", "--json"];
    let shown = run(&stack, &[&create[..], &options].concat());
    let created: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let (secret, id) = (
        created["token"].as_str().unwrap(),
        created["id"].to_string(),
    );
    assert!(secret.starts_with("sp_"), "{shown}");
    let taken = run_failing(&stack, &create);
    assert!(taken.contains("a valid token has this name"), "{taken}");
    let others = [&create[..3], &["second", "--role", "viewer"]].concat();
    let second = run(&stack, &others);
    assert!(second.starts_with("sp_") && second.trim().len() == 46);
    let listed = run(&stack, &["token", "list"]);
    assert!(
        listed.contains("operator") && listed.contains("second"),
        "{listed}"
    );
    let revoked = run(&stack, &["token", "revoke", &id, "--json"]);
    let revoked: serde_json::Value = serde_json::from_str(&revoked).unwrap();
    assert!(revoked[0]["revoked_at"].is_string(), "{revoked}");
    let page = run(&stack, &["token", "list", "--limit", "1", "--after", &id]);
    assert!(
        page.contains("second") && !page.contains("operator"),
        "{page}"
    );
    let audit = run(&stack, &["audit", "--subject", "ci"]);
    for expected in ["token.create", "token.revoke", "a new script"] {
        assert!(audit.contains(expected), "{audit}");
    }
    let all = [listed, page, audit].concat();
    assert!(
        !all.contains(secret) && !all.contains(second.trim()),
        "{all}"
    );
}

#[tokio::test]
async fn an_export_is_imported_once_its_lines_have_keys() {
    let (stack, _backend) = recording().await;
    let options = [
        "--return-to",
        "https://a.example",
        "--rate-limit",
        "7/9",
        "--preset",
        "wechat",
    ];
    let app = stack.create_application("one", &options);
    run(&stack, &["app", "disable", &app.ident]);
    let exported = run(&stack, &["app", "export"]);
    let file = stack.folder().join("apps.jsonl");
    let path = file.display().to_string();
    std::fs::write(&file, &exported).unwrap();
    let keyless = run_failing(&stack, &["app", "import", &path]);
    assert!(keyless.contains("line 1: key: missing"), "{keyless}");
    run(&stack, &["app", "delete", &app.ident]);
    let mut line: serde_json::Value = serde_json::from_str(&exported).unwrap();
    line["key"] = app.key.clone().into();
    std::fs::write(&file, line.to_string()).unwrap();
    run(&stack, &["app", "import", &path]);
    assert_eq!(run(&stack, &["app", "export"]), exported);
}

/// A number generator that needs no crate: the moments only have to differ.
fn next_random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn no_kill_leaves_a_change_without_its_audit_row_or_a_row_without_its_change() {
    const KILLS: usize = 100;
    const THREADS: usize = 4;
    const LINES: usize = 200;
    let files = Stack::builder().multi().write_files();
    let config = files.config(Program::Gateway);
    let import = |number: usize, lines: usize| {
        let line = |index| {
            format!(
                "i-{number}-{index},{}{number:08}{index:08},Name {index}\n",
                &KEYS[0][..32]
            )
        };
        let lines: String = (0..lines).map(line).collect();
        let path = files.path().join(format!("{number}.csv"));
        std::fs::write(&path, format!("ident,key,name\n{lines}")).unwrap();
        path.display().to_string()
    };
    let first = import(0, 1);
    let imported = Program::Gateway.run(
        files.path(),
        &["app", "import", &first, "--config", &config],
    );
    assert!(
        imported.status.success(),
        "{}",
        String::from_utf8_lossy(&imported.stderr)
    );
    // How long an undisturbed import takes, so that kills come before, while and after it writes.
    let begun = std::time::Instant::now();
    let second = import(1, LINES);
    let imported = Program::Gateway.run(
        files.path(),
        &["app", "import", &second, "--config", &config],
    );
    assert!(imported.status.success());
    let longest = u64::try_from(begun.elapsed().as_micros()).unwrap() * 2;

    let kills = |thread: usize| {
        let (mut state, mut killed, mut run) = (thread as u64, 0, 0);
        // Of an update and of an import. Other tests make runs longer and shorter: the moments follow.
        let mut longest = [longest; 2];
        while killed < KILLS / THREADS {
            run += 1;
            let longest = &mut longest[run % 2];
            let name = format!("name {thread} {run}");
            let path;
            let arguments = match run % 2 {
                0 => [
                    "app", "update", "i-0-0", "--name", &name, "--config", &config,
                ],
                _ => {
                    path = import(2 + thread + THREADS * run, LINES);
                    [
                        "app", "import", &path, "--reason", "a test", "--config", &config,
                    ]
                }
            };
            let mut command = Program::Gateway.command(files.path());
            let command = command
                .args(arguments)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let moment = next_random(&mut state) % *longest;
            std::thread::sleep(Duration::from_micros(moment));
            child.kill().unwrap();
            if child.wait().unwrap().code().is_none() {
                killed += 1;
                *longest += *longest / 50;
            } else {
                *longest = moment.max(1000);
            }
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || kills(thread));
        }
    });
    let count = |query: &str| files.store.query(query).number();
    // Each comparison is one statement: Postgres may still commit what a killed process has sent.
    let changes_without_a_row = "SELECT (SELECT CAST(sum(revision) AS BIGINT) FROM applications) - (SELECT count(*) FROM audit)";
    assert_eq!(count(changes_without_a_row), 0);
    let imports_without_a_row = "SELECT (SELECT count(*) FROM applications) - \
        (SELECT count(*) FROM audit WHERE action = 'app.import')";
    assert_eq!(count(imports_without_a_row), 0);
    let applications = count("SELECT count(*) FROM applications");
    assert_eq!((applications - 1) % i64::try_from(LINES).unwrap(), 0);
}

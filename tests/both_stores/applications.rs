//! Many applications, as operators and clients see them. CONTRACT 4.

use std::os::unix::fs::PermissionsExt;

use end_to_end::{
    logins::{begin_polling, log_in_by_polling, log_in_by_redirect},
    program::Program,
    recording_backend::RecordingBackend,
    signer::{Empty, Layout, Profile, Values},
    stack::{Application, Stack},
    store::StoreKind,
    waiting::until,
};

async fn recording() -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    (
        Stack::builder().in_front_of(&backend).multi().start().await,
        backend,
    )
}

/// Waits until a call of the application gets this status.
async fn gets_status(stack: &Stack, application: &Application, status: u16) {
    let client = stack.client_of(application);
    until(&format!("a call to get {status}"), || async {
        (client.get("/x").param("a", "1").send().await.status == status).then_some(())
    })
    .await;
}

#[tokio::test]
async fn each_application_signs_with_its_own_key() {
    let (stack, backend) = recording().await;
    let one = stack.create_application("one", &[]);
    let two = stack.create_application("two", &[]);
    assert_eq!((one.ident.len(), one.key.len()), (24, 64));
    assert!(one.ident.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert!(one.key.bytes().all(|byte| byte.is_ascii_hexdigit()));
    for application in [&one, &two] {
        stack
            .client_of(application)
            .get("/x")
            .param("a", "1")
            .send()
            .await
            .ok();
    }
    let crossed = stack.client_of(&one).with_app(&two.ident);
    crossed
        .get("/x")
        .param("a", "1")
        .send()
        .await
        .problem(403, "sign_mismatch");
    let arrived = backend.requests();
    assert_eq!(arrived.len(), 2);
    assert_eq!(arrived[0].value("x-gateway-app"), Some(&*one.ident));
    let ids: Vec<_> = arrived
        .iter()
        .map(|request| request.value("x-gateway-app-id"))
        .collect();
    assert!(ids[0].is_some() && ids[0] != ids[1], "{ids:?}");
}

#[tokio::test]
async fn a_change_reaches_a_running_gateway() {
    let (stack, _backend) = recording().await;
    let application = stack.create_application("one", &[]);
    gets_status(&stack, &application, 200).await;
    assert!(
        stack
            .command(&["app", "disable", &application.ident])
            .status
            .success()
    );
    gets_status(&stack, &application, 403).await;
    let rejected = stack
        .client_of(&application)
        .get("/x")
        .param("a", "1")
        .send()
        .await;
    rejected.problem(403, "app_disabled");
    assert!(
        stack
            .command(&["app", "enable", &application.ident])
            .status
            .success()
    );
    gets_status(&stack, &application, 200).await;
    assert!(
        stack
            .command(&["app", "delete", &application.ident])
            .status
            .success()
    );
    gets_status(&stack, &application, 404).await;
}

#[tokio::test]
async fn a_rotated_key_is_valid_until_its_overlap_ends() {
    let (stack, _backend) = recording().await;
    let old = stack.create_application("one", &[]);
    gets_status(&stack, &old, 200).await;
    let rotate = |overlap: &str| {
        let output = stack.command(&["app", "rotate", &old.ident, "--overlap", overlap, "--json"]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let rotated: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        Application {
            ident: old.ident.clone(),
            key: rotated["key"].as_str().unwrap().to_owned(),
        }
    };
    let new = rotate("1d");
    gets_status(&stack, &new, 200).await;
    gets_status(&stack, &old, 200).await;
    let ended = stack.command(&["app", "end-overlap", &old.ident]);
    assert!(ended.status.success());
    gets_status(&stack, &old, 403).await;
    let newest = rotate("0");
    gets_status(&stack, &newest, 200).await;
    gets_status(&stack, &new, 403).await;
    // There is a hint, since only a holder of the key can create this signature.
    let rejected = stack.client_of(&new).get("/x").param("a", "1").send().await;
    let problem = rejected.problem(403, "sign_mismatch");
    assert!(problem["hint"].is_string(), "{problem}");
}

#[tokio::test]
async fn the_app_parameter_replaces_the_header_on_browser_paths_only() {
    let (stack, backend) = recording().await;
    let application = stack.create_application("one", &[]);
    let headerless = stack.client().with_key(&application.key);
    let ident = &application.ident;
    headerless
        .get("/login")
        .param("app", ident)
        .send()
        .await
        .ok();
    headerless
        .get("/user")
        .param("app", ident)
        .send()
        .await
        .problem(400, "app_missing");
    let missing = headerless.get("/login").send().await;
    let missing = missing.problem(400, "app_missing");
    let detail = missing["detail"].as_str().unwrap();
    assert!(detail.contains("Acme-X-App"), "{detail}");
    // A browser cannot set a header.
    let page = stack.browser().step(&stack.url("/login")).await;
    page.response.rejected(400, "app_missing");
    let text = page.text();
    assert!(text.contains("signed query parameter"), "{text}");
    assert!(!text.contains("Acme-X-App"), "{text}");
    let unsigned = headerless.get("/login").param("app", ident).unsigned();
    unsigned.send().await.problem(403, "time_missing");
    assert_eq!(backend.requests().len(), 1);
    assert_eq!(backend.requests()[0].value("x-gateway-app"), Some(&**ident));
}

#[tokio::test]
async fn an_application_has_its_own_profile_and_default_version() {
    let (stack, _backend) = recording().await;
    let further = ["--preset", "wechat", "--default-version", "v2"];
    let application = stack.create_application("one", &further);
    let profile = Profile {
        values: Values::Decoded,
        empty: Empty::Drop,
        layout: Layout::PairsKey,
        ..Default::default()
    };
    let client = stack.client_of(&application);
    client
        .get("/x")
        .param("a", "1")
        .send()
        .await
        .problem(403, "sign_mismatch");
    let response = client
        .with_profile(profile)
        .get("/x")
        .param("a", "1 1")
        .send()
        .await;
    response.ok();
    assert_eq!(response.header("acme-x-version"), Some("v2"));
    assert_eq!(response.header("acme-x-version-source"), Some("app"));
}

#[tokio::test]
async fn both_modes_of_login_work_with_many_applications() {
    let stack = Stack::builder().multi().start().await;
    let one = stack.client_of(&stack.create_application("The First App", &[]));
    let two = stack.client_of(&stack.create_application("The Second App", &[]));
    let redirected = log_in_by_redirect(&one, "ada").await;
    let polled = log_in_by_polling(&two, "ada").await;
    assert_eq!(
        redirected["account"]["username"],
        polled["account"]["username"]
    );
    let begun = begin_polling(&one).await;
    let page = stack.browser().open(&begun.authorize_url).await;
    assert!(
        page.text().contains("The First App"),
        "the page names the application: {}",
        page.text()
    );
}

#[tokio::test]
async fn internal_ids_and_keys_are_not_exposed() {
    let (stack, _backend) = recording().await;
    for number in 0..3 {
        stack.create_application(&format!("filler {number}"), &[]);
    }
    let application = stack.create_application("one", &[]);
    let ident = &application.ident;
    let id = format!("SELECT id FROM applications WHERE ident = '{ident}'");
    let id = stack.store().query(&id).number();
    for command in [
        &["app", "list"][..],
        &["app", "list", "--json"],
        &["app", "show", &application.ident, "--json"],
    ] {
        let output = stack.command(command);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(&application.ident), "{text}");
        assert!(!text.contains(&application.key), "{text}");
        if let Ok(json) = serde_json::from_str::<serde_json::Value>(&text) {
            let members = json.to_string();
            assert!(!members.contains("\"id\""), "{members}");
        }
    }
    let raw_key = hex::decode(&application.key).unwrap();
    for key in [application.key.as_bytes(), &raw_key] {
        let found = stack.store().find(key);
        assert_eq!(found, None, "the store contains the key unencrypted");
    }
    let log = stack.log(Program::Gateway);
    assert!(
        !log.contains(&format!("app.id={id}")) && !log.contains(&application.key),
        "{log}"
    );
}

#[tokio::test]
async fn with_a_broken_store_no_request_passes_unverified() {
    let (mut stack, backend) = recording().await;
    let cached = stack.create_application("cached", &[]);
    let other = stack.create_application("other", &[]);
    // A change feed that begins now has no report on its way that would keep an application out of the cache.
    stack.restart(Program::Gateway).await;
    gets_status(&stack, &cached, 200).await;
    let unread = Application {
        ident: "unread".to_owned(),
        ..other.clone()
    };
    stack
        .store()
        .query("ALTER TABLE applications RENAME TO elsewhere");
    let before = backend.requests().len();
    // Requests of a cached application are served for a while; others cannot be verified.
    let client = stack.client_of(&unread);
    client
        .get("/x")
        .param("a", "1")
        .send()
        .await
        .problem(503, "store_unavailable");
    client
        .get("/x")
        .send()
        .await
        .problem(503, "store_unavailable");
    stack
        .client_of(&cached)
        .get("/x")
        .param("a", "1")
        .send()
        .await
        .ok();
    assert_eq!(backend.requests().len(), before + 1);
    stack
        .store()
        .query("ALTER TABLE elsewhere RENAME TO applications");
    gets_status(&stack, &other, 200).await;
}

#[tokio::test]
async fn many_commands_at_once_share_a_new_store() {
    let files = Stack::builder().multi().write_files();
    let config = files.config(Program::Gateway);
    let mut threads = Vec::new();
    for number in 0..8 {
        let (path, config) = (files.path().to_owned(), config.clone());
        threads.push(std::thread::spawn(move || {
            let name = format!("number {number}");
            let arguments = ["app", "create", &name, "--json", "--config", &config];
            Program::Gateway.run(&path, &arguments)
        }));
    }
    for thread in threads {
        let output = thread.join().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let list = Program::Gateway.run(
        files.path(),
        &["app", "list", "--json", "--config", &config],
    );
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 8, "{list}");
    // Only the owner may read the master key.
    let mode = std::fs::metadata(files.path().join("master.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
}

#[tokio::test]
async fn a_missing_or_wrong_master_key_prevents_the_start() {
    let (mut stack, _backend) = recording().await;
    stack.create_application("one", &[]);
    stack.running(Program::Gateway).kill();
    let key = stack.folder().join("master.key");
    for (content, word) in [
        (None, "is missing"),
        (Some("ab".repeat(32)), "wrong master key"),
    ] {
        std::fs::remove_file(&key).ok();
        if let Some(content) = content {
            std::fs::write(&key, content).unwrap();
        }
        for command in [&["run"][..], &["app", "create", "other"]] {
            let rejected = stack.command(command);
            let stderr = String::from_utf8_lossy(&rejected.stderr).into_owned();
            assert_eq!(rejected.status.code(), Some(1), "{stderr}");
            assert!(
                stderr.contains("master key") && stderr.contains(word),
                "{stderr}"
            );
        }
    }
}

#[test]
fn with_postgres_a_gateway_does_not_create_a_master_key() {
    let files = Stack::builder().multi().write_files();
    let key = files.path().join("master.key");
    std::fs::remove_file(&key).ok();
    let config = files.config(Program::Gateway);
    let list = ["app", "list", "--config", &config];
    let listed = Program::Gateway.run(files.path(), &list);
    if files.store.kind() == StoreKind::Sqlite {
        assert!(listed.status.success() && key.exists());
        return;
    }
    for arguments in [&list[..], &["run", "--config", &config]] {
        let rejected = Program::Gateway.run(files.path(), arguments);
        let stderr = String::from_utf8_lossy(&rejected.stderr).into_owned();
        assert_eq!(rejected.status.code(), Some(1), "{stderr}");
        for words in ["master.key is missing", "openssl rand -hex 32", "umask 077"] {
            assert!(stderr.contains(words), "{stderr}");
        }
        assert!(!key.exists());
    }
    std::fs::write(&key, "5a".repeat(32)).unwrap();
    let listed = Program::Gateway.run(files.path(), &list);
    assert!(listed.status.success());
}

#[tokio::test]
async fn a_running_overlap_ends_early_only_on_request() {
    let (stack, _backend) = recording().await;
    let app = stack.create_application("one", &[]);
    let first = stack.client_of(&app);
    assert!(
        stack
            .command(&["app", "rotate", &app.ident])
            .status
            .success()
    );
    let rejected = stack.command(&["app", "rotate", &app.ident]);
    let stderr = String::from_utf8_lossy(&rejected.stderr).into_owned();
    assert!(
        !rejected.status.success() && stderr.contains("end-overlap"),
        "{stderr}"
    );
    first.get("/x").param("a", "1").send().await.ok();
    for command in ["end-overlap", "rotate"] {
        let done = stack.command(&["app", command, &app.ident]);
        assert!(done.status.success(), "{command}");
    }
}

#[tokio::test]
async fn a_preset_of_an_application_keeps_the_gateways_replay_and_algorithm() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .multi()
        .gateway("[sign]\nreplay = \"reject\"\nalgorithm = \"hmac-sha256\"")
        .start()
        .await;
    let app = stack.create_application("one", &["--preset", "wechat"]);
    let shown = stack.command(&["app", "show", &app.ident, "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let profile = &shown["sign_profile"];
    assert_eq!(profile["replay"], "reject", "{profile}");
    assert_eq!(profile["algorithm"], "hmac-sha256", "{profile}");
    assert_eq!(profile["layout"], "pairs-key", "{profile}");
}

//! Warnings and errors of both programs before they serve, which `check` reports without a start.
//! Issue 9, rows 9, 14 and 19.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    process::Output,
};

use end_to_end::{
    certificates::Authority,
    program::{Program, output_text},
    stack::{APP_KEY, Files, Stack, StackBuilder},
    store::StoreKind,
};

fn check(files: &Files, program: Program) -> Output {
    let config = files.config(program);
    program.run(files.path(), &["check", "--config", &config])
}

#[tokio::test]
async fn both_programs_log_the_warnings_of_check_at_start() {
    let stack = Stack::builder().gateway("[sign]\npreset = \"alipay\"");
    let files = stack.write_files();
    let stack = stack.start().await;
    for (program, words) in [
        (
            Program::Gateway,
            &["md5", "empty is drop", "leave_out names"][..],
        ),
        (Program::V1, &["client_secret is the sandbox provider's"]),
    ] {
        let checked = output_text(&check(&files, program));
        let log = stack.log_with(program, words[0]).await;
        for word in words {
            let is_warned = |line: &str| line.contains("WARN") && line.contains(word);
            assert!(log.lines().any(is_warned), "{word}: {log}");
            let is_checked = |line: &str| line.starts_with("warning: ") && line.contains(word);
            assert!(checked.lines().any(is_checked), "{word}: {checked}");
        }
    }
}

#[test]
fn check_warns_of_unsigned_posts_that_no_key_accepts() {
    const ROUTES: &str = "[versions.v1]\nroutes = [\n\
        { path = '/orders/**', backend = '127.0.0.1:1' },\n\
        { path = '/signed/', backend = '127.0.0.1:1', unsigned = 'reject' },\n\
        { path = '/listed/', backend = '127.0.0.1:1' },\n\
        { path = '/mine', backend = '127.0.0.1:1', account = 'required' },\n\
        { path = '/open', backend = '127.0.0.1:1', unsigned = 'accept' },\n]\n\
        canaries = [{ name = 'next', percent = 1, backend = '127.0.0.1:1' }]\n\
        [[routes]]\npath = '/stock'\nbackend = '127.0.0.1:1'\n";
    for (further, found) in [
        ("", Some("/stock, v1, v1 (canary next), v1 /orders/**, v2")),
        ("unsigned = 'accept'", Some("/stock, v1 /orders/**")),
        ("unsigned = 'reject'", None),
        (
            "[versions.v2]\nunsigned = 'accept'",
            Some("/stock, v1, v1 (canary next), v1 /orders/**"),
        ),
    ] {
        let toml = format!("{ROUTES}[sign]\nalways_signed = ['POST /listed/**']\n{further}\n");
        let files = Stack::builder().gateway(&toml).write_files();
        let text = output_text(&check(&files, Program::Gateway));
        let mut lines = text.lines();
        let warning =
            lines.find_map(|line| line.strip_prefix("warning: unsigned is accept by default for "));
        let names = warning.and_then(|rest| rest.split_once(':'));
        assert_eq!(names.map(|(names, _)| names), found, "{text}");
    }
}

#[test]
fn check_warns_of_rules_that_an_ambiguous_path_passes() {
    const ROUTES: &str = "[versions.v1]\npaths = 'as_sent'\n\
        [[routes]]\npath = '/open'\nbackend = '127.0.0.1:1'\nunsigned = 'accept'\n";
    for (further, warns) in [
        ("", false),
        ("unsigned = 'reject'", true),
        ("account = 'optional'", true),
        ("unsigned = 'reject'\n[sign]\nunsigned = 'reject'", false),
        ("[sign]\nalways_signed = ['POST /login']", false),
        ("[sign]\nalways_signed = ['POST /mine/**']", true),
        (
            "[sign]\nunsigned = 'reject'\nalways_signed = ['POST /mine/**']",
            false,
        ),
    ] {
        let toml =
            format!("{ROUTES}[[routes]]\npath = '/mine/**'\nbackend = '127.0.0.1:1'\n{further}\n");
        for (toml, warns) in [(toml.replace("as_sent", "canonical"), false), (toml, warns)] {
            let files = Stack::builder().gateway(&toml).write_files();
            let text = output_text(&check(&files, Program::Gateway));
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with("warning: versions.v1.paths is as_sent"));
            let is_named = line.map(|line| line.contains("always_signed"));
            assert_eq!(is_named, warns.then_some(true), "{toml} {text}");
            assert!(!text.contains("versions.v2.paths"), "{text}");
        }
    }
}

#[test]
fn a_weak_gateway_secret_and_a_remote_sandbox_are_rejected() {
    for program in [Program::Gateway, Program::V1] {
        let files = Stack::builder()
            .program(program, "gateway_secret = \"hush\"")
            .write_files();
        let checked = check(&files, program);
        let text = output_text(&checked);
        assert_eq!(checked.status.code(), Some(1), "{text}");
        assert!(
            text.contains("gateway_secret: found a weak secret"),
            "{text}"
        );
        assert!(!text.contains("hush"), "{text}");
    }
    let remote = "[providers.bitbucket]\nurl = \"http://192.0.2.1\"";
    let files = Stack::builder().backends(remote).write_files();
    let refused = output_text(&check(&files, Program::V1));
    assert!(refused.contains("providers.bitbucket.url"), "{refused}");
    assert!(refused.contains("allow_sandbox = true"), "{refused}");
    let allowed = format!("{remote}\nallow_sandbox = true");
    let files = Stack::builder().backends(&allowed).write_files();
    let allowed = check(&files, Program::V1);
    assert!(allowed.status.success(), "{}", output_text(&allowed));
    assert!(
        output_text(&allowed).contains("use https"),
        "{}",
        output_text(&allowed)
    );
}

#[tokio::test]
async fn check_finds_a_wrong_master_key_and_changes_nothing() {
    let mut stack = Stack::builder().multi().start().await;
    stack.create_application("known", &[]);
    let right = stack.command(&["check"]);
    assert!(right.status.success(), "{}", output_text(&right));
    for program in [Program::Gateway, Program::V1, Program::V2] {
        stack.kill(program);
    }
    let key = stack.folder().join("master.key");
    let content = fs::read_to_string(&key).unwrap();
    for (written, word) in [
        (Some("ab".repeat(32)), "wrong master key"),
        (Some("\n".to_owned()), "is empty"),
        (None, "is missing"),
    ] {
        match written {
            Some(written) => fs::write(&key, written).unwrap(),
            None => fs::remove_file(&key).unwrap(),
        }
        let wrong = stack.command(&["check"]);
        let text = output_text(&wrong);
        assert_eq!(wrong.status.code(), Some(1), "{text}");
        assert!(text.contains("master key") && text.contains(word), "{text}");
        assert_eq!(key.exists(), word != "is missing");
    }
    fs::write(&key, content).unwrap();
    stack.store().make_unavailable();
    let unavailable = stack.command(&["check"]);
    assert!(
        unavailable.status.success(),
        "{}",
        output_text(&unavailable)
    );
    stack.store().make_available();
    let available = stack.command(&["check"]);
    assert!(available.status.success(), "{}", output_text(&available));
}

#[test]
fn check_creates_neither_store_nor_key() {
    let files = Stack::builder().multi().write_files();
    let key = files.path().join("master.key");
    let had_key = key.exists();
    let names = || {
        let folder = fs::read_dir(files.path()).unwrap();
        let mut names: Vec<_> = folder.map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let checked = check(&files, Program::Gateway);
    assert!(checked.status.success(), "{}", output_text(&checked));
    assert_eq!(names(), before);
    assert_eq!(key.exists(), had_key);
}

#[test]
fn an_empty_master_key_is_reported_with_a_remedy() {
    let files = Stack::builder().multi().write_files();
    fs::write(files.path().join("master.key"), "").unwrap();
    let config = files.config(Program::Gateway);
    for command in ["run", "check"] {
        let refused = Program::Gateway.run(files.path(), &[command, "--config", &config]);
        let text = output_text(&refused);
        assert_eq!(refused.status.code(), Some(1), "{text}");
        assert!(
            text.contains("master.key is empty") && text.contains("delete"),
            "{text}"
        );
    }
}

/// Programs whose secrets are in files, one in the configuration itself, and those files with the keys that name them.
fn with_secret_files() -> (StackBuilder, Vec<(Program, &'static str, &'static str)>) {
    let certificate = Authority::new("Test authority").issue(&["api.example.com"]);
    let gateway = "gateway_secret = 'file:$FOLDER/secret'
        [application]
        key = 'file:$FOLDER/app.key'
        [[listen]]
        address = '$LISTEN'
        tls.certificates = [{ certificate = '$FOLDER/api.pem', key = '$FOLDER/api.key' }]
        [versions.v2]
        backend = 'https://127.0.0.1:1'
        tls = { ca = '$FOLDER/api.pem', certificate = '$FOLDER/api.pem', key = '$FOLDER/client.key' }
        [tracing]
        endpoint = 'http://127.0.0.1:1/v1/traces'
        authorization = 'inline'";
    let backend = "gateway_secret = 'file:$FOLDER/secret'
        [postgres]
        password = 'file:$FOLDER/password'
        [providers.bitbucket]
        client_secret = 'file:$FOLDER/provider'";
    let builder = Stack::builder()
        .program(Program::Gateway, gateway)
        .program(Program::V1, backend)
        .file("secret", APP_KEY)
        .file("app.key", APP_KEY)
        .file("api.pem", &certificate.certificate)
        .file("api.key", &certificate.key)
        .file("client.key", &certificate.key)
        .file("password", "hush")
        .file("provider", "hush");
    let files = vec![
        (Program::Gateway, "gateway_secret", "secret"),
        (Program::Gateway, "application.key", "app.key"),
        (
            Program::Gateway,
            "listen[0].tls.certificates[0].key",
            "api.key",
        ),
        (Program::Gateway, "versions.v2.tls.key", "client.key"),
        (Program::Gateway, "tracing.authorization", "signpost.toml"),
        (Program::V1, "gateway_secret", "secret"),
        (Program::V1, "postgres.password", "password"),
        (Program::V1, "providers.bitbucket.client_secret", "provider"),
    ];
    (builder, files)
}

/// Issue 22, row 18.
#[test]
fn each_file_with_a_secret_that_others_may_read_is_warned_of() {
    if !StoreKind::Sqlite
        .is_chosen("the address of a Postgres is a further secret in the configuration")
    {
        return;
    }
    let (builder, all) = with_secret_files();
    let files = builder.write_files();
    let path = |name: &str| files.path().join(name);
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let set_mode = |mode: u32| {
        for (_, _, name) in &all {
            fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        }
    };
    for mode in [0o644, 0o604, 0o444, 0o600, 0o400] {
        set_mode(mode);
        let mut expected: Vec<_> = all
            .iter()
            .map(|(program, key, name)| {
                let path = path(name).display().to_string();
                // The programs of root's files have users of their own: issue 44, row 17.
                let remedy = if is_root {
                    format!(
                        "as root, run chown root:GROUP {path} && chmod 440 {path}, with a group of the programs that read it"
                    )
                } else {
                    format!("run chmod 600 {path}")
                };
                let line = format!(
                    "warning: {key}: other users may read {path} (mode {mode:04o}); {remedy}"
                );
                (*program, line)
            })
            .collect();
        if mode & 0o077 == 0 {
            expected.clear();
        }
        for program in [Program::Gateway, Program::V1] {
            let checked = check(&files, program);
            let text = output_text(&checked);
            assert!(checked.status.success(), "{text}");
            let is_of_files = |line: &&str| line.contains("other users");
            let mut found: Vec<_> = text.lines().filter(is_of_files).collect();
            let of_program = expected.iter().filter(|(one, _)| *one == program);
            let mut lines: Vec<_> = of_program.map(|(_, line)| &**line).collect();
            found.sort_unstable();
            lines.sort_unstable();
            assert_eq!(found, lines, "{program} {mode:o}");
        }
    }
}

/// The program reads it, too, and tells how to keep it from others only: by the file's owner.
#[tokio::test]
async fn the_start_and_a_reload_warn_of_readable_secrets() {
    let stack = Stack::builder()
        .gateway("[application]\nkey = 'file:$FOLDER/app.key'")
        .file("app.key", APP_KEY)
        .start()
        .await;
    let key = stack.folder().join("app.key");
    let warning = "WARN application.key: other users may read";
    let warnings = || stack.log(Program::Gateway).matches(warning).count();
    let log = stack.log_with(Program::Gateway, warning).await;
    assert_eq!(warnings(), 1, "{log}");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    assert!(stack.command(&["reload"]).status.success());
    assert_eq!(warnings(), 1);
    fs::set_permissions(&key, Permissions::from_mode(0o604)).unwrap();
    assert!(stack.command(&["reload"]).status.success());
    stack.log_with(Program::Gateway, "(mode 0604)").await;
    assert_eq!(warnings(), 2);
}

//! Warnings and errors of both programs before they serve, which `check` reports without a start.
//! Issue 9, rows 9, 14 and 19.

use std::process::Output;

use end_to_end::{
    program::{Program, output_text},
    stack::{Files, Stack},
};

fn check(files: &Files, program: Program) -> Output {
    let config = files.config(program);
    let arguments: &[&str] = match program {
        Program::Gateway => &["check", "--config", &config],
        _ => &["--check", "--config", &config],
    };
    program.run(files.path(), arguments)
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
    let remote = "[providers.bitbucket]\nauth_url = \"http://192.0.2.1\"";
    let files = Stack::builder().backends(remote).write_files();
    let refused = output_text(&check(&files, Program::V1));
    assert!(
        refused.contains("providers.bitbucket.auth_url"),
        "{refused}"
    );
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
    let content = std::fs::read_to_string(&key).unwrap();
    for (written, word) in [
        (Some("ab".repeat(32)), "wrong master key"),
        (Some("\n".to_owned()), "is empty"),
        (None, "is missing"),
    ] {
        match written {
            Some(written) => std::fs::write(&key, written).unwrap(),
            None => std::fs::remove_file(&key).unwrap(),
        }
        let wrong = stack.command(&["check"]);
        let text = output_text(&wrong);
        assert_eq!(wrong.status.code(), Some(1), "{text}");
        assert!(text.contains("master key") && text.contains(word), "{text}");
        assert_eq!(key.exists(), word != "is missing");
    }
    std::fs::write(&key, content).unwrap();
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
        let folder = std::fs::read_dir(files.path()).unwrap();
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
    std::fs::write(files.path().join("master.key"), "").unwrap();
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

//! Upgrades that fail: the old process serves on, and no second one stays.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use super::*;

/// Expects the command to fail with this text, and the old process to serve on alone.
async fn assert_fails(stack: &mut Stack, expected: &str) {
    let old = stack.gateway_processes();
    let output = stack.upgrade().await;
    let text = output_text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(expected), "{expected:?} is not in {text:?}");
    assert_eq!(stack.gateway_processes(), old, "{text}");
    assert_eq!(old.len(), 1);
    assert_eq!(stack.client().get("/x").send().await.status, 200);
    assert_is_ready(stack).await;
    stack
        .log_with(Program::Gateway, "not upgraded, this process goes on")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_configuration_leaves_the_old_process() {
    let (mut stack, _backend) = plain(|builder| builder).await;
    let valid = stack.config_with(Program::Gateway, "");
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let taken = taken.local_addr().map(|address| (taken, address)).unwrap();
    for (change, problem) in [
        ("threads = 'many'".to_owned(), "threads"),
        ("[limits]\nunknown_key = 1".to_owned(), "unknown_key"),
        (
            "[[listen]]\naddress = '$LISTEN'\n\
             tls.certificates = [{ certificate = '/nowhere/a.pem', key = '/nowhere/a.key' }]"
                .replace("$LISTEN", &stack.addresses().gateway.to_string()),
            "/nowhere/a.pem",
        ),
        // Valid, but the new process cannot listen.
        (format!("listen = '{}'", taken.1), "cannot listen on"),
    ] {
        stack.configure(Program::Gateway, &change);
        assert_fails(&mut stack, problem).await;
        fs::write(stack.config(Program::Gateway), &valid).unwrap();
    }
    // The old process still answers commands, and can be upgraded.
    assert_takes_commands(&stack);
    let new = upgrade(&mut stack).await;
    until_alone(&stack, new).await;
    assert!(stack.wait_for_exit(Program::Gateway).await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_does_not_start_leaves_the_old_process() {
    let (mut stack, _backend) = plain(|builder| builder).await;
    let program = stack.folder().join("signpost");
    symlink(Program::Gateway.path(), &program).unwrap();
    let command = Program::command_at(&program, stack.folder());
    stack.restart_as(Program::Gateway, command).await;
    fs::remove_file(&program).unwrap();
    assert_fails(&mut stack, "cannot be started").await;
    for (script, problem) in [
        ("not a program", "cannot be started"),
        ("#!/bin/sh\nexit 3\n", "ended before it served"),
        ("#!/bin/sh\nkill -9 $$\n", "ended before it served"),
    ] {
        write_program(&program, script);
        assert_fails(&mut stack, problem).await;
    }
    // The new file takes the old one's place.
    fs::remove_file(&program).unwrap();
    symlink(Program::Gateway.path(), &program).unwrap();
    let new = upgrade(&mut stack).await;
    until_alone(&stack, new).await;
}

fn write_program(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_needs_a_running_gateway() {
    let (mut stack, _backend) = plain(|builder| builder).await;
    stack.kill(Program::Gateway);
    let output = stack.upgrade().await;
    assert_eq!(output.status.code(), Some(1), "{}", output_text(&output));
    assert!(output_text(&output).contains("no running program"));
    // The hidden option alone is of no use.
    let run = stack.command(&["run", "--take-over"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(output_text(&run).contains("only `signpost upgrade`"));
}

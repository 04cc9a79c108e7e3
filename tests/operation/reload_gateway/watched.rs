//! A watched file is reloaded however it changes, but not while it is half written.

use std::{os::unix::fs::symlink, path::Path};

use super::*;

/// A gateway that watches its file.
async fn watching(one: &RecordingBackend) -> Stack {
    let stack = Stack::builder().in_front_of(one).start().await;
    reload(&stack, "watch = true");
    stack
}

async fn until_it_serves(stack: &Stack, backend: &RecordingBackend) {
    let client = stack.client();
    until("the watched file to be reloaded", || async {
        let before = backend.requests().len();
        assert_eq!(status(&client, "/x").await, 200);
        (backend.requests().len() > before).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_watched_file_is_reloaded_however_it_changes() {
    let (one, other) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let stack = watching(&one).await;
    let file = stack.config(Program::Gateway);
    let with = |backend: &RecordingBackend| {
        let toml = format!("[versions.v1]\nbackend = {}", at(backend));
        stack.config_with(Program::Gateway, &toml)
    };
    let (first, second) = (with(&one), with(&other));
    // In place.
    fs::write(&file, &second).unwrap();
    until_it_serves(&stack, &other).await;
    // By a file that is renamed over it.
    let new = stack.folder().join("new.toml");
    fs::write(&new, &first).unwrap();
    fs::rename(&new, &file).unwrap();
    until_it_serves(&stack, &one).await;
    // As Kubernetes changes the files of a ConfigMap: a link is switched to another folder.
    let folder = stack.folder().join("mounted");
    for (name, content) in [("..1", &first), ("..2", &second)] {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("gateway.toml"), content).unwrap();
    }
    swap_link(&folder, "..1");
    fs::remove_file(&file).unwrap();
    symlink(folder.join("..data/gateway.toml"), &file).unwrap();
    until_it_serves(&stack, &one).await;
    swap_link(&folder, "..2");
    until_it_serves(&stack, &other).await;
}

/// Switches the link `..data` to that folder, atomically.
fn swap_link(folder: &Path, to: &str) {
    symlink(to, folder.join("..data_tmp")).unwrap();
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
}

#[tokio::test]
async fn a_half_written_file_changes_nothing_until_it_is_whole() {
    let (one, other) = tokio::join!(RecordingBackend::start(), RecordingBackend::start());
    let stack = watching(&one).await;
    let file = stack.config(Program::Gateway);
    let whole = stack.config_with(
        Program::Gateway,
        &format!("[versions.v1]\nbackend = {}", at(&other)),
    );
    // It stays incomplete for longer than the gateway waits.
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    stack
        .log_with(Program::Gateway, "configuration not reloaded")
        .await;
    assert_eq!(status(&stack.client(), "/x").await, 200);
    fs::write(&file, &whole).unwrap();
    until_it_serves(&stack, &other).await;
}

//! The client libraries in `gateway/clients`, and what their `run-vectors` print.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    mem,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use serde_json::{Value, json};

use crate::documents::root;

/// The files of vectors: the command of `run-vectors` that takes a case, and the members of its answer.
const VECTORS: [(&str, &str, &[&str]); 3] = [
    ("head", "head-vectors.json", &["text", "sign"]),
    ("text", "client-vectors.json", &["text"]),
    ("sign", "sign-vectors.json", &["canonical", "sign"]),
];

/// The folder of a language's library.
#[must_use]
pub fn library(language: &str) -> PathBuf {
    root().join("gateway/clients").join(language)
}

/// Copies the folder of a language's library to `to`, which is new.
///
/// # Panics
///
/// When it cannot be copied.
pub fn copy(language: &str, to: &Path) {
    let copied = Command::new("cp")
        .arg("-r")
        .args([&library(language), to])
        .status();
    assert!(copied.is_ok_and(|status| status.success()), "{language}");
}

/// The first vector of which the library in `folder` prints something else; `None` without one.
///
/// # Panics
///
/// When its program does not run.
#[must_use]
pub fn first_difference(folder: &Path) -> Option<String> {
    let mut run = Command::new(folder.join("run-vectors"));
    let run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut run = run.expect("the language is installed");
    let cases: Vec<_> = VECTORS
        .into_iter()
        .flat_map(|(kind, file, members)| {
            let text =
                fs::read(root().join("tests/vectors").join(file)).expect("the file is there");
            let mut vectors: Value = serde_json::from_slice(&text).expect("JSON");
            let cases = vectors["cases"].as_array_mut().expect("cases");
            mem::take(cases)
                .into_iter()
                .map(move |case| (kind, members, case))
        })
        .collect();
    let lines: String = cases
        .iter()
        .map(|(kind, _, case)| format!("{}\n", json!({ *kind: case })))
        .collect();
    let mut input = run.stdin.take().expect("a pipe");
    // The program can end before it has read all.
    let writer = thread::spawn(move || input.write_all(lines.as_bytes()).is_ok());
    let mut answers = BufReader::new(run.stdout.take().expect("a pipe")).lines();
    let difference = cases
        .iter()
        .enumerate()
        .find_map(|(number, (kind, members, case))| {
            let line = answers.next().and_then(Result::ok);
            assert!(
                number > 0 || line.is_some(),
                "{} does not run",
                folder.display()
            );
            let line = line.unwrap_or_default();
            let answer: Value = serde_json::from_str(&line).unwrap_or_default();
            let wrong = members
                .iter()
                .find(|member| answer[**member] != case[**member]);
            wrong.map(|member| format!("{kind}: {}: {member}: {line}", case["name"]))
        });
    // Nothing more of it is needed.
    let _ = run.kill();
    let _ = run.wait();
    let _ = writer.join();
    difference
}

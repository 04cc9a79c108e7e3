//! The client libraries in `gateway/clients`, and what their `run-vectors` print.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::documents::root;

/// The files of vectors: what `run-vectors` calls them, and the members that it prints of each case.
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
    VECTORS.into_iter().find_map(|(kind, file, members)| {
        let file = root().join("tests/vectors").join(file);
        let text = fs::read(&file).expect("the file is there");
        let vectors: Value = serde_json::from_slice(&text).expect("JSON");
        let mut run = Command::new(folder.join("run-vectors"));
        let run = run.arg(kind).arg(&file).stdout(Stdio::piped()).spawn();
        let mut run = run.expect("the language is installed");
        let mut answers = BufReader::new(run.stdout.take().expect("a pipe")).lines();
        let cases = vectors["cases"].as_array().expect("cases");
        let difference = cases.iter().enumerate().find_map(|(number, case)| {
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
        let difference =
            difference.or_else(|| answers.next().map(|_| format!("{kind}: too many lines")));
        // Nothing more of it is needed.
        let _ = run.kill();
        let _ = run.wait();
        difference
    })
}

//! The documents: their links are valid, and the commands that they show work.
//!
//! A test program of its own, which runs after the end-to-end tests: one document's commands build a new version, which
//! loads the processors.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

mod session;

use std::{fs, path::Path, process::Command};

use end_to_end::documents::{self, Document, documents, root};
use session::Session;

/// Commands that do not run here, and why. For scripts among them bash checks the syntax.
const NOT_RUN: [(&str, &str); 7] = [
    ("scripts/test", "this test is a part of it"),
    ("scripts/bench", "takes 45 minutes"),
    ("scripts/capacity", "takes minutes"),
    ("scripts/dist", "builds for minutes"),
    ("scripts/fuzz", "builds for minutes"),
    (
        "docker",
        "scripts/compose-test runs docker-compose.yml; deployment/ checks it",
    ),
    (
        "systemctl",
        "there is no systemd; deployment/ checks the units",
    ),
];

#[test]
fn every_link_is_valid() {
    let all = documents();
    assert!(all.len() > 5, "too few documents were found");
    let mut broken = Vec::new();
    for document in &all {
        for (link, line) in &document.links {
            if link.starts_with("https://") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let folder = document.path.parent().unwrap_or(Path::new(""));
            let target = match path {
                "" => root().join(&document.path),
                path => root().join(folder).join(path),
            };
            let has_anchor = |all: &[Document]| {
                let target = fs::canonicalize(&target).unwrap();
                all.iter()
                    .filter(|other| fs::canonicalize(root().join(&other.path)).unwrap() == target)
                    .any(|other| other.anchors.contains(anchor))
            };
            if !target.exists() || !anchor.is_empty() && !has_anchor(&all) {
                broken.push(format!("{}:{line}: {link}", document.path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn scripts_that_are_not_run_exist_and_parse() {
    for document in documents() {
        for command in document.commands.iter().filter(|one| !is_run(one)) {
            let name = command.text.split_whitespace().next().unwrap();
            if !name.contains("scripts/") {
                continue;
            }
            let read = Command::new("bash")
                .arg("-n")
                .arg(root().join(name))
                .status();
            let position = format!("{}:{}", document.path.display(), command.line);
            assert!(read.unwrap().success(), "{position}: {name}");
        }
    }
}

fn is_run(command: &documents::Command) -> bool {
    let program = command.text.split_whitespace().next().unwrap_or_default();
    let program = program.strip_prefix("./").unwrap_or(program);
    !NOT_RUN.iter().any(|(name, _)| *name == program)
}

/// Each document with commands, and no other one, has its test here.
macro_rules! documents_with_commands {
    ($($test:ident: $path:literal $session:ident,)*) => {
        const WITH_COMMANDS: &[&str] = &[$($path),*];

        $(#[test]
        fn $test() {
            let all = documents();
            let document = all.iter().find(|one| one.path == Path::new($path));
            Session::$session(stringify!($test)).run(document.unwrap());
        })*
    };
}

documents_with_commands! {
    the_commands_of_the_readme_work: "README.md" in_a_copy,
    the_commands_for_backend_developers_work: "backends/README.md" in_a_copy,
    the_commands_for_operators_work: "conf/README.md" in_a_copy,
    the_commands_for_a_deployment_work: "conf/guides/deploy.md" in_a_copy,
    the_commands_for_operation_work: "conf/guides/operate.md" in_a_copy,
    the_commands_for_versions_work: "conf/guides/versions.md" in_a_copy,
    the_commands_for_alerts_work: "conf/observe/README.md" in_the_project,
    the_commands_of_the_contract_work: "gateway/protocol/CONTRACT.md" in_a_copy,
    the_commands_for_tests_work: "tests/README.md" in_the_project,
}

#[test]
fn every_document_with_commands_is_run() {
    let is_to_run = |document: &&Document| document.commands.iter().any(is_run);
    let all = documents();
    let to_run = all.iter().filter(is_to_run);
    let paths: Vec<_> = to_run.map(|one| one.path.display().to_string()).collect();
    assert_eq!(paths, WITH_COMMANDS);
}

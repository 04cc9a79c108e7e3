//! The commands that the documents show work, in a shell for each document.

use std::{collections::BTreeSet, path::Path, process::Command};

use end_to_end::documents::{self, Document, documents, root};

use super::session::Session;

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

pub(super) fn is_run(command: &documents::Command) -> bool {
    let program = command.text.split_whitespace().next().unwrap_or_default();
    let program = program.strip_prefix("./").unwrap_or(program);
    !NOT_RUN.iter().any(|(name, _)| *name == program)
}

/// The document of this path.
pub(super) fn document(path: &str) -> Document {
    let mut all = documents().into_iter();
    all.find(|one| one.path == Path::new(path)).unwrap()
}

/// The document that `life` follows.
pub(super) const OF_A_NEW_VERSION: &str = "backends/README.md";

/// Each other document with commands has its test here.
macro_rules! documents_with_commands {
    ($($test:ident: $path:literal $session:ident,)*) => {
        const WITH_COMMANDS: &[&str] = &[OF_A_NEW_VERSION, $($path),*];

        $(#[test]
        fn $test() {
            Session::$session(stringify!($test)).run(&document($path));
        })*
    };
}

documents_with_commands! {
    the_commands_of_the_readme_work: "README.md" in_a_copy,
    the_commands_for_operators_work: "conf/README.md" in_a_copy,
    the_commands_for_a_deployment_work: "conf/guides/deploy.md" in_a_copy,
    the_commands_for_operation_work: "conf/guides/operate.md" in_a_copy,
    the_commands_of_a_failover_work: "conf/guides/postgres.md" in_the_project,
    the_commands_for_many_applications_work: "conf/guides/applications.md" in_a_copy,
    the_commands_of_the_management_api_work: "conf/guides/management-api.md" in_a_copy,
    the_commands_for_versions_work: "conf/guides/versions.md" in_a_copy,
    the_commands_for_an_api_of_ones_own_work: "conf/guides/your-api.md" in_a_copy,
    the_commands_for_alerts_work: "conf/observe/README.md" in_the_project,
    the_commands_of_signing_work: "gateway/protocol/SIGNING.md" in_a_copy,
    the_commands_for_tests_work: "tests/README.md" in_the_project,
}

#[test]
fn every_document_with_commands_is_run() {
    let is_to_run = |document: &&Document| document.commands.iter().any(is_run);
    let all = documents();
    let to_run = all.iter().filter(is_to_run);
    let paths: BTreeSet<_> = to_run.map(|one| one.path.to_str().unwrap()).collect();
    assert_eq!(paths, WITH_COMMANDS.iter().copied().collect());
}

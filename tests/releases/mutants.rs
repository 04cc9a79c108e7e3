//! The vectors find each of these changes of a client library: `vectors/mutants.json`. So a library that passes them has none of
//! these mistakes.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use end_to_end::{documents::root, folder::Folder, program::output_text};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Library {
    file: String,
    mutants: Vec<Mutant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    name: String,
    /// Occurs once in the file.
    find: String,
    replace: String,
}

/// What `run-vectors` of the library in `folder` prints for each kind of vectors, up to the first that differs from the file.
fn finds(folder: &Path, name: &str) -> bool {
    let kinds = [
        ("text", "client-vectors.json", &["text"][..]),
        ("sign", "sign-vectors.json", &["canonical", "sign"]),
    ];
    kinds.into_iter().any(|(kind, file, members)| {
        let file = root().join("tests/vectors").join(file);
        let mut run = Command::new(folder.join("run-vectors"));
        let output = run.arg(kind).arg(&file).output().unwrap();
        let answers = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            !answers.is_empty(),
            "{name} does not run: {}",
            output_text(&output)
        );
        let cases: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let mut answers = answers.lines();
        cases["cases"].as_array().unwrap().iter().any(|case| {
            let answer: Value =
                serde_json::from_str(answers.next().unwrap_or("")).unwrap_or_default();
            members
                .iter()
                .any(|member| answer[*member] != case[*member])
        })
    })
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp")
        .arg("-r")
        .args([from, to])
        .status()
        .unwrap();
    assert!(copied.success());
}

fn kill_mutants(language: &str) {
    let all = fs::read(root().join("tests/vectors/mutants.json")).unwrap();
    let mut all: BTreeMap<String, Library> = serde_json::from_slice(&all).unwrap();
    let library = all.remove(language).unwrap();
    assert!(library.mutants.len() >= 10, "{language}");
    let folder = Folder::create();
    let copied = folder.path().join(language);
    copy(&root().join("gateway/clients").join(language), &copied);
    let file = copied.join(&library.file);
    let right = fs::read_to_string(&file).unwrap();
    assert!(!finds(&copied, language), "{language} itself is wrong");
    for mutant in library.mutants {
        let name = format!("{language}: {}", mutant.name);
        assert_eq!(
            right.matches(&mutant.find).count(),
            1,
            "{name}: what it replaces occurs once"
        );
        fs::write(&file, right.replace(&mutant.find, &mutant.replace)).unwrap();
        assert!(finds(&copied, &name), "{name} survives");
    }
}

macro_rules! languages {
    ($($test:ident $language:literal,)*) => {$(
        #[test]
        fn $test() {
            kill_mutants($language);
        }
    )*};
}

languages! {
    no_mutant_of_python_survives "python",
    no_mutant_of_javascript_survives "javascript",
    no_mutant_of_go_survives "go",
    no_mutant_of_java_survives "java",
    no_mutant_of_php_survives "php",
    no_mutant_of_csharp_survives "csharp",
    no_mutant_of_shell_survives "shell",
}

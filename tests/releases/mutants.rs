//! The vectors find each of these changes of a client library: `vectors/mutants.json`. So a library that passes them has none of
//! these mistakes.

use std::{collections::BTreeMap, fs};

use end_to_end::{
    client_library::{copy, first_difference},
    documents::root,
    folder::Folder,
};
use serde::Deserialize;

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

fn kill_mutants(language: &str) {
    let all = fs::read(root().join("tests/vectors/mutants.json")).unwrap();
    let mut all: BTreeMap<String, Library> = serde_json::from_slice(&all).unwrap();
    let of_language = all.remove(language).unwrap();
    assert!(of_language.mutants.len() >= 10, "{language}");
    let folder = Folder::create();
    let copied = folder.path().join(language);
    copy(language, &copied);
    let file = copied.join(&of_language.file);
    let right = fs::read_to_string(&file).unwrap();
    for mutant in of_language.mutants {
        let name = format!("{language}: {}", mutant.name);
        assert_eq!(
            right.matches(&mutant.find).count(),
            1,
            "{name}: what it replaces occurs once"
        );
        fs::write(&file, right.replace(&mutant.find, &mutant.replace)).unwrap();
        assert!(first_difference(&copied).is_some(), "{name} survives");
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

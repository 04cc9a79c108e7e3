//! Imports between the folders of the gateway run one way, in the order that is written here.

#![cfg(test)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The folders, from the wire to the commands.
const ORDER: [&str; 13] = [
    "wire",
    "tls",
    "request",
    "config",
    "directory",
    "limits",
    "phases",
    "upstream",
    "observe",
    "gateway",
    "downstream",
    "process",
    "cli",
];

type Imports = BTreeMap<String, BTreeSet<String>>;

/// The Rust files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// A file's code, without comments and tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// The names directly after `prefix`, in a path or in the outermost level of a group.
fn names_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rest in code.split(prefix).skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            names.extend(first_name(rest));
            continue;
        };
        let mut depth = 0;
        let mut item = String::new();
        for letter in group.chars() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => names.extend(first_name(&std::mem::take(&mut item))),
                _ => {}
            }
            if depth == 0 && letter != ',' {
                item.push(letter);
            }
        }
        names.extend(first_name(&item));
    }
    names
}

fn first_name(text: &str) -> Option<String> {
    let name: String = text
        .trim()
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect();
    (!name.is_empty()).then_some(name)
}

/// The modules that each of the gateway's modules imports.
fn imports() -> Imports {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut imports = Imports::new();
    for path in files(&source) {
        let module = path.strip_prefix(&source).unwrap().iter().next().unwrap();
        let module = module.to_str().unwrap().trim_end_matches(".rs").to_owned();
        let is_tests = path
            .iter()
            .any(|part| part == "tests" || part == "tests.rs");
        let is_tests = is_tests || path.ends_with("scripted.rs");
        if !is_tests && !["lib", "main"].contains(&&*module) {
            let mut names = names_after(&code(&path), "crate::");
            names.remove(&module);
            imports.entry(module).or_default().extend(names);
        }
    }
    imports
}

#[test]
fn each_folder_imports_only_those_before_it() {
    let imports = imports();
    let found: BTreeSet<_> = imports.keys().map(String::as_str).collect();
    assert_eq!(found, ORDER.into_iter().collect());
    for (place, folder) in ORDER.into_iter().enumerate() {
        for imported in &imports[folder] {
            let is_before = ORDER[..place].contains(&imported.as_str());
            assert!(is_before, "{folder} imports {imported}");
        }
    }
}

#[test]
fn the_phases_use_nothing_of_pingora() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/phases");
    let phases = files(&folder);
    assert!(phases.len() > 10);
    for path in phases {
        assert!(!code(&path).contains("pingora"), "{}", path.display());
    }
}

#[test]
fn groups_and_paths_are_found() {
    let code = "use crate::{a::{b, c}, d, e::f as g};\nuse crate::h::i;\nfn x() -> crate::j::K {}";
    let names: Vec<_> = names_after(code, "crate::").into_iter().collect();
    assert_eq!(names, ["a", "d", "e", "h", "j"]);
}

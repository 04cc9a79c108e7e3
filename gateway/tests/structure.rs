//! Imports between the gateway's modules run one way.

#![cfg(test)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

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
        if !is_tests && !["lib", "main", "scripted"].contains(&&*module) {
            let mut names = names_after(&code(&path), "crate::");
            names.remove(&module);
            imports.entry(module).or_default().extend(names);
        }
    }
    imports
}

/// A chain of imports from a module back to itself, if any.
fn cycle(imports: &Imports) -> Option<Vec<String>> {
    fn walk(imports: &Imports, chain: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        let module = chain.last().unwrap().clone();
        for next in imports.get(&module).into_iter().flatten() {
            if let Some(start) = chain.iter().position(|passed| passed == next) {
                chain.drain(..start);
                return true;
            }
            if !done.contains(next) {
                chain.push(next.clone());
                if walk(imports, chain, done) {
                    return true;
                }
                chain.pop();
            }
        }
        done.insert(module);
        false
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|module| {
        let mut chain = vec![module.clone()];
        walk(imports, &mut chain, &mut done).then_some(chain)
    })
}

#[test]
fn no_imports_form_a_cycle() {
    let imports = imports();
    assert!(imports.len() > 15, "{imports:?}");
    assert_eq!(cycle(&imports), None);
}

#[test]
fn the_phases_import_neither_pingora_nor_a_side_of_the_connection() {
    let imports = imports();
    assert!(imports["gateway"].contains("phases") && imports["http1"].contains("gateway"));
    for module in ["http1", "http2", "backend", "gateway", "server", "observe"] {
        assert!(!imports["phases"].contains(module), "{module}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/phases");
    let phases = files(&folder);
    assert!(phases.len() > 10);
    for path in phases {
        assert!(!code(&path).contains("pingora"), "{}", path.display());
    }
}

#[test]
fn groups_paths_and_cycles_are_found() {
    let code = "use crate::{a::{b, c}, d, e::f as g};\nuse crate::h::i;\nfn x() -> crate::j::K {}";
    let names: Vec<_> = names_after(code, "crate::").into_iter().collect();
    assert_eq!(names, ["a", "d", "e", "h", "j"]);
    let of = |pairs: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (one, other) in pairs {
            let names = imports.entry((*one).to_owned()).or_default();
            names.insert((*other).to_owned());
        }
        imports
    };
    assert_eq!(cycle(&of(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    let found = cycle(&of(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap();
    assert_eq!(found, ["b", "c"]);
}

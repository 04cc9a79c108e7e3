//! Imports between the folders of a program run one way, in the order that is written here, and no files import each
//! other in a circle.

#![cfg(test)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The folders of the proxy, from the wire to the listeners.
const PROXY: [&str; 14] = [
    "wire",
    "tls",
    "request",
    "config",
    "directory",
    "limits",
    "phases",
    "upstream",
    "convert",
    "observe",
    "shadow",
    "serve",
    "downstream",
    "scrape",
];

/// The folders of the management, from what decides to what shows.
const MANAGEMENT: [&str; 7] = [
    "administration",
    "reports",
    "readiness",
    "doctor",
    "operations",
    "api",
    "console",
];

/// The folders of the program.
const PROGRAM: [&str; 2] = ["process", "cli"];

/// Names that the proxy shows to the management, at most: each is a promise that the proxy keeps.
const MAX_FACADE: usize = 90;

/// The folders of the login service, from what every login needs to the program.
const LOGIN: [&str; 13] = [
    "secret", "trace", "json", "config", "records", "error", "limits", "metrics", "provider",
    "service", "flow", "http", "program",
];

/// The crates that are shipped.
const CRATES: [&str; 14] = [
    "gateway",
    "gateway/bridge",
    "gateway/kit",
    "gateway/management",
    "gateway/openapi",
    "gateway/protocol",
    "gateway/proxy",
    "gateway/release",
    "gateway/store",
    "backends/login",
    "backends/openid",
    "backends/v1",
    "backends/v2",
    "backends/all",
];

type Imports = BTreeMap<String, BTreeSet<String>>;

/// The folder with the sources of a crate.
fn source(of: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.join(of).join("src")
}

/// The Rust files below a folder, except files of tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if ["tests", "both_stores", "testing", "scripted"].contains(&name) {
            continue;
        }
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
    let mut modules = text.match_indices("#[cfg(test)]\nmod ");
    let tests = modules.find(|(at, _)| text[*at..].lines().nth(1).unwrap().ends_with('{'));
    let text = &text[..tests.map_or(text.len(), |(at, _)| at)];
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that begin with `prefix`, each as its segments after it; groups are written out.
fn paths_after(code: &str, prefix: &str) -> Vec<Vec<String>> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let starts = code.match_indices(prefix).map(|(at, _)| at);
    let starts =
        starts.filter(|at| !code[..*at].ends_with(|letter| is_word(letter) || letter == ':'));
    let mut paths = Vec::new();
    for start in starts {
        read_path(&code[start + prefix.len()..], &[], &mut paths);
    }
    paths
}

/// Reads a path or a group behind `before`, and returns what follows it.
fn read_path<'c>(code: &'c str, before: &[String], paths: &mut Vec<Vec<String>>) -> &'c str {
    let code = code.trim_start();
    if let Some(mut rest) = code.strip_prefix('{') {
        while !rest.trim_start().starts_with('}') && !rest.is_empty() {
            rest = read_path(rest, before, paths);
            let next = rest.find([',', '}']).unwrap_or(rest.len());
            rest = rest[next..].strip_prefix(',').unwrap_or(&rest[next..]);
        }
        return rest.trim_start().strip_prefix('}').unwrap_or(rest);
    }
    let end = code
        .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .unwrap_or(code.len());
    let path = [before, &[code[..end].to_owned()]].concat();
    match code[end..].strip_prefix("::") {
        Some(rest) if !rest.starts_with('<') => read_path(rest, &path, paths),
        _ => {
            paths.push(path);
            &code[end..]
        }
    }
}

/// The module that a file is, as its path in the crate.
fn module(source: &Path, path: &Path) -> Vec<String> {
    let path = path.strip_prefix(source).unwrap().with_extension("");
    let names = path.iter().map(|part| part.to_str().unwrap().to_owned());
    names
        .filter(|name| !["lib", "main"].contains(&name.as_str()))
        .collect()
}

/// The folders that each folder of a crate imports.
fn imports(source: &Path) -> Imports {
    let mut imports = Imports::new();
    for path in files(source) {
        if let Some(folder) = module(source, &path).into_iter().next() {
            let paths = paths_after(&code(&path), "crate::");
            let mut names: BTreeSet<_> = paths.into_iter().map(|path| path[0].clone()).collect();
            names.remove(&folder);
            imports.entry(folder).or_default().extend(names);
        }
    }
    imports
}

fn assert_order(of: &str, order: &[&str]) {
    let imports = imports(&source(of));
    let found: BTreeSet<_> = imports.keys().map(String::as_str).collect();
    assert_eq!(found, order.iter().copied().collect());
    for (place, folder) in order.iter().enumerate() {
        for imported in &imports[*folder] {
            let is_before = order[..place].contains(&imported.as_str());
            assert!(is_before, "{of}: {folder} imports {imported}");
        }
    }
}

/// The modules of a crate that are files, with their code and the names that they pass on from other modules.
struct Modules(BTreeMap<Vec<String>, (String, PassedOn)>);

/// Names of a module that stand for modules elsewhere.
type PassedOn = BTreeMap<String, Vec<String>>;

impl Modules {
    fn of(source: &Path) -> Self {
        let read = |path: PathBuf| {
            let (module, code) = (module(source, &path), code(&path));
            let mut passed_on = BTreeMap::new();
            for path in paths_after(&code, "use self::") {
                let path = [module.clone(), path].concat();
                passed_on.insert(path.last().unwrap().clone(), path);
            }
            (module, (code, passed_on))
        };
        Self(files(source).into_iter().map(read).collect())
    }

    /// The file that defines what a path names.
    fn defining(&self, path: &[String]) -> Option<Vec<String>> {
        let at = (0..=path.len())
            .rev()
            .find(|at| self.0.contains_key(&path[..*at]))?;
        match path
            .get(at)
            .and_then(|name| self.0[&path[..at]].1.get(name))
        {
            Some(passed_on) if passed_on != path => {
                self.defining(&[passed_on, &path[at + 1..]].concat())
            }
            _ => Some(path[..at].to_vec()),
        }
    }

    /// The files that a file imports, without the folders that it is in: they and it are one subject.
    fn imported_by(&self, module: &[String]) -> BTreeSet<Vec<String>> {
        let code = &self.0[module].0;
        let mut paths = paths_after(code, "crate::");
        for path in paths_after(code, "self::") {
            paths.push([module, &path].concat());
        }
        for path in paths_after(code, "super::") {
            let ups = path.iter().take_while(|name| *name == "super").count();
            let above = &module[..module.len().saturating_sub(1 + ups)];
            paths.push([above, &path[ups..]].concat());
        }
        let defining = paths.iter().filter_map(|path| self.defining(path));
        defining
            .filter(|imported| !module.starts_with(imported))
            .collect()
    }

    /// A way from a module by imports back to it, if there is one.
    fn circle_of(&self, module: &[String]) -> Option<Vec<String>> {
        let mut ways = vec![(module.to_vec(), vec![module.join("/")])];
        let mut reached = BTreeSet::new();
        while let Some((one, way)) = ways.pop() {
            for imported in self.imported_by(&one) {
                let way = [way.clone(), vec![imported.join("/")]].concat();
                if imported == module {
                    return Some(way);
                }
                if reached.insert(imported.clone()) {
                    ways.insert(0, (imported, way));
                }
            }
        }
        None
    }
}

#[test]
fn each_folder_imports_only_those_before_it() {
    assert_order("gateway/proxy", &PROXY);
    assert_order("gateway/management", &MANAGEMENT);
    assert_order("gateway", &PROGRAM);
    assert_order("backends/login", &LOGIN);
}

#[test]
fn no_files_import_each_other() {
    for of in CRATES {
        let modules = Modules::of(&source(of));
        for module in modules.0.keys() {
            assert_eq!(modules.circle_of(module), None, "{of}");
        }
    }
}

#[test]
fn the_phases_use_nothing_of_pingora() {
    let phases = files(&source("gateway/proxy").join("phases"));
    assert!(phases.len() > 10);
    for path in phases {
        assert!(!code(&path).contains("pingora"), "{}", path.display());
    }
}

/// The names that the files of a crate use of the proxy.
fn used_of_the_proxy(of: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in files(&source(of)) {
        let paths = paths_after(&code(&path), "signpost_proxy::");
        names.extend(paths.into_iter().map(|path| path.join("::")));
    }
    names
}

#[test]
fn the_management_reaches_the_proxy_by_a_small_facade() {
    let used = used_of_the_proxy("gateway/management");
    assert!(used.len() > 20, "{used:?}");
    assert!(used.len() <= MAX_FACADE, "{}: {used:?}", used.len());
    let of_the_program = used.iter().find(|name| name.starts_with("program::"));
    assert_eq!(of_the_program, None);
}

/// The crates that `cargo tree` prints for the proxy.
fn tree_of_the_proxy(arguments: &[&str]) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--prefix", "none"])
        .args(["--package", "signpost-proxy", "--edges", "normal"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(tree.status.success(), "{tree:?}");
    let tree = String::from_utf8(tree.stdout).unwrap();
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_proxy_has_nothing_that_only_operators_need() {
    let crates = tree_of_the_proxy(&[]);
    assert!(crates.contains("pingora"), "{crates:?}");
    for operators in ["axum", "csv", "maud", "signpost-management", "utoipa"] {
        assert!(!crates.contains(operators), "{operators}");
    }
    // pingora has a command line of its own; nothing of Signpost's may need one here.
    let with_commands = tree_of_the_proxy(&["--invert", "clap", "--depth", "1"]);
    assert_eq!(
        with_commands,
        ["clap", "pingora-core"].map(str::to_owned).into()
    );
}

#[test]
fn groups_and_paths_are_found() {
    let code = "use crate::{a::{b, c}, d, e::f as g};\nuse crate::h::i;\nfn x() -> crate::j::K {}";
    let paths: Vec<_> = paths_after(code, "crate::")
        .iter()
        .map(|path| path.join("."))
        .collect();
    assert_eq!(paths, ["a.b", "a.c", "d", "e.f", "h.i", "j.K"]);
}

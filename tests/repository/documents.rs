//! The links of the documents, the list of the scripts, and the width of the map of the code.

use std::{fs, path::Path};

use end_to_end::documents::{Document, documents, root};

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
fn every_script_has_its_line() {
    let list = fs::read_to_string(root().join("scripts/README.md")).unwrap();
    for entry in fs::read_dir(root().join("scripts")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_listed = list.contains(&format!("`{name}`")) || list.contains(&format!("`{name} "));
        assert!(is_listed || name == "README.md", "{name}");
    }
}

/// In characters. Whoever reads the map in a terminal or in a diff sees a whole line, and no cell of a table is longer.
const MAX_LINE: usize = 160;

#[test]
fn no_line_of_the_map_of_the_code_is_long() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let is_long = |line: &&str| line.chars().count() > MAX_LINE;
    let long: Vec<_> = text.lines().filter(is_long).collect();
    assert!(long.is_empty(), "{long:#?}");
}

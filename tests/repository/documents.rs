//! The links of the documents, and the list of the scripts.

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

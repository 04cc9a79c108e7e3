//! The links of the documents.

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

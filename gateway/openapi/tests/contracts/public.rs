//! Consecutive versions of public APIs: `../public/README.md` says where they are from.
//!
//! `../public/expected.txt` has what was found to break clients of each pair.

use std::{collections::BTreeMap, fs, io::Read as _, path::Path};

use flate2::read::GzDecoder;
use signpost_openapi::{Document, compare};

/// The versions of each API, oldest first.
fn documents() -> BTreeMap<String, Vec<(String, Vec<u8>)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/public");
    let mut all: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(name) = name
            .strip_suffix(".json.gz")
            .or_else(|| name.strip_suffix(".yaml.gz"))
        else {
            continue;
        };
        let (api, version) = name.rsplit_once('-').unwrap();
        let mut text = Vec::new();
        GzDecoder::new(fs::File::open(&path).unwrap())
            .read_to_end(&mut text)
            .unwrap();
        all.entry(api.to_owned())
            .or_default()
            .push((version.to_owned(), text));
    }
    let number = |version: &str| {
        version
            .split('.')
            .map(|part| part.parse::<u32>().unwrap())
            .collect::<Vec<_>>()
    };
    for versions in all.values_mut() {
        versions.sort_by_key(|(version, _)| number(version));
    }
    all
}

#[test]
fn what_breaks_between_public_versions_is_as_expected() {
    let expected = include_str!("../public/expected.txt");
    let (mut found, mut pairs) = (String::new(), 0);
    for (api, versions) in documents() {
        for [(old, old_text), (new, new_text)] in versions.array_windows() {
            let [old_document, new_document] =
                [old_text, new_text].map(|text| Document::read(text).unwrap());
            let report = compare(&old_document, &new_document, [old, new].map(String::as_str));
            assert!(report.is_complete);
            found += &format!("# {api} {old} → {new}\n");
            for finding in report.findings.iter().filter(|finding| finding.is_breaking) {
                let (place, text) = (&finding.place, &finding.text);
                found += &format!("{}, {place}: {text}\n", finding.operation);
            }
            pairs += 1;
        }
    }
    assert!(pairs >= 40, "{pairs}");
    if found != expected {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("found.txt");
        fs::write(&file, found).unwrap();
        panic!(
            "other findings than in tests/public/expected.txt: {}",
            file.display()
        );
    }
}

#[test]
fn a_document_does_not_differ_from_itself() {
    for (name, text) in documents().into_values().flatten() {
        let [one, same] = [&text, &text].map(|text| Document::read(text).unwrap());
        assert_eq!(compare(&one, &same, [&name, &name]).findings, []);
    }
}

#[test]
fn an_edit_of_a_public_document_is_found() {
    let mut edits = 0;
    for (name, text) in documents().into_values().flatten() {
        let old = Document::read(&text).unwrap();
        // YAML is the same as JSON to what follows.
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(&text) else {
            continue;
        };
        for (path, item) in value["paths"].as_object().unwrap().iter().take(2) {
            for method in item
                .as_object()
                .unwrap()
                .keys()
                .filter(|key| *key != "parameters")
            {
                let pointer = format!(
                    "/paths/{}/{method}",
                    path.replace('~', "~0").replace('/', "~1")
                );
                let operation = format!("{} {path}", method.to_uppercase());
                let found = |edit: &dyn Fn(&mut serde_json::Value), kind: &str| {
                    let mut edited = value.clone();
                    edit(edited.pointer_mut(&pointer).unwrap());
                    let new = Document::read(edited.to_string().as_bytes()).unwrap();
                    let report = compare(&old, &new, [&name, &name]);
                    let breaking: Vec<_> = report
                        .findings
                        .iter()
                        .filter(|finding| finding.is_breaking)
                        .collect();
                    let [only] = *breaking else {
                        panic!("{name} {operation} {kind}: {breaking:#?}")
                    };
                    assert_eq!((&*only.operation, &*only.kind), (&*operation, kind));
                };
                found(
                    &|operation| *operation = serde_json::Value::Null,
                    if item.as_object().unwrap().len() > 1 {
                        "operation-removed"
                    } else {
                        "path-removed"
                    },
                );
                found(
                    &|operation| {
                        let added = serde_json::json!({ "in": "query", "name": "edited", "required": true });
                        match operation["parameters"].as_array_mut() {
                            Some(all) => all.push(added),
                            None => operation["parameters"] = serde_json::json!([added]),
                        }
                    },
                    "required-parameter-added",
                );
                found(
                    &|operation| operation["security"] = serde_json::json!([{ "edited": [] }]),
                    "security-removed",
                );
                edits += 3;
            }
        }
    }
    assert!(edits > 200, "{edits}");
}

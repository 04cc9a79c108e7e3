//! Small pairs, each with the changes that break clients: all of them are found, and nothing else.

use signpost_openapi::{Document, compare};

const PAIRS: &str = include_str!("seeded.txt");

#[test]
fn what_breaks_is_found_and_nothing_else() {
    let (mut pairs, mut harmless) = (0, 0);
    for pair in PAIRS.split("\n# ") {
        let (name, pair) = pair.split_once('\n').unwrap();
        let [old, new, expected] = pair
            .splitn(3, "\n---")
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        let read = |text: &str| {
            Document::read(format!("openapi: 3.0.3\n{}", text.trim()).as_bytes()).unwrap()
        };
        let report = compare(&read(old), &read(new), ["v1", "v2"]);
        assert!(report.is_complete, "{name}");
        let breaking = report.findings.iter().filter(|finding| finding.is_breaking);
        let found = breaking.map(|finding| {
            format!(
                "{} | {} | {}",
                finding.operation, finding.place, finding.kind
            )
        });
        let mut found: Vec<_> = found.collect();
        found.sort();
        let mut expected: Vec<_> = expected.trim().lines().collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{name}");
        pairs += 1;
        harmless += usize::from(expected.is_empty());
    }
    assert!(pairs >= 60 && harmless >= 20, "{pairs} {harmless}");
}

//! `OpenAPI` documents: what one promises, and what differs in another one.

use signpost_openapi::{Document, compare};

/// Reads two documents, with a line `===` between them, and compares them.
///
/// # Panics
///
/// When a document differs from itself, or two comparisons find different things.
pub fn contracts(input: &[u8]) -> bool {
    let mut texts = input.split_inclusive(|byte| *byte == b'\n');
    let length: usize = texts
        .by_ref()
        .take_while(|line| *line != b"===\n")
        .map(<[u8]>::len)
        .sum();
    let (old, new) = input.split_at(length);
    let (Ok(old), Ok(new)) = (
        Document::read(old),
        Document::read(new.strip_prefix(b"===\n").unwrap_or_default()),
    ) else {
        return false;
    };
    for document in [&old, &new] {
        let report = compare(document, document, ["v1", "v1"]);
        assert!(
            report.breaking() == 0,
            "a document differs from itself: {:?}",
            report.findings
        );
    }
    let findings = || compare(&old, &new, ["v1", "v2"]).findings;
    assert_eq!(findings(), findings(), "compared twice");
    true
}

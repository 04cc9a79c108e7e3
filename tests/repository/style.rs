//! The style of documents, as far as a test can see it: short lines, short cells of tables, short sentences.

use std::fs;

use end_to_end::documents::{documents, root};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Of a line, in characters, without the targets of its links. Rows of tables are one line, so their cells have a limit.
const MAX_LINE: usize = 120;
/// Of a table's cell, in characters as shown.
const MAX_CELL: usize = 160;
/// Of a table's cell.
const MAX_CELL_SENTENCES: usize = 2;
/// Of a sentence; a piece of code counts as one.
const MAX_WORDS: usize = 30;

/// Lines that break a rule, as `LINE: what`.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let length = without_targets(line).chars().count();
        if !line.starts_with('|') && length > MAX_LINE {
            faults.push(format!("{}: a line of {length} characters", number + 1));
        }
    }
    // The text of the present block, and where it began.
    let (mut block, mut start, mut is_code) = (String::new(), 0, false);
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let line = text[..range.start].matches('\n').count() + 1;
        match event {
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Start(Tag::Paragraph | Tag::Item | Tag::TableCell | Tag::Heading { .. }) => {
                check_sentences(&mut block, start, &mut faults);
                start = line;
            }
            Event::End(TagEnd::TableCell) => {
                let (length, sentences) = (block.chars().count(), sentences(&block).len());
                if length > MAX_CELL {
                    faults.push(format!("{line}: a cell of {length} characters"));
                }
                if sentences > MAX_CELL_SENTENCES {
                    faults.push(format!("{line}: a cell of {sentences} sentences"));
                }
                check_sentences(&mut block, line, &mut faults);
            }
            Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_)) => {
                check_sentences(&mut block, start, &mut faults);
            }
            Event::Text(part) if !is_code => block.push_str(&part),
            Event::Code(code) => {
                block.extend(["`", &code.replace(char::is_whitespace, "_"), "`"]);
            }
            Event::SoftBreak | Event::HardBreak => block.push(' '),
            _ => {}
        }
    }
    faults
}

/// A line without the targets of its links.
fn without_targets(line: &str) -> String {
    let mut parts = line.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.split_once(')').map_or("", |(_, rest)| rest);
        text + "]" + rest
    })
}

fn check_sentences(block: &mut String, line: usize, faults: &mut Vec<String>) {
    for sentence in sentences(block) {
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        let words = sentence.split_whitespace().filter(is_word).count();
        if words > MAX_WORDS {
            let beginning: String = sentence.chars().take(60).collect();
            faults.push(format!("{line}: a sentence of {words} words: {beginning}…"));
        }
    }
    block.clear();
}

/// The sentences of a text: each ends in `.`, `?` or `!` before a space and a capital letter, a digit or code.
fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut rest = text.trim();
    let mut from = 0;
    while let Some(space) = rest[from..].find(' ').map(|at| from + at) {
        let closing = ['"', '”', ')', '`', ' '];
        let ends = rest[..space]
            .trim_end_matches(closing)
            .ends_with(['.', '?', '!']);
        let next = rest[space..].trim_start_matches([' ', '"', '“', '(']);
        let begins = next.starts_with(|letter: char| {
            letter.is_uppercase() || letter.is_ascii_digit() || letter == '`'
        });
        if ends && begins {
            sentences.push(&rest[..space]);
            rest = rest[space..].trim_start();
            from = 0;
        } else {
            from = space + 1;
        }
    }
    sentences.extend((!rest.is_empty()).then_some(rest));
    sentences
}

#[test]
fn every_document_is_written_in_short_lines_cells_and_sentences() {
    let mut all = Vec::new();
    // The bench writes its results.
    let written = |path: &&end_to_end::documents::Document| {
        !path
            .path
            .components()
            .any(|part| part.as_os_str() == "results")
    };
    for document in documents().iter().filter(written) {
        let text = fs::read_to_string(root().join(&document.path)).unwrap();
        let of_document = |fault: String| format!("{}:{fault}", document.path.display());
        all.extend(faults(&text).into_iter().map(of_document));
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn a_long_line_cell_or_sentence_is_a_fault() {
    let many = |word: &str, count| vec![word; count].join(" ");
    let (ten, sixteen) = (many("word", 10), many("w", 16));
    let long = "x".repeat(161);
    for (text, number) in [
        ("Short. And short.".to_owned(), 0),
        (format!("{ten}\n{ten}\n{ten}\nword"), 1),
        (format!("`{}`", many("a", 31)), 0),
        (format!("[{}](https://{long})", many("a", 30)), 0),
        (format!("- {sixteen}\n- {sixteen}"), 0),
        (format!("{sixteen}.\nW {sixteen}"), 0),
        (format!("{sixteen} e.g.\nw {sixteen}"), 1),
        (format!("| a |\n| --- |\n| {long} |"), 1),
        (format!("| a |\n| --- |\n| {sixteen} |\n| {sixteen} |"), 0),
        ("| a |\n| --- |\n| One. Two. Three. |".to_owned(), 1),
        (format!("```\n{}\n```\n", &long[..121]), 1),
    ] {
        let found = faults(&text);
        assert_eq!(found.len(), number, "{text}: {found:?}");
    }
}

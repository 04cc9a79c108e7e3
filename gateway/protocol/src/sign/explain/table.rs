//! The table of departures, and the changes of names and values.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

/// The words of each row of a kind.
pub(super) fn rows(kind: &str) -> impl Iterator<Item = &'static [String]> {
    static ROWS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
        let lines = include_str!("departures.txt").lines();
        let rows = lines.filter(|line| !line.starts_with('#'));
        rows.map(|line| line.split(' ').map(word).collect())
            .collect()
    });
    let rows = ROWS.iter().filter(move |row| row[0] == kind);
    rows.map(|row| &row[1..])
}

fn word(written: &str) -> String {
    let (word, backslash) = (if written == "-" { "" } else { written }, "\0");
    let word = word.replace("\\\\", backslash).replace("\\n", "\n");
    let word = word.replace("\\r", "\r").replace("\\s", " ");
    word.replace("\\b", "\u{feff}").replace(backslash, "\\")
}

/// What becomes of a name or a value by a row: it has the variant of the hint's text, what is done, and words for that.
pub(super) fn changed(row: &[String], text: &str) -> Vec<u8> {
    let mut words = row[2..].as_chunks::<2>().0.iter();
    let is_whole = text.len() < 10 && text.parse::<u32>().is_ok();
    let changed = match &*row[1] {
        "trim" => text.trim().to_owned(),
        "nfc" => text.nfc().collect(),
        "nfd" => text.nfd().collect(),
        "lower" => text.to_lowercase(),
        "upper" => text.to_uppercase(),
        "decimal" if is_whole => [text, ".0"].concat(),
        "whole" if text.contains('.') && text.parse::<f64>().is_ok() => {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        "before" => text.split(&*row[2]).next().unwrap_or_default().to_owned(),
        // As Java writes ISO 8859-1: question marks for what it does not have.
        "latin" => {
            return text
                .chars()
                .map(|one| u8::try_from(one).unwrap_or(b'?'))
                .collect();
        }
        // UTF-8 that was read as ISO 8859-1, and encoded a second time.
        "twice" => text.bytes().map(char::from).collect(),
        "word" => words
            .find(|[old, _]| old == text)
            .map_or(text, |[_, new]| new)
            .to_owned(),
        "all" => words.fold(text.to_owned(), |text, [old, new]| {
            text.replace(&**old, new)
        }),
        _ => text.to_owned(),
    };
    changed.into()
}

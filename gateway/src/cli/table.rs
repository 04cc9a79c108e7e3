//! Tables of text, for people.

use std::{array, ops::Range};

use signpost_protocol::app::is_invisible;

use super::print_line;

/// The lines of a table: columns as wide as their widest cell, those of `numbers` aligned to the right.
pub(super) fn table_lines<const N: usize>(
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    numbers: Range<usize>,
) -> Vec<String> {
    let rows = rows.map(|row| row.map(|cell| printable(&cell)));
    let rows: Vec<_> = [heads.map(str::to_owned)].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = array::from_fn(|column| width(column).unwrap_or(0));
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).enumerate();
        let cells = cells.map(|(column, (cell, width))| {
            if numbers.contains(&column) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Prints a table without numbers.
pub(super) fn print_table<const N: usize>(
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    for line in table_lines(heads, rows, 0..0) {
        print_line(&line);
    }
}

/// The text with its control and format characters escaped: a terminal would interpret them, or show other text around
/// them.
pub(super) fn printable(text: &str) -> String {
    escaped(text, |character, out| {
        out.extend(character.escape_unicode());
    })
}

/// JSON with the same characters escaped in its way. They are only inside of strings.
pub(super) fn printable_json(json: &str) -> String {
    escaped(json, |character, out| {
        let mut units = [0; 2];
        let units = character.encode_utf16(&mut units).iter();
        out.extend(units.map(|unit| format!("\\u{unit:04x}")));
    })
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_invisible(character) {
            escape(character, &mut shown);
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn columns_are_aligned_and_control_characters_are_not_shown() {
        let lines = |last: &str, numbers| {
            let row = ["two", "1", last].map(str::to_owned);
            table_lines(["A", "LONG", "END"], [row].into_iter(), numbers)
        };
        assert_eq!(lines("x", 1..2), ["A    LONG  END", "two     1  x"]);
        assert_eq!(lines("x", 0..0), ["A    LONG  END", "two  1     x"]);
        let shown = lines("\u{1b}[2J\u{202e}", 0..0);
        assert_eq!(shown, ["A    LONG  END", r"two  1     \u{1b}[2J\u{202e}"]);
    }

    #[test]
    fn characters_that_change_the_text_around_them_are_escaped_in_json() {
        let shown = printable_json(&json!({ "a": "x\u{202e}y\u{e0041}\u{1b}é" }).to_string());
        assert_eq!(shown, r#"{"a":"x\u202ey\udb40\udc41\u001bé"}"#);
        let read: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(read["a"], "x\u{202e}y\u{e0041}\u{1b}é");
    }
}

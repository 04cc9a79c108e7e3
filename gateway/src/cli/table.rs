//! Tables of text, for people.

use std::{array, ops::Range};

use serde::Serialize;
use serde_json::json;

use super::print_line;
pub(super) use signpost_management::administration::printable::{
    printable, printable_json, printable_lines,
};

/// The lines of a table. Each column is as wide as its widest cell. The columns `numbers` are aligned to the right.
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

/// Prints items of the API as JSON, or as a table without numbers.
pub(super) fn print_list<T: Serialize, const N: usize>(
    items: &[T],
    heads: [&str; N],
    cells: impl Fn(&T) -> [String; N],
    as_json: bool,
) {
    if as_json {
        print_line(&printable_json(&json!(items).to_string()));
    } else {
        print_table(heads, items.iter().map(cells));
    }
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

/// `1 change`, `2 changes`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
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
}

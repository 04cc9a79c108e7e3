//! Tables of text, for people.

use std::ops::Range;

/// The lines of a table of rows: columns as wide as their widest cell, those of `numbers` aligned to the right.
pub(super) fn table_lines<R: AsRef<[String]>>(rows: &[R], numbers: Range<usize>) -> Vec<String> {
    let length = |cell: &String| cell.chars().count();
    let width = |column| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(column));
        cells.map(length).max().unwrap_or(0)
    };
    let columns = rows.first().map_or(0, |row| row.as_ref().len());
    let widths: Vec<_> = (0..columns).map(width).collect();
    let line = |row: &R| {
        let cells = row.as_ref().iter().zip(&widths).enumerate();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["A", "LONG", "END"], ["two", "1", "x"]].map(|row| row.map(str::to_owned));
        assert_eq!(table_lines(&rows, 1..2), ["A    LONG  END", "two     1  x"]);
        assert_eq!(table_lines(&rows, 0..0), ["A    LONG  END", "two  1     x"]);
    }
}

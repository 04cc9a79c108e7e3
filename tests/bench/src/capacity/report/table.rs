//! Markdown tables, and the format of their figures.

use std::fmt;

/// A table whose first columns are text, the others figures.
#[derive(Debug)]
pub(super) struct Table {
    text: String,
}

impl Table {
    /// A table with these columns, of which the first `words` are text.
    pub(super) fn new(columns: &[&str], words: usize) -> Self {
        let mut table = Self {
            text: String::new(),
        };
        table.row(columns);
        table.row((0..columns.len()).map(|index| if index < words { "---" } else { "---:" }));
        table
    }

    /// Adds a row.
    pub(super) fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.text.push('|');
        for cell in cells {
            self.text.push(' ');
            self.text += cell.as_ref();
            self.text += " |";
        }
        self.text.push('\n');
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Formats a number with commas between thousands.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a figure with about three significant digits; more before the decimal point.
pub(super) fn three_digits(figure: f64) -> String {
    if figure < 9.995 {
        format!("{figure:.2}")
    } else if figure < 99.95 {
        format!("{figure:.1}")
    } else {
        grouped(figure.round() as usize)
    }
}

/// Formats KiB as MiB.
pub(super) fn mebibytes(kib: u64) -> String {
    format!("{:.1}", kib as f64 / 1024.0)
}

//! Tables of Markdown, and figures in them.

use std::fmt;

/// A table: the first columns are words, those behind them figures.
#[derive(Debug)]
pub(super) struct Table {
    text: String,
}

impl Table {
    /// With these columns, of which so many are words.
    pub(super) fn new(columns: &[&str], words: usize) -> Self {
        let mut table = Self {
            text: String::new(),
        };
        table.row(columns);
        table.row((0..columns.len()).map(|place| if place < words { "---" } else { "---:" }));
        table
    }

    /// One more row.
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

/// With commas between thousands.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// With about three digits that count; more where they stand before the point.
pub(super) fn three_digits(figure: f64) -> String {
    if figure < 9.995 {
        format!("{figure:.2}")
    } else if figure < 99.95 {
        format!("{figure:.1}")
    } else {
        grouped(figure.round() as usize)
    }
}

/// From KiB.
pub(super) fn mebibytes(kib: u64) -> String {
    format!("{:.1}", kib as f64 / 1024.0)
}

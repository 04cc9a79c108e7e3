//! What a store answers when a test asks it directly: rows of text, the same from every kind of store.

/// A row; `None` is null, bytes are hexadecimal digits.
pub type Row = Vec<Option<String>>;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows(pub Vec<Row>);

impl Rows {
    /// The one number that was asked for.
    ///
    /// # Panics
    ///
    /// When the answer is none.
    #[must_use]
    pub fn number(&self) -> i64 {
        match &*self.0 {
            [row] if row.len() == 1 => row[0].as_ref().and_then(|value| value.parse().ok()),
            _ => None,
        }
        .unwrap_or_else(|| panic!("not one number: {self:?}"))
    }

    /// Every value, row by row; nulls are left out.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().flatten().map(String::as_str)
    }
}

//! Query results: rows of text, in the same form for both kinds of store.

/// A row; `None` is null, bytes are in hex.
pub type Row = Vec<Option<String>>;

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows(pub Vec<Row>);

impl Rows {
    /// The only value, as a number.
    ///
    /// # Panics
    ///
    /// When the result is not one number.
    #[must_use]
    pub fn number(&self) -> i64 {
        match &*self.0 {
            [row] if row.len() == 1 => row[0].as_ref().and_then(|value| value.parse().ok()),
            _ => None,
        }
        .unwrap_or_else(|| panic!("not one number: {self:?}"))
    }

    /// Every value, row by row, without nulls.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().flatten().map(String::as_str)
    }
}

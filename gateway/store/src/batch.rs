//! Many rows for one statement.

use crate::Value;

/// Stands for the given rows in a [`Batch`], as a table with the name `given`.
pub const GIVEN: &str = "{given}";

/// Many rows to write.
pub struct Batch {
    /// `INSERT … SELECT … FROM {given} ORDER BY … ON CONFLICT …`. The order makes processes lock rows in the same one,
    /// so that they do not wait for each other in a circle.
    pub sql: String,
    /// Names and Postgres' types of the given columns.
    pub columns: &'static [(&'static str, &'static str)],
    /// The given rows.
    pub rows: Vec<Vec<Value>>,
}

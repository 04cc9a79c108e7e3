//! Parameters of statements, in the types that both databases have.

use std::{error::Error, fmt};

use bytes::BytesMut;
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::time::Timestamp;

/// A parameter, or a column of a row to write.
#[derive(Clone)]
pub enum Value {
    /// No value.
    Null,
    /// A number, or a flag: 0 or 1.
    Number(i64),
    /// A string in UTF-8.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Stands for the given rows in a [`Batch`], as a table with the name `given`.
pub(crate) const GIVEN: &str = "{given}";

/// Many rows to write by one statement.
pub struct Batch {
    /// `INSERT … SELECT … FROM {given} ORDER BY … ON CONFLICT …`; for an `UPDATE`, `Store::given_for_update`. The order makes
    /// processes lock rows in the same one, so that they do not wait for each other in a circle.
    pub sql: String,
    /// The given columns with Postgres' types: `key bytea, at bigint`.
    pub columns: &'static str,
    /// The rows in place of `{given}`, each with a value per column.
    pub rows: Vec<Vec<Value>>,
}

impl Batch {
    /// Names and types of the given columns.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.columns
            .split(", ")
            .filter_map(|column| column.split_once(' '))
    }
}

/// The values of a statement, in the order of its parameters.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::Value::from($value)),*] };
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Number(flag.into())
    }
}

impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        Self::Number(time.as_millis())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(bytes: &[u8; N]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            // SQLite has no booleans, so a flag is a number here; only the column's type tells them apart.
            Self::Number(number) if *kind == Type::BOOL => (*number != 0).to_sql(kind, out),
            Self::Number(number) if *kind == Type::INT8 => number.to_sql(kind, out),
            Self::Text(text) if *kind == Type::TEXT => text.to_sql(kind, out),
            Self::Bytes(bytes) if *kind == Type::BYTEA => bytes.to_sql(kind, out),
            _ => Err(format!("{self:?} does not go into a column of type {kind}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        // `to_sql` checks the type against the value.
        true
    }

    to_sql_checked!();
}

/// Prints only the kind: stored values are personal data.
impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Null => "NULL",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "bytes",
        })
    }
}

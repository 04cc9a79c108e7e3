//! Converting a SQLite value for a Postgres column.

use std::{borrow::Cow, error::Error, fmt};

use bytes::BytesMut;
use rusqlite::types::ValueRef;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::CopyError;

/// The character that Postgres cannot store in a text.
const NUL: char = '\0';
/// The replacement character (Unicode, U+FFFD).
const REPLACEMENT: &str = "\u{fffd}";
/// The only table with free text from clients, in which characters may be replaced.
const FREE_TEXT_TABLE: &str = "events";

/// A value, borrowed from the row.
pub(super) enum Value<'r> {
    Null,
    Number(i64),
    Text(Cow<'r, str>),
    Bytes(&'r [u8]),
}

impl<'r> Value<'r> {
    /// Reads a value; `table` and `column` are for the error.
    pub(super) fn read(
        value: ValueRef<'r>,
        table: &'static str,
        column: &str,
    ) -> Result<Self, CopyError> {
        let unfit = || CopyError::Unfit {
            table,
            column: column.to_owned(),
        };
        match value {
            ValueRef::Null => Ok(Self::Null),
            ValueRef::Integer(number) => Ok(Self::Number(number)),
            ValueRef::Blob(bytes) => Ok(Self::Bytes(bytes)),
            ValueRef::Text(bytes) => {
                let text = std::str::from_utf8(bytes).map_err(|_| unfit())?;
                match text.contains(NUL) {
                    false => Ok(Self::Text(text.into())),
                    true if table == FREE_TEXT_TABLE => {
                        Ok(Self::Text(text.replace(NUL, REPLACEMENT).into()))
                    }
                    true => Err(unfit()),
                }
            }
            // No table has such a column.
            ValueRef::Real(_) => Err(unfit()),
        }
    }

    /// Whether characters were replaced.
    pub(super) fn is_replaced(&self) -> bool {
        matches!(self, Self::Text(Cow::Owned(_)))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
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
impl fmt::Debug for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Null => "NULL",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "bytes",
        })
    }
}

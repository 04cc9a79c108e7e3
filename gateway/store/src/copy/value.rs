//! A value of SQLite's on its way into a column of Postgres'.

use std::{borrow::Cow, error::Error, fmt};

use bytes::BytesMut;
use rusqlite::types::ValueRef;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::CopyError;

/// The one letter of a text that Postgres cannot hold.
const NUL: char = '\0';
/// What stands for a letter that is lost (Unicode, U+FFFD).
const REPLACEMENT: &str = "\u{fffd}";
/// The only table with texts that mean nothing to us, and may be anything.
const FREE_TEXTS: &str = "events";

/// A value, borrowed from the row.
pub(super) enum Value<'r> {
    Null,
    Number(i64),
    Text(Cow<'r, str>),
    Bytes(&'r [u8]),
}

impl<'r> Value<'r> {
    /// `table` and `column` say where it is from.
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
                    true if table == FREE_TEXTS => {
                        Ok(Self::Text(text.replace(NUL, REPLACEMENT).into()))
                    }
                    true => Err(unfit()),
                }
            }
            // No table of ours has any.
            ValueRef::Real(_) => Err(unfit()),
        }
    }

    /// Whether it is not quite what was read.
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
        // The value decides.
        true
    }

    to_sql_checked!();
}

/// Which kind it is, and no more: what people have stored is theirs.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Null => "NULL",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::Bytes(_) => "bytes",
        })
    }
}

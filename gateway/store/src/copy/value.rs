//! Converting a SQLite value for a Postgres column.

use rusqlite::types::ValueRef;

use super::CopyError;
use crate::Value;

/// The character that Postgres cannot store in a text.
const NUL: char = '\0';
/// The replacement character (Unicode, U+FFFD).
const REPLACEMENT: &str = "\u{fffd}";
/// The only table with free text from clients, in which characters may be replaced.
const FREE_TEXT_TABLE: &str = "events";

/// Reads a value, and whether characters were replaced; `table` and `column` are for the error.
pub(super) fn read(
    value: ValueRef<'_>,
    table: &str,
    column: &str,
) -> Result<(Value, bool), CopyError> {
    let unfit = || CopyError::Unfit {
        table: table.to_owned(),
        column: column.to_owned(),
    };
    let value = match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Number(number),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Text(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|_| unfit())?;
            match text.contains(NUL) {
                false => Value::from(text),
                true if table == FREE_TEXT_TABLE => {
                    return Ok((Value::Text(text.replace(NUL, REPLACEMENT)), true));
                }
                true => return Err(unfit()),
            }
        }
        // No migration may create such a column.
        ValueRef::Real(_) => return Err(unfit()),
    };
    Ok((value, false))
}

//! A field line, and where its parts are in a head. RFC 9112 section 5.

use memchr::memchr;
use smallvec::SmallVec;

use super::bytes::{TOKEN, has_control_but_tabs, is};

/// As many fields as most heads have; more go to the heap.
const USUAL_FIELDS: usize = 16;

/// The fields of a head, in order.
pub(crate) type Fields = SmallVec<[Field; USUAL_FIELDS]>;

/// A field's name, and its value without the white space around it.
pub(crate) type NameAndValue<'a> = (&'a [u8], &'a [u8]);

/// A stretch of a head. A head has at most 65,535 bytes, so that two bytes hold a place in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    start: u16,
    end: u16,
}

/// Where a field's name and value are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Field {
    name: Span,
    value: Span,
}

/// What is wrong with a field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldFault {
    /// Anything that RFC 9112 has no reading for, in words for the log.
    Malformed(&'static str),
    /// It lies beyond the 65,535th byte.
    TooFar,
}

impl Span {
    /// From `start` up to `end`.
    #[must_use]
    pub(crate) fn new(start: usize, end: usize) -> Option<Self> {
        Some(Self {
            start: u16::try_from(start).ok()?,
            end: u16::try_from(end).ok()?,
        })
    }

    /// That stretch of `head`.
    #[must_use]
    pub(crate) fn of(self, head: &[u8]) -> &[u8] {
        &head[usize::from(self.start)..usize::from(self.end)]
    }

    /// Its first place.
    #[must_use]
    pub(crate) fn start(self) -> usize {
        usize::from(self.start)
    }
}

impl Field {
    /// Name and value, in the head that it was found in.
    #[must_use]
    pub(crate) fn of(self, head: &[u8]) -> NameAndValue<'_> {
        (self.name.of(head), self.value.of(head))
    }

    /// Where the value is.
    #[must_use]
    pub(crate) const fn value(self) -> Span {
        self.value
    }
}

/// Reads the field lines of a whole head, from `start` to its empty line, calling `each` for every field.
///
/// The head was scanned by [`HeadScanner`](super::scan::HeadScanner): a carriage return stands before each line feed.
///
/// # Errors
///
/// The first malformed line, or the first error of `each`.
pub(crate) fn read_fields<E: From<FieldFault>>(
    head: &[u8],
    mut start: usize,
    fields: &mut Fields,
    mut each: impl FnMut(Field, NameAndValue<'_>) -> Result<(), E>,
) -> Result<(), E> {
    while let Some(found) = memchr(b'\n', &head[start..]) {
        let end = start + found.saturating_sub(1);
        if end == start {
            break;
        }
        let field = read_field(head, start, end)?;
        each(field, field.of(head))?;
        fields.push(field);
        start = end + 2;
    }
    Ok(())
}

fn read_field(head: &[u8], start: usize, end: usize) -> Result<Field, FieldFault> {
    let line = &head[start..end];
    // A line that begins with white space (an obsolete fold) has no token before its colon either.
    let name_length = line.iter().position(|&byte| !is(byte, TOKEN));
    let colon = match name_length {
        Some(length) if length > 0 && line[length] == b':' => length,
        _ if line.contains(&b':') => {
            return Err(FieldFault::Malformed("a header's name is no token"));
        }
        _ => return Err(FieldFault::Malformed("a header without a colon")),
    };
    let padded = &line[colon + 1..];
    if has_control_but_tabs(padded) {
        return Err(FieldFault::Malformed("a control character in a header"));
    }
    let value = padded.trim_ascii();
    let value_start = end - padded.trim_ascii_start().len();
    Span::new(start, start + colon)
        .zip(Span::new(value_start, value_start + value.len()))
        .map(|(name, value)| Field { name, value })
        .ok_or(FieldFault::TooFar)
}

/// The names in a `Connection` header's value. RFC 9110 section 7.6.1.
pub(crate) fn connection_options(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty())
}

/// Limit of names in `Connection`: every field is compared with each of them.
const MAX_NOMINATED: usize = 64;

/// The names in the `Connection` fields of a message: those fields are of this connection only.
#[derive(Debug)]
pub(crate) struct Nominated<'a>(SmallVec<[&'a [u8]; 4]>);

impl<'a> Nominated<'a> {
    /// Those of a message with these fields.
    pub(crate) fn from_fields(fields: impl Iterator<Item = NameAndValue<'a>>) -> Self {
        let options = fields
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"connection"))
            .flat_map(|(_, value)| connection_options(value));
        Self(options.take(MAX_NOMINATED + 1).collect())
    }

    /// Whether there are more than allowed: 64.
    #[must_use]
    pub(crate) fn is_too_many(&self) -> bool {
        self.0.len() > MAX_NOMINATED
    }

    /// Whether a name, in any letter case, is among them.
    #[must_use]
    pub(crate) fn includes(&self, name: &[u8]) -> bool {
        self.0.iter().any(|named| named.eq_ignore_ascii_case(name))
    }
}

/// Writes a field as a line of a head.
pub(crate) fn write_line(head: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    head.reserve(name.len() + value.len() + 4);
    for part in [name, b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_connection_are_bounded() {
        let named = |count: usize| {
            let value = vec!["a"; count].join(",");
            !Nominated::from_fields([(&b"connection"[..], value.as_bytes())].into_iter())
                .is_too_many()
        };
        assert!(named(MAX_NOMINATED) && !named(MAX_NOMINATED + 1));
    }
}

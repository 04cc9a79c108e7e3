//! The end of a head, its field lines, and the offsets of their parts. RFC 9112 sections 2.2 and 5.

use memchr::{memchr, memchr_iter};
use smallvec::SmallVec;

use super::bytes::{TOKEN, has_control_but_tabs, is_in_class};

/// Fields that are stored without an allocation: enough for most heads.
const USUAL_FIELDS: usize = 16;

/// The fields of a head, in order.
pub(crate) type Fields = SmallVec<[Field; USUAL_FIELDS]>;

/// A field's name, and its value without surrounding white space.
pub(crate) type NameAndValue<'a> = (&'a [u8], &'a [u8]);

/// Fields that are not passed on, in lower case: the connection's (RFC 9110 section 7.6.1), and the framing, which the
/// gateway writes itself.
pub(crate) const HOP_BY_HOP: [&[u8]; 8] = [
    b"connection",
    b"content-length",
    // These go even if `Connection` does not name them, as RFC 9110 section 7.6.1 has it: clients often leave that out.
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// A range of bytes in a head. Offsets have two bytes, since a head has at most 65,535 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    start: u16,
    end: u16,
}

/// The offsets of a field's name and value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Field {
    name: Span,
    value: Span,
}

/// What is wrong with a field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldFault {
    /// It violates RFC 9112. The text is for the log.
    Malformed(&'static str),
    /// It extends beyond the 65,535th byte.
    TooFar,
}

impl Span {
    /// The range from `start` up to `end`; `None` beyond the 65,535th byte.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Option<Self> {
        Some(Self {
            start: u16::try_from(start).ok()?,
            end: u16::try_from(end).ok()?,
        })
    }

    /// These bytes of `head`.
    #[must_use]
    pub fn slice(self, head: &[u8]) -> &[u8] {
        &head[usize::from(self.start)..usize::from(self.end)]
    }

    /// The first byte's offset.
    #[must_use]
    pub fn start(self) -> usize {
        usize::from(self.start)
    }
}

impl Field {
    /// The name and value in `head`, from which the field was parsed.
    #[must_use]
    pub(crate) fn name_and_value(self, head: &[u8]) -> NameAndValue<'_> {
        (self.name.slice(head), self.value.slice(head))
    }

    /// The value's range.
    #[must_use]
    pub const fn value(self) -> Span {
        self.value
    }
}

/// Finds the empty line that ends a head. Reads each byte once, however the head is split into reads.
#[derive(Debug, Default)]
pub(crate) struct HeadScanner {
    scanned: usize,
    line_start: usize,
}

/// A line feed without a carriage return before it. It is rejected, since parsers differ: RFC 9112 section 2.2 allows,
/// but does not require, to accept it as a line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BareLineFeed;

impl HeadScanner {
    /// Scans the bytes that arrived since the last call. Returns the head's length, with its closing empty line, or
    /// `None` if the head is incomplete.
    ///
    /// # Errors
    ///
    /// A bare line feed.
    pub(crate) fn scan(&mut self, buffer: &[u8]) -> Result<Option<usize>, BareLineFeed> {
        for offset in memchr_iter(b'\n', &buffer[self.scanned..]) {
            let line_feed = self.scanned + offset;
            match buffer[self.line_start..line_feed].split_last() {
                // An empty first line ends no head: the parser has to see it, and rejects it as a request line.
                Some((b'\r', [])) if self.line_start > 0 => return Ok(Some(line_feed + 1)),
                Some((b'\r', _)) => self.line_start = line_feed + 1,
                _ => return Err(BareLineFeed),
            }
        }
        self.scanned = buffer.len();
        Ok(None)
    }

    /// Whether the first line is incomplete.
    #[must_use]
    pub(crate) const fn is_in_first_line(&self) -> bool {
        self.line_start == 0
    }
}

/// Parses the field lines of a complete head, from `start` to its empty line, and calls `each` for every field.
///
/// [`HeadScanner`] has checked that a carriage return precedes each line feed.
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
    while let Some(line_feed) = memchr(b'\n', &head[start..]) {
        // The byte before the line feed is its carriage return.
        let end = start + line_feed.saturating_sub(1);
        if end == start {
            break;
        }
        let field = read_field(head, start, end)?;
        each(field, field.name_and_value(head))?;
        fields.push(field);
        start = end + 2;
    }
    Ok(())
}

fn read_field(head: &[u8], start: usize, end: usize) -> Result<Field, FieldFault> {
    let line = &head[start..end];
    // This rejects obsolete folds, too: a line that begins with white space has no token before its colon.
    let name_length = line.iter().position(|&byte| !is_in_class(byte, TOKEN));
    let colon = match name_length {
        Some(length) if length > 0 && line[length] == b':' => length,
        // White space before the colon ends here: RFC 9112 section 5.1 demands it, since a proxy that ignored such a
        // line could frame the body differently.
        _ if line.contains(&b':') => {
            return Err(FieldFault::Malformed("a header's name is not a token"));
        }
        _ => return Err(FieldFault::Malformed("a header without a colon")),
    };
    let padded = &line[colon + 1..];
    // A bare carriage return is one of them: a server that ends the line there would read a header that was not
    // checked.
    if has_control_but_tabs(padded) {
        return Err(FieldFault::Malformed("a control character in a header"));
    }
    // Without control characters, only spaces and tabs are left to trim, as RFC 9110 section 5.5 asks for.
    let value = padded.trim_ascii();
    let value_start = end - padded.trim_ascii_start().len();
    Span::new(start, start + colon)
        .zip(Span::new(value_start, value_start + value.len()))
        .map(|(name, value)| Field { name, value })
        .ok_or(FieldFault::TooFar)
}

/// The names in the value of a `Connection` or `Upgrade` header. RFC 9110 sections 7.6.1 and 7.8.
pub(crate) fn connection_options(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        // RFC 9110 section 5.6.1.2: a recipient ignores empty elements of a list.
        .filter(|name| !name.is_empty())
}

/// Limit of names in `Connection`. Every field is compared with each of them.
const MAX_CONNECTION_OPTIONS: usize = 64;

/// The names in a message's `Connection` fields. The fields with these names apply to this connection only.
#[derive(Debug)]
pub(crate) struct ConnectionOptions<'a>(SmallVec<[&'a [u8]; 4]>);

impl<'a> ConnectionOptions<'a> {
    /// Collects the names from a message's fields.
    pub(crate) fn from_fields(fields: impl Iterator<Item = NameAndValue<'a>>) -> Self {
        let mut options = SmallVec::new();
        // A loop: each request passes here twice, and chained iterators take twice the instructions.
        for (name, value) in fields {
            if name.eq_ignore_ascii_case(b"connection") {
                // One more than allowed is kept: enough for `is_too_many`, and no long list fills memory before it is
                // rejected.
                let left = MAX_CONNECTION_OPTIONS + 1 - options.len();
                options.extend(connection_options(value).take(left));
            }
        }
        Self(options)
    }

    /// Whether the limit of 64 names is exceeded.
    #[must_use]
    pub(crate) fn is_too_many(&self) -> bool {
        self.0.len() > MAX_CONNECTION_OPTIONS
    }

    /// Whether it contains a name, in any letter case.
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
    fn names_in_connection_are_limited() {
        let named = |count: usize| {
            let value = vec!["a"; count].join(",");
            !ConnectionOptions::from_fields([(&b"connection"[..], value.as_bytes())].into_iter())
                .is_too_many()
        };
        assert!(named(MAX_CONNECTION_OPTIONS) && !named(MAX_CONNECTION_OPTIONS + 1));
    }
}

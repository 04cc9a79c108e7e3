//! Reading a file, the lines of its records, and the members of one.

use std::{fmt, io::Read};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::problem::{ImportError, MAX_FILE_BYTES};

/// Reads a file of at most [`MAX_FILE_BYTES`].
///
/// # Errors
///
/// It cannot be read, or is too large.
pub fn read_file(
    source: impl Read,
    expected_bytes: usize,
) -> Result<Zeroizing<Vec<u8>>, ImportError> {
    // Allocated once: a growing buffer would leave copies of keys behind that are not wiped.
    let capacity = expected_bytes.min(MAX_FILE_BYTES) + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(capacity));
    source
        .take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ImportError::TooLarge);
    }
    Ok(bytes)
}

/// Converts ascending byte offsets to line numbers.
pub(super) struct LineCounter<'t> {
    text: &'t [u8],
    offset: usize,
    line: u64,
}

impl<'t> LineCounter<'t> {
    pub(super) const fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
        }
    }

    /// The line of the record at byte `start`. The CSV reader's position may be at the previous line's end, or at
    /// skipped empty lines.
    pub(super) fn line_at(&mut self, start: usize) -> u64 {
        let rest = &self.text[start.min(self.text.len())..];
        let skipped = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let start = (start + skipped.count()).min(self.text.len());
        if start > self.offset {
            self.line += line_breaks(&self.text[self.offset..start]);
            self.offset = start;
        }
        self.line
    }
}

pub(super) fn line_breaks(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// The members of a JSON object in their order: names, and texts of values. A map would keep only the last of two members
/// with the same name.
pub(super) struct Members<'t>(pub(super) Vec<(String, &'t RawValue)>);

impl<'t> Deserialize<'t> for Members<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'t> Visitor<'t> for InOrder {
    type Value = Members<'t>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Members<'t>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

//! Reading a file, and the lines of its records.

use std::io::Read;

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

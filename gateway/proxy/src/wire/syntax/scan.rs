//! Finds the end of a head as it arrives.

use memchr::memchr_iter;

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

//! HPACK: RFC 7541. Here its decoding side.
//!
//! Unlike the decoder of the `h2` crate it judges no field: a name or value that HTTP does not allow is a fault of its
//! request, while the state that the connection's requests share goes on (RFC 9113 section 8.1.1).

pub(super) mod encode;
mod huffman;
mod table;

use self::{huffman::InvalidCode, table::DynamicTable};

/// A header block that cannot be decoded, so that the following ones cannot be, either: a connection error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompressionError;

impl From<InvalidCode> for CompressionError {
    fn from(_: InvalidCode) -> Self {
        Self
    }
}

/// Decodes the header blocks of a connection.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    table: DynamicTable,
    /// Whether a field of the current block was decoded: sizes of the table can only be changed before.
    has_decoded: bool,
    /// Name and value of the current field, if they were encoded.
    name: Vec<u8>,
    value: Vec<u8>,
}

/// Where a string is.
#[derive(Clone, Copy)]
enum Text<'b> {
    /// As sent.
    Plain(&'b [u8]),
    /// In the buffer of the decoder.
    Decoded,
}

impl<'b> Text<'b> {
    const fn get<'a>(self, decoded: &'a [u8]) -> &'a [u8]
    where
        'b: 'a,
    {
        match self {
            Self::Plain(text) => text,
            Self::Decoded => decoded,
        }
    }
}

impl Decoder {
    /// Begins a header block.
    pub(super) fn begin(&mut self) {
        self.has_decoded = false;
    }

    /// Frees the buffers.
    pub(super) fn free(&mut self) {
        (self.name, self.value) = (Vec::new(), Vec::new());
    }

    /// Decodes the next part of a block, and calls `field` with each name and value. Returns the number of bytes that were
    /// decoded: the others are the beginning of a field whose end is missing.
    ///
    /// # Errors
    ///
    /// [`CompressionError`].
    pub(super) fn decode(
        &mut self,
        block: &[u8],
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, CompressionError> {
        let mut input = Input { rest: block };
        loop {
            let decoded = block.len() - input.rest.len();
            match self.decode_field(&mut input, &mut field) {
                Ok(()) if input.rest.is_empty() => return Ok(block.len()),
                Ok(()) => {}
                Err(Stop::Incomplete) => return Ok(decoded),
                Err(Stop::Invalid) => return Err(CompressionError),
            }
        }
    }

    fn decode_field(
        &mut self,
        input: &mut Input<'_>,
        field: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Stop> {
        let first = *input.rest.first().ok_or(Stop::Incomplete)?;
        if first & 0x80 != 0 {
            // Section 6.1: an entry.
            let index = input.integer(7)?;
            self.has_decoded = true;
            let (name, value) = self.table.entry(index).ok_or(Stop::Invalid)?;
            field(name, value);
            return Ok(());
        }
        if first & 0xe0 == 0x20 {
            // Section 6.3: the size of the table.
            let size = input.integer(5)?;
            let is_valid = !self.has_decoded && self.table.resize(size);
            return if is_valid { Ok(()) } else { Err(Stop::Invalid) };
        }
        // Section 6.2: a literal, which becomes an entry or not.
        let is_indexed = first & 0x40 != 0;
        let index = input.integer(if is_indexed { 6 } else { 4 })?;
        let name = if index == 0 {
            Some(input.string(&mut self.name)?)
        } else {
            None
        };
        // The table has not changed so far: a field whose end is missing is decoded again from its first byte.
        let value = input.string(&mut self.value)?;
        self.has_decoded = true;
        let value = value.get(&self.value);
        let name = match name {
            Some(name) => name.get(&self.name),
            None => self.table.entry(index).ok_or(Stop::Invalid)?.0,
        };
        field(name, value);
        if is_indexed {
            let entry = table::Entry::new(name, value);
            self.table.insert(entry);
        }
        Ok(())
    }
}

/// Why no field was decoded.
enum Stop {
    /// Its end is missing.
    Incomplete,
    Invalid,
}

/// The rest of a block.
struct Input<'b> {
    rest: &'b [u8],
}

impl<'b> Input<'b> {
    /// An integer whose first byte has this many bits of it. Section 5.1. At most 28 bits more are read.
    fn integer(&mut self, prefix: u32) -> Result<usize, Stop> {
        let (&first, mut rest) = self.rest.split_first().ok_or(Stop::Incomplete)?;
        let max = (1_usize << prefix) - 1;
        let mut value = usize::from(first) & max;
        if value == max {
            let mut shift = 0;
            loop {
                let (&byte, after) = rest.split_first().ok_or(Stop::Incomplete)?;
                rest = after;
                value += usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
                if shift == 28 {
                    return Err(Stop::Invalid);
                }
            }
        }
        self.rest = rest;
        Ok(value)
    }

    /// A string. Section 5.2. If it is encoded, it is decoded into `buffer`.
    fn string(&mut self, buffer: &mut Vec<u8>) -> Result<Text<'b>, Stop> {
        let is_encoded = self.rest.first().ok_or(Stop::Incomplete)? & 0x80 != 0;
        let length = self.integer(7)?;
        let (string, rest) = self.rest.split_at_checked(length).ok_or(Stop::Incomplete)?;
        self.rest = rest;
        if !is_encoded {
            return Ok(Text::Plain(string));
        }
        buffer.clear();
        huffman::decode(string, buffer).map_err(|InvalidCode| Stop::Invalid)?;
        Ok(Text::Decoded)
    }
}

#[cfg(test)]
mod tests;

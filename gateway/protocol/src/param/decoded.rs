//! Form-decoding: `+` is a space, `%xx` a byte, and the bytes are UTF-8.

use std::ops::Range;

use super::ParamsError;

/// Form-decodes: `+` is a space, `%xx` a byte.
pub(super) struct Decoded<'a>(pub(super) &'a [u8]);

impl Iterator for Decoded<'_> {
    type Item = Result<u8, ParamsError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(match first {
            b'+' => Ok(b' '),
            b'%' => self.next_escaped(),
            byte => Ok(byte),
        })
    }
}

impl Decoded<'_> {
    fn next_escaped(&mut self) -> Result<u8, ParamsError> {
        let &[high, low, ref rest @ ..] = self.0 else {
            return Err(ParamsError::Malformed);
        };
        self.0 = rest;
        let (high, low) = (hex_value(high), hex_value(low));
        // 255 stands for any other byte, so that one comparison checks both.
        if (high | low) < 16 {
            Ok(high << 4 | low)
        } else {
            Err(ParamsError::Malformed)
        }
    }
}

/// The bytes of a text, each with the place where it stands, as itself or escaped. A broken escape is a `%` by itself.
pub fn unescaped(text: &[u8]) -> impl Iterator<Item = (Range<usize>, u8)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let start = offset;
        let (length, byte) = match *text.get(start..)? {
            [b'%', high, low, ..] if (hex_value(high) | hex_value(low)) < 16 => {
                (3, hex_value(high) << 4 | hex_value(low))
            }
            [byte, ..] => (1, byte),
            [] => return None,
        };
        offset += length;
        Some((start..offset, byte))
    })
}

/// The value of a hex digit of either letter case; 255 for any other byte.
pub(crate) const fn hex_value(digit: u8) -> u8 {
    let number = digit.wrapping_sub(b'0');
    let letter = (digit | 0x20).wrapping_sub(b'a');
    match (number < 10, letter < 6) {
        (true, _) => number,
        (_, true) => letter + 10,
        _ => u8::MAX,
    }
}

/// Checks that all escapes are complete and the decoded bytes are UTF-8. Decodes into a small buffer piece by piece, so
/// that it never allocates.
pub(super) fn check_decoded(wire: &[u8]) -> Result<(), ParamsError> {
    let mut buffer = [0; 128];
    let mut length = 0;
    for byte in Decoded(wire) {
        if length == buffer.len() {
            length = check_and_keep_rest(&mut buffer)?;
        }
        buffer[length] = byte?;
        length += 1;
    }
    check_text(&buffer[..length])
}

pub(super) fn check_text(text: &[u8]) -> Result<(), ParamsError> {
    let checked = std::str::from_utf8(text).map(drop);
    checked.map_err(|_| ParamsError::Malformed)
}

/// Checks a text whose last character may be incomplete. Moves the bytes of that character to the front, and returns
/// their number.
fn check_and_keep_rest(text: &mut [u8]) -> Result<usize, ParamsError> {
    match std::str::from_utf8(text) {
        Ok(_) => Ok(0),
        Err(error) if error.error_len().is_none() => {
            // Three bytes at most, so that the buffer has room again.
            let rest = error.valid_up_to()..text.len();
            text.copy_within(rest.clone(), 0);
            Ok(rest.len())
        }
        Err(_) => Err(ParamsError::Malformed),
    }
}

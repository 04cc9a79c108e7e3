//! The Huffman code of HPACK, decoded. RFC 7541 section 5.2 and appendix B.

/// The string ends in the middle of a symbol, or contains the end symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidCode;

/// Number of symbols: the bytes, and the end of a string, which only the padding may be a part of.
const SYMBOLS: usize = 257;
const MIN_LENGTH: usize = 5;
const MAX_LENGTH: usize = 30;
/// Codes of up to this many bits are found by one look into a table.
const SHORT: usize = 8;

/// The lengths of the codes, in bits. The code is canonical: sorted by length, then by symbol, codes are consecutive
/// numbers. So the lengths define it.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

static CODES: Codes = codes();

struct Codes {
    /// All symbols, in the order of their codes.
    symbols: [u16; SYMBOLS],
    /// The first code of each length, and the index in `symbols` of its symbol.
    first: [(u32, u32); MAX_LENGTH + 2],
    /// Symbol and length of the code that these bits begin with; length 0 for longer codes.
    short: [(u8, u8); 1 << SHORT],
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "symbols are below 257, codes have at most 30 bits; short ones have at most 8 and are bytes"
)]
const fn codes() -> Codes {
    let mut codes = Codes {
        symbols: [0; SYMBOLS],
        first: [(0, 0); MAX_LENGTH + 2],
        short: [(0, 0); 1 << SHORT],
    };
    let (mut code, mut index, mut length) = (0_u32, 0, MIN_LENGTH);
    while length <= MAX_LENGTH {
        codes.first[length] = (code, index as u32);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                codes.symbols[index] = symbol as u16;
                if length <= SHORT {
                    let begin = (code as usize) << (SHORT - length);
                    let mut bits = begin;
                    while bits < begin + (1 << (SHORT - length)) {
                        codes.short[bits] = (symbol as u8, length as u8);
                        bits += 1;
                    }
                }
                index += 1;
                code += 1;
            }
            symbol += 1;
        }
        length += 1;
        code <<= 1;
    }
    // Behind the longest ones.
    codes.first[length] = (code, index as u32);
    codes
}

/// Decodes a string, and appends it to `out`. A byte of it becomes at most 1.6 bytes.
///
/// # Errors
///
/// [`InvalidCode`]; `out` then has a part of the string.
pub(super) fn decode(string: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidCode> {
    out.reserve(string.len() * 8 / MIN_LENGTH);
    // The bits that are left, at the upper end.
    let (mut bits, mut count) = (0_u64, 0_usize);
    let mut bytes = string.iter();
    loop {
        while count <= 56 {
            let Some(&byte) = bytes.next() else { break };
            bits |= u64::from(byte) << (56 - count);
            count += 8;
        }
        let (byte, length) = CODES.short[usize::from((bits >> 56) as u8)];
        // Behind the end of the string there are zero bits: a code counts only if all of it was sent.
        let (byte, length) = if (1..=count).contains(&usize::from(length)) {
            (byte, usize::from(length))
        } else if count < SHORT && bits == u64::MAX << (64 - count.max(1)) {
            // Padding: the beginning of the end symbol, less than a byte.
            return Ok(());
        } else if count == 0 {
            return Ok(());
        } else {
            long(bits, count).ok_or(InvalidCode)?
        };
        out.push(byte);
        bits <<= length;
        count -= length;
    }
}

/// The byte whose code has more than [`SHORT`] bits, and the code's length.
fn long(bits: u64, count: usize) -> Option<(u8, usize)> {
    for length in SHORT + 1..=MAX_LENGTH.min(count) {
        #[expect(clippy::cast_possible_truncation, reason = "at most 30 bits")]
        let code = (bits >> (64 - length)) as u32;
        let (first, index) = CODES.first[length];
        let (_, next_index) = CODES.first[length + 1];
        let offset = code.checked_sub(first)?;
        if offset < next_index - index {
            let symbol = CODES.symbols[(index + offset) as usize];
            return u8::try_from(symbol).ok().map(|byte| (byte, length));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(hex: &str) -> Result<Vec<u8>, InvalidCode> {
        let mut out = Vec::new();
        decode(&hex::decode(hex).unwrap(), &mut out).map(|()| out)
    }

    /// The codes, by the definition.
    fn all_codes() -> [u32; SYMBOLS] {
        let mut sorted: Vec<usize> = (0..SYMBOLS).collect();
        sorted.sort_by_key(|&symbol| (LENGTHS[symbol], symbol));
        let (mut codes, mut code, mut length) = ([0_u32; SYMBOLS], 0, LENGTHS[sorted[0]]);
        for symbol in sorted {
            code <<= LENGTHS[symbol] - length;
            length = LENGTHS[symbol];
            codes[symbol] = code;
            code += 1;
        }
        codes
    }

    /// Encodes bit by bit.
    fn encode(text: &[u8], codes: &[u32; SYMBOLS]) -> Vec<u8> {
        let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u64, 0);
        for &byte in text {
            let byte = usize::from(byte);
            bits = bits << LENGTHS[byte] | u64::from(codes[byte]);
            count += LENGTHS[byte];
            while count >= 8 {
                count -= 8;
                bytes.push((bits >> count & 0xff) as u8);
            }
        }
        if count > 0 {
            bytes.push((bits << (8 - count) & 0xff) as u8 | 0xff >> count);
        }
        bytes
    }

    #[test]
    fn the_examples_of_the_rfc_are_decoded() {
        // RFC 7541 appendix C.4 and C.6.
        for (hex, text) in [
            ("f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"),
            ("a8eb10649cbf", "no-cache"),
            ("25a849e95ba97d7f", "custom-key"),
            ("25a849e95bb8e8b4bf", "custom-value"),
            ("6402", "302"),
            ("aec3771a4b", "private"),
            (
                "d07abe941054d444a8200595040b8166e082a62d1bff",
                "Mon, 21 Oct 2013 20:13:21 GMT",
            ),
            (
                "9d29ad171863c78f0b97c8e9ae82ae43d3",
                "https://www.example.com",
            ),
            ("9bd9ab", "gzip"),
            ("", ""),
        ] {
            assert_eq!(decoded(hex).as_deref(), Ok(text.as_bytes()), "{hex}");
        }
    }

    #[test]
    fn every_byte_beside_every_other_is_decoded() {
        let codes = all_codes();
        for first in 0..=255 {
            for second in 0..=255 {
                for text in [&[first, second][..], &[first, b'a', second], &[first; 9]] {
                    let mut out = Vec::new();
                    decode(&encode(text, &codes), &mut out).unwrap();
                    assert_eq!(out, text);
                }
            }
        }
    }

    #[test]
    fn other_paddings_and_the_end_symbol_are_invalid() {
        for hex in [
            "ff",                         // eight bits of padding
            "f1e3c2e5f23a6ba0ab90f4ffff", // a byte of it behind a string
            "1e",                         // padded with a zero
            "18",                         // "a", and zeros
            "ffffffff",                   // the end symbol
            "fffffffc",
            "ffffffffff",
        ] {
            assert_eq!(decoded(hex), Err(InvalidCode), "{hex}");
        }
    }
}

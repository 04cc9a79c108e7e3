//! How the usual libraries percent-encode a key or a value.

use std::{array, sync::LazyLock};

use super::{
    sent::{Pair, Sent},
    table::rows,
};

/// A function that percent-encodes.
#[derive(Debug)]
pub(super) struct Encoder {
    /// The functions with this output, for people.
    pub(super) names: String,
    /// Whether a byte is left as it is.
    keeps: [bool; 256],
    space: &'static [u8],
    is_lower_case: bool,
}

/// The functions with different output, the most frequent ones first.
pub(super) static ENCODERS: LazyLock<Vec<Encoder>> = LazyLock::new(|| {
    let kinds = [("encoder", false), ("lower", true)].into_iter();
    let encoders = kinds.flat_map(|(kind, is_lower_case)| {
        rows(kind).map(move |row| Encoder {
            names: row[2..].join(" "),
            keeps: array::from_fn(|byte| {
                let letter = char::from(u8::try_from(byte).unwrap_or_default());
                letter.is_ascii_alphanumeric() || row[1].contains(letter)
            }),
            space: row[0].as_bytes(),
            is_lower_case,
        })
    });
    encoders.collect()
});

/// The index of the encoder that encodes everything that has a meaning.
pub(super) const STRICT: usize = 4;

/// The index of the first encoder that makes all that was sent; otherwise of a strict one.
pub(super) fn encoder_of(sent: &Sent<'_>) -> usize {
    let makes = |encoder: &Encoder, pair: &Pair<'_>| {
        let mut made = Vec::new();
        encoder.encode(&pair.value, &mut made);
        made == pair.wire_value
    };
    let mut encoders = ENCODERS.iter();
    let fits = encoders.position(|encoder| sent.pairs.iter().all(|pair| makes(encoder, pair)));
    fits.unwrap_or(STRICT)
}

impl Encoder {
    /// Whether it leaves `text` as it is.
    pub(super) fn keeps(&self, text: &[u8]) -> bool {
        text.iter().all(|byte| self.keeps[usize::from(*byte)])
    }

    /// Appends `text`, encoded.
    pub(super) fn encode(&self, text: &[u8], out: &mut Vec<u8>) {
        let digits = if self.is_lower_case {
            b"0123456789abcdef"
        } else {
            b"0123456789ABCDEF"
        };
        out.reserve(3 * text.len());
        for &byte in text {
            if self.keeps[usize::from(byte)] {
                out.push(byte);
            } else if byte == b' ' {
                out.extend_from_slice(self.space);
            } else {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                out.extend_from_slice(&[b'%', digits[high], digits[low]]);
            }
        }
    }
}

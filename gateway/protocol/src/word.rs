//! Short names: letters, digits and `.`, `_`, `-`.

use std::str::FromStr;

/// A text does not have the form of what it should be. `Display` says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub(crate) &'static str);

const MAX_LENGTH: usize = 64;

/// A name of 1 to 64 characters, in place. Padded with zeros, so that equal names are equal bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Word {
    bytes: [u8; MAX_LENGTH],
    length: u8,
}

impl Word {
    /// The hex digits of random bits.
    pub(crate) fn from_random(random: [u8; 16]) -> Self {
        let mut bytes = [0; MAX_LENGTH];
        hex::encode_to_slice(random, &mut bytes[..32]).expect("two digits a byte");
        Self { bytes, length: 32 }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("contains only ASCII characters")
    }
}

impl TryFrom<&[u8]> for Word {
    type Error = ParseError;

    #[inline]
    fn try_from(text: &[u8]) -> Result<Self, Self::Error> {
        let rule = "1 to 64 letters, digits, dots, underscores or hyphens";
        if !is_word(text, MAX_LENGTH) {
            return Err(ParseError(rule));
        }
        let mut bytes = [0; MAX_LENGTH];
        bytes[..text.len()].copy_from_slice(text);
        let length = u8::try_from(text.len()).expect("at most 64");
        Ok(Self { bytes, length })
    }
}

/// A number of decimal digits alone: `parse` would accept a sign.
#[must_use]
pub fn parse_digits<N: FromStr>(text: &str) -> Option<N> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Whether a text has 1 to `max` letters, digits, dots, underscores or hyphens.
#[must_use]
pub fn is_word(text: &[u8], max: usize) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=max).contains(&text.len()) && text.iter().all(is_allowed)
}

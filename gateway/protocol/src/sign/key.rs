//! APP_KEY: the secret with which an application signs. CONTRACT 4.

use std::str::FromStr;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{param::unescaped, word::ParseError};

/// An application's key, as the text that is appended when signing. Zeroized when dropped; never printed.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct AppKey(Box<str>);

impl AppKey {
    /// Number of random bytes for [`Self::from_random`]: 256 bits.
    pub const RANDOM_BYTES: usize = 32;

    /// Creates a key of 256 random bits, as 64 hex digits.
    #[must_use]
    pub fn from_random(random: &[u8; Self::RANDOM_BYTES]) -> Self {
        Self(hex::encode(random).into_boxed_str())
    }

    /// The text, for signing and for showing a new key once.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Checks that the key cannot be guessed.
    ///
    /// # Errors
    ///
    /// The key has fewer than 128 bits, estimated from its length and characters.
    pub fn check_strength(&self) -> Result<(), WeakKey> {
        check_strength(&self.0)
    }

    /// Whether the key stands in `text`, in any letter case, escaped up to twice. Compares hashes of windows, so that its time
    /// tells nothing about the key.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        const BASE: u64 = 0x5851_f42d_4c95_7f2d;
        let with = |hash: u64, byte: &u8| hash.wrapping_mul(BASE).wrapping_add((*byte).into());
        let key = self.as_bytes().to_ascii_lowercase();
        let sought = key.iter().fold(0, with);
        let weight = key
            .iter()
            .fold(1_u64, |weight, _| weight.wrapping_mul(BASE));
        let has_key = |text: &[u8]| {
            let (text, mut hash) = (text.to_ascii_lowercase(), 0);
            text.iter().enumerate().any(|(index, byte)| {
                let left = index
                    .checked_sub(key.len())
                    .map_or(0, |left| text[left].into());
                hash = with(hash, byte).wrapping_sub(weight.wrapping_mul(left));
                index + 1 >= key.len() && hash == sought
            })
        };
        let decoded = |text: &[u8]| unescaped(text).map(|(_, byte)| byte).collect::<Vec<u8>>();
        let once = decoded(text);
        has_key(text) || has_key(&once) || has_key(&decoded(&once))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub(super) fn placeholder() -> Self {
        Self("<APP_KEY>".into())
    }
}

impl FromStr for AppKey {
    type Err = ParseError;

    fn from_str(key: &str) -> Result<Self, Self::Err> {
        let is_space = |letter: char| letter.is_whitespace() || letter.is_control();
        if key.is_empty() || key.contains(is_space) {
            Err(ParseError("a non-empty string without white space"))
        } else {
            Ok(Self(key.into()))
        }
    }
}

hide_in_debug!(AppKey);

/// Minimum strength of a key, in bits.
const MIN_BITS: u32 = 128;

/// Estimates the strength of any secret text.
///
/// # Errors
///
/// It has fewer than 128 bits, estimated from its length and characters.
pub fn check_strength(text: &str) -> Result<(), WeakKey> {
    let bits = bits(text);
    if bits < MIN_BITS {
        return Err(WeakKey { bits });
    }
    Ok(())
}

/// Upper bound for the entropy of a random text of this length and alphabet, in bits.
fn bits(text: &str) -> u32 {
    let all = |is_of: fn(&u8) -> bool| text.as_bytes().iter().all(is_of);
    let bits_per_letter = if all(u8::is_ascii_digit) {
        3.32
    } else if all(u8::is_ascii_hexdigit) {
        4.0
    } else if all(u8::is_ascii_alphanumeric) {
        5.95
    } else {
        6.5
    };
    let distinct = text
        .bytes()
        .collect::<std::collections::BTreeSet<_>>()
        .len();
    // A repeated pattern has the length of a strong key, not its entropy.
    if distinct < 6 {
        return 0;
    }
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX).min(4096);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small and positive"
    )]
    let bits = (f64::from(length) * bits_per_letter) as u32;
    bits
}

/// A key that is too short or has too few different characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("about {bits} bits; at least {MIN_BITS} (32 hex digits) are required")]
pub struct WeakKey {
    bits: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strength_depends_on_length_and_characters() {
        let strong = |key: &str| key.parse::<AppKey>().unwrap().check_strength().is_ok();
        assert!(strong("4283fefc63f0cd0e873a0000c6d07ef7"));
        assert!(strong("aGVsbG8gd29ybGQgMTIzNDU2"));
        assert!(!strong("4283fefc63f0cd0e873a0000c6d07ef"));
        assert!(!strong("secret"));
        assert!(!strong(&"ab".repeat(40)));
    }

    #[test]
    fn a_key_is_not_printed() {
        let key = AppKey::from_random(&[7; 32]);
        assert_eq!(key.expose(), "07".repeat(32));
        assert!(!format!("{key:?}").contains("07"));
    }

    #[test]
    fn a_key_contains_no_white_space() {
        for bad in ["", "a b", "abc\n"] {
            assert!(bad.parse::<AppKey>().is_err());
        }
    }
}

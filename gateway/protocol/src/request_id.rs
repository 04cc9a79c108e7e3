//! The identifier of a request in the gateway, backends, responses and logs. CONTRACT 1.

use std::str::FromStr;

use crate::word::{ParseError, Word};

/// A request's identifier: `[A-Za-z0-9._-]{1,64}`. Generated ones are 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestId(Word);

impl RequestId {
    /// Creates an id from 128 random bits.
    #[must_use]
    pub fn from_bytes(random: [u8; 16]) -> Self {
        Self(Word::from_random(random))
    }

    /// The id as in headers, bodies and logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The id's characters, all of them ASCII.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl FromStr for RequestId {
    type Err = ParseError;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        id.as_bytes().try_into().map(Self)
    }
}

show_as_str!(RequestId: Display, Debug);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_id_is_32_hex_digits_and_parses() {
        let id = RequestId::from_bytes([0xab; 16]);
        assert_eq!(id.as_str(), "ab".repeat(16));
        assert_eq!(id.as_str().parse::<RequestId>().unwrap(), id);
    }

    #[test]
    fn an_id_that_could_forge_a_log_line_is_rejected() {
        for bad in ["", "a b", "a\nb", "a=b", &"a".repeat(65)] {
            assert!(bad.parse::<RequestId>().is_err(), "{bad:?}");
        }
    }
}

//! The identifier of a request in the gateway, backends, responses and logs. CONTRACT 1.

use std::{fmt, str::FromStr};

/// Maximum length of an id.
const MAX_LENGTH: usize = 64;

/// A request's identifier: `[A-Za-z0-9._-]{1,64}`. Generated ones are 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestId {
    bytes: [u8; MAX_LENGTH],
    length: u8,
}

impl RequestId {
    /// Creates an id from 128 random bits.
    #[must_use]
    pub fn from_bytes(random: [u8; 16]) -> Self {
        const LENGTH: u8 = 32;
        let mut bytes = [0; MAX_LENGTH];
        hex::encode_to_slice(random, &mut bytes[..usize::from(LENGTH)]).expect("two digits a byte");
        Self {
            bytes,
            length: LENGTH,
        }
    }

    /// The id as in headers, bodies and logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("an id is ASCII")
    }

    /// The id's characters, all of them ASCII.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl FromStr for RequestId {
    type Err = ParseRequestIdError;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        let is_allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let mut bytes = [0; MAX_LENGTH];
        match (bytes.get_mut(..id.len()), u8::try_from(id.len())) {
            (Some(target), Ok(length @ 1..)) if id.bytes().all(is_allowed) => {
                target.copy_from_slice(id.as_bytes());
                Ok(Self { bytes, length })
            }
            _ => Err(ParseRequestIdError),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The id is too long, or has characters that are unsafe in a log line or a header.
#[derive(Debug, thiserror::Error)]
#[error("1 to 64 letters, digits, dots, underscores or hyphens")]
pub struct ParseRequestIdError;

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

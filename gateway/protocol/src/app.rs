//! An application: its public ident and its internal id. CONTRACT 4.

use std::{fmt, str::FromStr};

const IDENT_LENGTH: usize = 24;
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// APP_IDENT: what a client names its application by. 24 characters of `[A-Za-z0-9]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AppIdent([u8; IDENT_LENGTH]);

impl AppIdent {
    /// How many random bytes [`Self::generate`] wants.
    pub const RANDOM_BYTES: usize = 64;

    /// Makes an ident of random bytes, each letter equally likely.
    ///
    /// Bytes that would favour some letters are skipped; `None` when too many had to be, which
    /// happens about never: ask again with new bytes.
    #[must_use]
    pub fn generate(random: &[u8; Self::RANDOM_BYTES]) -> Option<Self> {
        const FAIR: usize = 256 - 256 % ALPHABET.len();
        let mut letters = random
            .iter()
            .map(|&byte| usize::from(byte))
            .filter(|&byte| byte < FAIR)
            .map(|byte| ALPHABET[byte % ALPHABET.len()]);
        let mut ident = [0; IDENT_LENGTH];
        for place in &mut ident {
            *place = letters.next()?;
        }
        Some(Self(ident))
    }

    /// The ident's 24 letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("made of ASCII letters and digits only")
    }
}

impl FromStr for AppIdent {
    type Err = ParseAppIdentError;

    fn from_str(ident: &str) -> Result<Self, Self::Err> {
        Self::try_from(ident.as_bytes())
    }
}

impl TryFrom<&[u8]> for AppIdent {
    type Error = ParseAppIdentError;

    fn try_from(ident: &[u8]) -> Result<Self, Self::Error> {
        let letters: [u8; IDENT_LENGTH] = ident.try_into().map_err(|_| ParseAppIdentError)?;
        if letters.iter().all(u8::is_ascii_alphanumeric) {
            Ok(Self(letters))
        } else {
            Err(ParseAppIdentError)
        }
    }
}

impl fmt::Display for AppIdent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for AppIdent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The ident is not 24 letters and digits, so no application has it.
#[derive(Debug, thiserror::Error)]
#[error("24 letters and digits")]
pub struct ParseAppIdentError;

/// APP_ID: the internal id. It never leaves the private side, so it has no `Display` and a silent `Debug`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AppId(i64);

impl AppId {
    /// The one application of single-application mode.
    pub const SINGLE: Self = Self(0);

    /// Wraps an id as the store has it.
    #[must_use]
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// The number, for the store and for the internal header.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Debug for AppId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AppId(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ident_is_24_letters_and_digits() {
        assert!("abcdefghijklmnopqrstuvw1".parse::<AppIdent>().is_ok());
        for bad in [
            "",
            "abc",
            "abcdefghijklmnopqrstuvw-",
            "abcdefghijklmnopqrstuvw12",
            "ｱbcdefghijklmnopqrstuv",
        ] {
            assert!(bad.parse::<AppIdent>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_generated_ident_parses() {
        let random: [u8; AppIdent::RANDOM_BYTES] = std::array::from_fn(|place| (place * 37) as u8);
        let ident = AppIdent::generate(&random).unwrap();
        assert_eq!(ident.as_str().parse::<AppIdent>().unwrap(), ident);
    }

    #[test]
    fn bytes_that_favour_letters_are_skipped() {
        assert!(AppIdent::generate(&[255; AppIdent::RANDOM_BYTES]).is_none());
    }

    #[test]
    fn an_id_is_not_printed() {
        assert!(!format!("{:?}", AppId::new(4711)).contains("4711"));
    }
}

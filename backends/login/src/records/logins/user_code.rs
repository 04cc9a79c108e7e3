//! The code that a user compares on two screens before confirming a polling login.

use std::str::FromStr;

use crate::secret::random;

/// Consonants only, so that codes contain no words, and no letters that look like digits (RFC 8628 section 6.1).
const ALPHABET: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const LETTERS: usize = 8;

/// Eight letters in two groups: `BCDF-GHJK`. Not a secret: it identifies a login, but gives no access to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserCode(String);

impl UserCode {
    /// Generates a random code.
    pub(crate) fn generate() -> Self {
        // 64 bits over 20 letters: the bias is about 10⁻⁹, and the code is not a secret.
        let mut number = u64::from_le_bytes(random());
        let mut code = String::with_capacity(LETTERS + 1);
        for index in 0..LETTERS {
            if index == LETTERS / 2 {
                code.push('-');
            }
            let letter = usize::try_from(number % 20).expect("less than 20");
            code.push(char::from(ALPHABET[letter]));
            number /= 20;
        }
        Self(code)
    }

    /// The code's text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserCode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_letter = |letter: u8| ALPHABET.contains(&letter);
        match text.split_once('-') {
            Some((one, two))
                if one.len() == 4
                    && two.len() == 4
                    && one.bytes().chain(two.bytes()).all(is_letter) =>
            {
                Ok(Self(text.to_owned()))
            }
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_two_groups_of_four_consonants() {
        let code = UserCode::generate();
        assert_eq!(code.as_str().parse::<UserCode>().unwrap(), code);
        for bad in ["", "BCDFGHJK", "BCDF-GHJA", "BCD-FGHJK", "bcdf-ghjk"] {
            assert!(bad.parse::<UserCode>().is_err(), "{bad}");
        }
    }
}

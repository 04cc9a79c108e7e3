//! Binds a login's ticket to who began the login, as PKCE binds an authorization code. CONTRACT 8.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

/// Bytes of a challenge.
const LENGTH: usize = 32;

/// Whom a login's ticket is for: the SHA-256 of a verifier that only who began the login has. RFC 7636 section 4.2, `S256`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge([u8; LENGTH]);

impl Challenge {
    /// What a challenge looks like.
    pub const PATTERN: &str = "[A-Za-z0-9_-]{43}";
    /// What a verifier looks like.
    pub const VERIFIER_PATTERN: &str = "[A-Za-z0-9._~-]{43,128}";

    /// Reads 43 characters of base64url; `None` for anything else.
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        bytes.try_into().ok().map(Self)
    }

    /// The challenge of a verifier; `None` for what is none.
    #[must_use]
    pub fn of_verifier(verifier: &str) -> Option<Self> {
        let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_verifier =
            (43..=128).contains(&verifier.len()) && verifier.bytes().all(is_unreserved);
        is_verifier.then(|| Self(Sha256::digest(verifier.as_bytes()).into()))
    }

    /// The bytes of the hash.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// The challenge as text.
    #[must_use]
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_7636_reads_back() {
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        let of_verifier =
            Challenge::of_verifier("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk").unwrap();
        assert_eq!(Challenge::decode(challenge), Some(of_verifier));
        assert_eq!(of_verifier.encode(), challenge);
        assert!(Challenge::of_verifier(&"~".repeat(128)).is_some());
    }

    #[test]
    fn what_is_no_verifier_or_challenge_is_refused() {
        for verifier in [
            String::new(),
            "a".repeat(42),
            "a".repeat(129),
            format!("{}+", "a".repeat(43)),
            "\u{e9}".repeat(43),
        ] {
            assert!(Challenge::of_verifier(&verifier).is_none(), "{verifier}");
        }
        for challenge in [
            "",
            &"A".repeat(42),
            &"A".repeat(44),
            &format!("{}=", "A".repeat(43)),
            &"+".repeat(43),
        ] {
            assert!(Challenge::decode(challenge).is_none(), "{challenge}");
        }
    }
}

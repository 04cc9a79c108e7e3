//! Why an ID token is rejected.

use std::fmt;

/// Why an ID token is rejected, for a log line. Of the token, it has the issuer and differences of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// More than 16 KiB.
    #[error("the ID token is longer than 16 KiB")]
    TooLong,
    /// Not three parts. Five parts are an encrypted token (RFC 7516).
    #[error("the ID token does not have three parts (an encrypted one has five)")]
    NotCompact,
    /// Padding, characters that base64url does not have, or bits behind the last byte (RFC 7515 section 2).
    #[error("the ID token is not base64url")]
    NotBase64,
    /// The header is not a JSON object with `alg`.
    #[error("the ID token's header is malformed")]
    HeaderMalformed,
    /// A name appears twice in the header.
    #[error("a name appears twice in the ID token's header")]
    HeaderAmbiguous,
    /// `alg` is `none`, in any case.
    #[error("the ID token is not signed (alg none)")]
    Unsigned,
    /// A registered algorithm that is not supported.
    #[error("the ID token is signed by {name}; RS256, ES256 and EdDSA are supported")]
    OtherAlgorithm {
        /// Registered name of the algorithm.
        name: &'static str,
    },
    /// `alg` has no registered name.
    #[error("the ID token is signed by an unknown algorithm; RS256, ES256 and EdDSA are supported")]
    UnknownAlgorithm,
    /// `crit` or `b64` (RFC 7515 section 4.1.11, RFC 7797): ignoring them would change what is signed.
    #[error("the ID token's header has an extension that is not supported")]
    Extension,
    /// `typ` says that the token is something else, for example an access token (RFC 8725 section 3.11).
    #[error("the ID token's header says that it is another kind of token")]
    OtherType,
    /// `kid` is not a string of at most 255 bytes.
    #[error("the ID token's key ID is malformed")]
    KeyIdMalformed,
    /// No key has the token's key ID and algorithm. The provider may have a new key: fetch the keys again.
    #[error("no key of the provider fits the ID token's key ID and algorithm")]
    UnknownKey,
    /// No fitting key verifies the signature.
    #[error("the ID token's signature is invalid")]
    BadSignature,
    /// The signed payload is not a JSON object.
    #[error("the ID token's payload is not a JSON object")]
    PayloadMalformed,
    /// A name appears twice in the signed payload.
    #[error("a name appears twice in the ID token's payload")]
    PayloadAmbiguous,
    /// A claim is missing, or has another type.
    #[error("the ID token's claim {name} is missing or malformed")]
    Claim {
        /// Name of the claim.
        name: &'static str,
    },
    /// `iss` is another one than the configured one.
    #[error("the ID token is of another issuer, \"{found}\"")]
    OtherIssuer {
        /// The issuer in the token.
        found: Shown,
    },
    /// `aud` does not have the client ID.
    #[error("the ID token is for another audience")]
    OtherAudience,
    /// `azp` is another client, or missing though there are several audiences.
    #[error("the ID token was issued to another client")]
    OtherClient,
    /// `exp` has passed.
    #[error("the ID token expired {} s ago: compare the clocks", grouped(*.seconds))]
    Expired {
        /// How long ago, at least the [leeway](crate::LEEWAY).
        seconds: u64,
    },
    /// `nbf` has not come.
    #[error("the ID token is valid only in {} s: compare the clocks", grouped(*.seconds))]
    NotYetValid {
        /// How far off, more than the [leeway](crate::LEEWAY).
        seconds: u64,
    },
    /// `nonce` is another login's: the token was injected or replayed (OIDC Core section 15.5.2).
    #[error("the ID token is of another login (nonce)")]
    OtherNonce,
    /// `sub` is empty, longer than 255 bytes, or has other than visible ASCII characters and spaces.
    #[error("the ID token's subject is empty, too long or not visible ASCII")]
    BadSubject,
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b',')).into_owned()
}

/// Most characters that are shown.
const MAX_SHOWN: usize = 200;

/// The visible ASCII characters of a text, at most 200: nothing that changes a log line or a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(String);

impl Shown {
    pub(crate) fn new(text: &str) -> Self {
        let visible = text.chars().filter(char::is_ascii_graphic);
        Self(visible.take(MAX_SHOWN).collect())
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_grouped() {
        for (seconds, text) in [
            (60, "60"),
            (999, "999"),
            (3_600, "3,600"),
            (1_000_000, "1,000,000"),
        ] {
            let text = format!("the ID token expired {text} s ago: compare the clocks");
            assert_eq!(TokenFault::Expired { seconds }.to_string(), text);
        }
    }

    #[test]
    fn only_visible_ascii_characters_are_shown() {
        let long = "é a\u{202e}\u{1b}[31m\n".to_owned() + &"b".repeat(300);
        let shown = Shown::new(&long).to_string();
        assert_eq!(shown, "a[31m".to_owned() + &"b".repeat(195));
    }
}

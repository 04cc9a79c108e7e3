//! The credential in a logged-in user's requests: opaque, 256 bits.

use std::{fmt, str::FromStr};

use zeroize::Zeroizing;

use crate::secret::{Secret, hash_type};

hash_type! {
    /// SHA-256 of a credential, which is what the store has.
    CredentialHash
}

/// Proof of a login, as `Acme-X-Authorization` carries it. CONTRACT 8.
#[derive(Clone)]
pub struct Credential(Secret);

impl Credential {
    /// Generates a random credential.
    #[must_use]
    pub fn generate() -> Self {
        Self(Secret::generate())
    }

    /// The credential's text, as clients receive and send it.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.encode())
    }

    /// The hash that is stored.
    #[must_use]
    pub fn hash(&self) -> CredentialHash {
        CredentialHash(self.0.sha256())
    }
}

impl From<Secret> for Credential {
    fn from(secret: Secret) -> Self {
        Self(secret)
    }
}

impl FromStr for Credential {
    type Err = ParseCredentialError;

    /// Reads a header's value; a leading `Bearer ` (in any letter case, RFC 9110 section 11.1) is tolerated.
    fn from_str(value: &str) -> Result<Self, Self::Err> {
        let bare = match value.split_at_checked(7) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("Bearer ") => rest.trim_start(),
            _ => value,
        };
        Secret::decode(bare).map(Self).ok_or(ParseCredentialError)
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credential(…)")
    }
}

/// The text does not have the format of a credential.
#[derive(Debug, thiserror::Error)]
#[error("43 characters of base64url")]
pub struct ParseCredentialError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_bearer_is_tolerated() {
        let credential = Credential::generate();
        let bare = credential.encode();
        for value in [
            bare.to_string(),
            format!("Bearer {}", *bare),
            format!("bearer {}", *bare),
        ] {
            assert_eq!(
                value.parse::<Credential>().unwrap().hash(),
                credential.hash()
            );
        }
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Basic eDp5",
            &format!("{} ", *bare),
            "日本語日本語",
        ] {
            assert!(bad.parse::<Credential>().is_err(), "{bad}");
        }
    }

    #[test]
    fn it_is_not_printed() {
        let credential = Credential::generate();
        assert!(!format!("{credential:?}").contains(credential.encode().as_str()));
    }
}

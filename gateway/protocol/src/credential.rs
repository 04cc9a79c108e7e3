//! The credential in a logged-in user's requests: opaque, 256 bits. CONTRACT 8 and 9.
//!
//! Only clients have it. The login service issues it and stores its hash; whoever checks a request finds that hash.

use std::str::FromStr;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::word::ParseError;

/// Bytes of a credential, and of its hash.
const LENGTH: usize = 32;

/// The first bytes of a credential, which all credentials of a login have in common.
const OF_LOGIN: usize = 16;

/// Size of the buffer for decoding: the decoder requires room for whole groups of three bytes.
const BUFFER: usize = 33;

/// The scheme that may precede a credential.
const BEARER: &[u8] = b"Bearer ";

/// Proof of a login, as `Acme-X-Authorization` carries it. It is wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Credential([u8; LENGTH]);

impl Credential {
    /// Wraps 256 secret bits.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    /// The credential's text, as clients receive and send it.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<String> {
        Zeroizing::new(URL_SAFE_NO_PAD.encode(self.0))
    }

    /// The hash that is stored.
    #[must_use]
    pub fn hash(&self) -> CredentialHash {
        CredentialHash(Sha256::digest(self.0).into())
    }

    /// The hash of what all credentials of the login have in common.
    #[must_use]
    pub fn login_hash(&self) -> LoginHash {
        LoginHash(Sha256::digest(&self.0[..OF_LOGIN]).into())
    }

    /// The credential that a renewal puts in its place: the same one for the same `salt`. Neither this credential nor the
    /// salt suffices to compute it.
    #[must_use]
    pub fn renewed(&self, salt: &[u8; LENGTH]) -> Self {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(salt);
        let mut renewed = Self(mac.finalize().into_bytes().into());
        renewed.0[..OF_LOGIN].copy_from_slice(&self.0[..OF_LOGIN]);
        renewed
    }
}

impl TryFrom<&[u8]> for Credential {
    type Error = ParseError;

    /// Reads a header's value; a leading `Bearer ` (in any letter case, RFC 9110 section 11.1) is tolerated.
    fn try_from(value: &[u8]) -> Result<Self, Self::Error> {
        let bare = match value.split_at_checked(BEARER.len()) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(BEARER) => rest.trim_ascii_start(),
            _ => value,
        };
        let mut buffer = Zeroizing::new([0; BUFFER]);
        // Strict: no padding, no stray bits at the end, so that a credential has one text only.
        let length = URL_SAFE_NO_PAD.decode_slice(bare, &mut buffer[..]).ok();
        let whole = buffer.first_chunk().filter(|_| length == Some(LENGTH));
        whole
            .map(|bytes| Self(*bytes))
            .ok_or(ParseError("43 characters of base64url"))
    }
}

impl FromStr for Credential {
    type Err = ParseError;

    fn from_str(value: &str) -> Result<Self, Self::Err> {
        value.as_bytes().try_into()
    }
}

/// SHA-256 of a credential, which is what the store has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CredentialHash([u8; LENGTH]);

impl CredentialHash {
    /// Wraps a hash from the store.
    #[must_use]
    pub const fn from_bytes(hash: [u8; LENGTH]) -> Self {
        Self(hash)
    }

    /// The hash, for the store.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }
}

/// The key of a login's stored credential: SHA-256 of what all its credentials have in common.
#[derive(Clone, Copy)]
pub struct LoginHash([u8; LENGTH]);

impl LoginHash {
    /// The hash, for the store.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }
}

hide_in_debug!(Credential, CredentialHash, LoginHash);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewed_credentials_share_their_login_and_nothing_else() {
        let credential = Credential::from_bytes([7; LENGTH]);
        let renewed = credential.renewed(&[1; LENGTH]);
        let again = credential.renewed(&[1; LENGTH]);
        assert_eq!(*renewed.encode(), *again.encode());
        let others = [
            credential.renewed(&[2; LENGTH]),
            renewed.renewed(&[1; LENGTH]),
            Credential::from_bytes([8; LENGTH]).renewed(&[1; LENGTH]),
        ];
        for other in &others {
            assert_ne!(renewed.0[OF_LOGIN..], other.0[OF_LOGIN..]);
        }
        let login = |credential: &Credential| *credential.login_hash().as_bytes();
        assert_eq!(login(&renewed), login(&credential));
        assert_eq!(login(&others[1]), login(&credential));
        assert_ne!(login(&others[2]), login(&credential));
    }

    #[test]
    fn a_leading_bearer_is_tolerated() {
        let credential = Credential::from_bytes([7; LENGTH]);
        let bare = credential.encode();
        for value in [
            bare.to_string(),
            format!("Bearer {}", *bare),
            format!("bearer   {}", *bare),
            format!("BEARER \t{}", *bare),
        ] {
            let read = value.parse::<Credential>().unwrap();
            assert_eq!(read.hash(), credential.hash());
        }
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Basic eDp5",
            "日本語日本語",
            &format!("{} ", *bare),
            &format!("Basic {}", *bare),
            &format!("Bearer{}", *bare),
            &format!("Bearer Bearer {}", *bare),
            &format!("Bearer \u{a0}{}", *bare),
        ] {
            assert!(bad.parse::<Credential>().is_err(), "{bad}");
        }
        assert!(Credential::try_from(&b"\xff\xfe"[..]).is_err());
    }

    #[test]
    fn only_43_characters_of_the_canonical_encoding_are_accepted() {
        let text = Credential::from_bytes([0; LENGTH]).encode().to_string();
        assert_eq!(text.len(), 43);
        for bad in [
            &text[1..],
            &format!("{text}A"),
            &format!("{text}="),
            &format!("{text}AAAAAAAAAAAAAAAAAAAA"),
            &format!("{}B", &text[..42]),
            &text.replacen('A', "+", 1),
            &text.replacen('A', "/", 1),
        ] {
            assert!(bad.parse::<Credential>().is_err(), "{bad}");
        }
    }

    #[test]
    fn it_is_hashed_as_stored() {
        let hash = Credential::from_bytes([0; LENGTH]).hash();
        let expected = "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925";
        assert_eq!(hex::encode(hash.as_bytes()), expected);
    }

    #[test]
    fn neither_it_nor_its_hash_is_printed() {
        let credential = Credential::from_bytes([7; LENGTH]);
        assert_eq!(format!("{credential:?}"), "Credential(…)");
        assert_eq!(format!("{:?}", credential.hash()), "CredentialHash(…)");
    }
}

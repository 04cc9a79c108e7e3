//! 256-bit secrets: the base of login tokens, tickets, cookies and credentials.
//!
//! A secret is random, encoded as base64url, wiped when dropped, and never printed. The store has only its hash; the
//! hash of each kind of secret has its own type.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of every secret and every hash.
pub(crate) const LENGTH: usize = 32;

/// 256 secret bits.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Secret([u8; LENGTH]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("…")
    }
}

impl Secret {
    pub(crate) fn generate() -> Self {
        Self(random())
    }

    pub(crate) const fn from_bytes(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// Decodes 43 characters of base64url; `None` for anything else.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        decode(text).map(Self)
    }

    pub(crate) fn encode(&self) -> String {
        encode(&self.0)
    }

    pub(crate) fn sha256(&self) -> [u8; LENGTH] {
        sha256(&self.0)
    }

    /// Derives another secret, a different one for each `purpose`.
    pub(crate) fn derive(&self, purpose: &str) -> Self {
        Self::derive_from(&self.0, purpose)
    }

    /// HMAC-SHA256 with `key` over `purpose`.
    pub(crate) fn derive_from(key: &[u8], purpose: &str) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
        mac.update(purpose.as_bytes());
        Self(mac.finalize().into_bytes().into())
    }
}

/// `N` bytes from the system's random source.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without random bytes nothing here is safe: better to fail.
    getrandom::fill(&mut bytes).expect("a running system has a random source");
    bytes
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; LENGTH] {
    Sha256::digest(bytes).into()
}

pub(crate) fn encode(bytes: &[u8; LENGTH]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Option<[u8; LENGTH]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// Compares secrets in constant time; only the length can be inferred. All comparisons of secrets use it.
pub(crate) fn is_same(secret: &[u8], other: &[u8]) -> bool {
    secret.ct_eq(other).into()
}

/// Defines the type of the stored hash of one kind of secret, so that the kinds cannot be confused.
macro_rules! hash_type {
    ($(#[doc = $doc:literal])* $name:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) struct $name(pub(crate) [u8; $crate::secret::LENGTH]);

        impl $name {
            /// The hash, for the store.
            pub(crate) const fn as_bytes(&self) -> &[u8; $crate::secret::LENGTH] {
                &self.0
            }
        }

        signpost_protocol::hide_in_debug!($name);
    };
}
pub(crate) use hash_type;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_43_characters_and_reads_back() {
        let secret = Secret::generate();
        let text = secret.encode();
        assert_eq!(text.len(), 43);
        assert_eq!(Secret::decode(&text).unwrap().sha256(), secret.sha256());
    }

    #[test]
    fn only_the_canonical_encoding_is_accepted() {
        let text = encode(&[0; LENGTH]);
        let padded = format!("{text}=");
        let stray_bits = format!("{}B", &text[..42]);
        for bad in [
            "",
            "abc",
            &padded,
            &stray_bits,
            &text[1..],
            &format!("{text}A"),
            &text.replace('A', "+"),
        ] {
            assert!(Secret::decode(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn derived_secrets_depend_on_key_and_purpose() {
        let secret = Secret([7; LENGTH]);
        let derived = secret.derive("confirm").encode();
        assert_ne!(derived, secret.derive("code_verifier").encode());
        assert_ne!(derived, Secret([8; LENGTH]).derive("confirm").encode());
        assert_eq!(derived, secret.derive("confirm").encode());
    }
}

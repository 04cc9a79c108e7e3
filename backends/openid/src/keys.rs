//! The provider's public keys. Source: RFC 7517 sections 4 and 5, RFC 7518 section 6, RFC 8037 section 2.

#[cfg(test)]
mod tests;

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde_json::value::RawValue;

use crate::{MAX_DOCUMENT, fault::TokenFault, json::Object};

/// Most keys in a set.
const MAX_KEYS: usize = 100;

/// Longest key ID in bytes.
pub(crate) const MAX_KEY_ID: usize = 255;

/// Most keys that are tried for one token: verifying is the expensive part.
const MAX_TRIED: usize = 10;

/// What ring accepts, see its documentation of `RSA_PKCS1_2048_8192_SHA256`.
const MODULUS_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
const EXPONENTS: std::ops::RangeInclusive<u64> = 3..=(1 << 33) - 1;

/// The usable keys of a provider: at least one.
///
/// A key that is malformed or for something else is left out: one bad key must not lock everybody out.
#[derive(Clone)]
pub struct Keys(Vec<Key>);

/// Why a key set is rejected, for a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysFault {
    /// More than 64 KiB.
    #[error("the key set is larger than 64 KiB")]
    TooLarge,
    /// Not a JSON object with a list `keys`; often a page that was sent instead.
    #[error("the key set is not a JSON object with a list of keys")]
    Malformed,
    /// A name appears twice in the set itself.
    #[error("a name appears twice in the key set")]
    Ambiguous,
    /// More than 100 keys.
    #[error("the key set has more than 100 keys")]
    TooMany,
    /// No key is left.
    #[error("the key set has no usable key for RS256, ES256 or EdDSA")]
    NoneUsable,
}

impl Keys {
    /// Reads a JWK set.
    ///
    /// # Errors
    ///
    /// The set is malformed or too large, or no key in it is usable.
    pub fn parse(document: &[u8]) -> Result<Self, KeysFault> {
        if document.len() > MAX_DOCUMENT {
            return Err(KeysFault::TooLarge);
        }
        let set = Object::read(document, KeysFault::Malformed, KeysFault::Ambiguous)?;
        let listed: Option<Vec<&RawValue>> = set.get("keys", KeysFault::Malformed)?;
        let listed = listed.ok_or(KeysFault::Malformed)?;
        if listed.len() > MAX_KEYS {
            return Err(KeysFault::TooMany);
        }
        let usable: Vec<_> = listed.into_iter().filter_map(Key::read).collect();
        if usable.is_empty() {
            return Err(KeysFault::NoneUsable);
        }
        Ok(Self(usable))
    }

    /// The number of usable keys.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Verifies a signature by the keys of this algorithm and, if there is a key ID, of this ID.
    pub(crate) fn verify(
        &self,
        algorithm: Algorithm,
        key_id: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), TokenFault> {
        let has_id = |key: &&Key| key_id.is_none() || key.id.as_deref() == key_id;
        let fitting = self.0.iter().filter(has_id);
        let fitting = fitting.filter(|key| key.public.algorithm() == algorithm);
        let mut fault = TokenFault::UnknownKey;
        for key in fitting.take(MAX_TRIED) {
            if key.public.verifies(message, signature) {
                return Ok(());
            }
            fault = TokenFault::BadSignature;
        }
        Err(fault)
    }
}

/// Without the keys: they are long.
impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Keys({})", self.count())
    }
}

/// An algorithm that an ID token may be signed by. A key has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 section 3.3). Every provider has it (OIDC Discovery section 3).
    Rs256,
    /// ECDSA on P-256 with SHA-256 (RFC 7518 section 3.4).
    Es256,
    /// Ed25519 (RFC 8037 section 3.1).
    EdDsa,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// The name in `alg`. Names are case-sensitive.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|algorithm| algorithm.name() == name)
    }
}

#[derive(Clone)]
struct Key {
    id: Option<String>,
    public: PublicKey,
}

impl Key {
    /// Reads a JWK. `None` if it cannot verify ID tokens.
    fn read(value: &RawValue) -> Option<Self> {
        let jwk = Object::read(value.get().as_bytes(), (), ()).ok()?;
        let id: Option<String> = jwk.get("kid", ()).ok()?;
        if id.as_ref().is_some_and(|id| id.len() > MAX_KEY_ID) {
            return None;
        }
        let usage: Option<String> = jwk.get("use", ()).ok()?;
        let operations: Option<Vec<String>> = jwk.get("key_ops", ()).ok()?;
        let verifies = usage.is_none_or(|usage| usage == "sig")
            && operations.is_none_or(|all| all.iter().any(|operation| operation == "verify"));
        let public = PublicKey::read(&jwk).filter(|_| verifies)?;
        let bound: Option<String> = jwk.get("alg", ()).ok()?;
        // A key for RS512, for example, must not verify a token by RS256.
        let is_bound = bound.is_none_or(|name| name == public.algorithm().name());
        is_bound.then_some(Self { id, public })
    }
}

/// A key as ring takes it. Its type decides the algorithm, so no token can choose another one for it.
#[derive(Clone)]
enum PublicKey {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    /// Whether the point is on the curve is found out by verifying: every signature is invalid otherwise.
    P256(UnparsedPublicKey<Vec<u8>>),
    Ed25519(UnparsedPublicKey<Vec<u8>>),
}

impl PublicKey {
    /// Reads the public members; others, such as the private `d`, are never looked at.
    fn read(jwk: &Object<'_>) -> Option<Self> {
        let text = |name: &str| jwk.get::<String, _>(name, ()).ok().flatten();
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let sized = |name: &str| bytes(name).filter(|bytes| bytes.len() == 32);
        match text("kty")?.as_str() {
            "RSA" => rsa(&bytes("n")?, &bytes("e")?).map(Self::Rsa),
            "EC" if text("crv")? == "P-256" => {
                // 4 is the form of an uncompressed point (SEC 1 section 2.3.3).
                let point = [vec![4], sized("x")?, sized("y")?].concat();
                Some(Self::P256(UnparsedPublicKey::new(
                    &ECDSA_P256_SHA256_FIXED,
                    point,
                )))
            }
            "OKP" if text("crv")? == "Ed25519" => {
                let point = sized("x")?;
                Some(Self::Ed25519(UnparsedPublicKey::new(&ED25519, point)))
            }
            _ => None,
        }
    }

    const fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa(_) => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Self::Rsa(key) => key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            Self::P256(key) | Self::Ed25519(key) => key.verify(message, signature),
        };
        verified.is_ok()
    }
}

/// An RSA key, if ring would accept it.
fn rsa(modulus: &[u8], exponent: &[u8]) -> Option<RsaPublicKeyComponents<Vec<u8>>> {
    let (n, e) = (without_zeros(modulus), without_zeros(exponent));
    let zeros = n.first()?.leading_zeros() as usize;
    // Checked here: ring would reject such a key with each signature only, and the set would seem to be usable.
    let is_odd = n.last()? % 2 == 1 && e.last()? % 2 == 1;
    let is_large = MODULUS_BITS.contains(&(n.len() * 8 - zeros));
    let value = (e.len() <= 8).then(|| e.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    let is_accepted = value.is_some_and(|value| EXPONENTS.contains(&value));
    (is_odd && is_large && is_accepted).then(|| RsaPublicKeyComponents {
        n: n.to_vec(),
        e: e.to_vec(),
    })
}

/// RFC 7518 section 6.3.1.1 forbids leading zeros, and says that some libraries write them: ring rejects them.
fn without_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

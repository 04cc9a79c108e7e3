//! The keys of ID tokens: made, published (RFC 7517, RFC 7518, RFC 8037), rotated.
//!
//! `ring` makes no RSA keys, so there are two fixed ones, in `keys/`. They are public, and worthless outside tests.

use std::sync::{Arc, Mutex};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::{
    hmac,
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
        RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use serde_json::{Map, Value, json};

use crate::grant::{locked, random_name};

/// An algorithm of a signature (RFC 7518 section 3.1, RFC 8037 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256, 2048 bits.
    Rs256,
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// The value of `alg`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// A private key with its name.
#[derive(Debug)]
pub struct Key {
    /// The value of `kid`. A new key has a new one, also where an RSA key is used again.
    pub kid: String,
    algorithm: Algorithm,
    generation: usize,
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

const RSA_KEYS: [&[u8]; 2] = [
    include_bytes!("../keys/first.pk8"),
    include_bytes!("../keys/second.pk8"),
];

impl Key {
    fn generate(algorithm: Algorithm, generation: usize) -> Self {
        let random = SystemRandom::new();
        let pair = match algorithm {
            Algorithm::Rs256 => {
                let file = RSA_KEYS[generation % RSA_KEYS.len()];
                Pair::Rsa(RsaKeyPair::from_pkcs8(file).expect("the file is an RSA key"))
            }
            Algorithm::Es256 => {
                let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let file = EcdsaKeyPair::generate_pkcs8(curve, &random).expect(HAS_RANDOMNESS);
                let pair = EcdsaKeyPair::from_pkcs8(curve, file.as_ref(), &random);
                Pair::Ecdsa(pair.expect("the key was made for this curve"))
            }
            Algorithm::EdDsa => {
                let file = Ed25519KeyPair::generate_pkcs8(&random).expect(HAS_RANDOMNESS);
                let pair = Ed25519KeyPair::from_pkcs8(file.as_ref());
                Pair::Ed(pair.expect("the key was just made"))
            }
        };
        Self {
            kid: random_name(),
            algorithm,
            generation,
            pair,
        }
    }

    /// Another key of the same algorithm, which is not published.
    #[must_use]
    pub fn unpublished(&self) -> Self {
        Self::generate(self.algorithm, self.generation + 1)
    }

    /// The value of `alg`.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .expect("the signature is as long as the modulus");
                signature
            }
            Pair::Ecdsa(pair) => {
                let signature = pair.sign(&random, message).expect(HAS_RANDOMNESS);
                signature.as_ref().to_vec()
            }
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// HMAC with SHA-256, whose key is the public key: valid for a client that takes the algorithm from the token
    /// (RFC 8725 section 2.1).
    #[must_use]
    pub fn confuse(&self, message: &[u8]) -> Vec<u8> {
        let public = match &self.pair {
            Pair::Rsa(pair) => pair.public_key().as_ref(),
            Pair::Ecdsa(pair) => pair.public_key().as_ref(),
            Pair::Ed(pair) => pair.public_key().as_ref(),
        };
        let key = hmac::Key::new(hmac::HMAC_SHA256, public);
        hmac::sign(&key, message).as_ref().to_vec()
    }

    fn published(&self) -> Map<String, Value> {
        let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let public = match &self.pair {
            Pair::Rsa(pair) => {
                let parts = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "n": encode(&parts.n), "e": encode(&parts.e) })
            }
            Pair::Ecdsa(pair) => {
                // An uncompressed point: 4, x, y.
                let (_, point) = pair.public_key().as_ref().split_at(1);
                let (x, y) = point.split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y) })
            }
            Pair::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref()) })
            }
        };
        let mut key = Map::new();
        key.insert("kid".to_owned(), self.kid.clone().into());
        key.insert("use".to_owned(), "sig".into());
        key.insert("alg".to_owned(), self.algorithm.name().into());
        key.extend(public.as_object().cloned().unwrap_or_default());
        key
    }
}

/// The current keys of a provider, one for each algorithm.
#[derive(Debug)]
pub struct Keyring(Mutex<Vec<Arc<Key>>>);

impl Keyring {
    /// Makes the first keys.
    #[must_use]
    pub fn new(algorithms: &[Algorithm]) -> Self {
        let keys = algorithms
            .iter()
            .map(|algorithm| Arc::new(Key::generate(*algorithm, 0)));
        Self(Mutex::new(keys.collect()))
    }

    /// Makes new keys and drops the old ones.
    pub fn rotate(&self) {
        for key in locked(&self.0).iter_mut() {
            *key = Arc::new(key.unpublished());
        }
    }

    /// The key of this algorithm.
    pub fn key(&self, algorithm: Algorithm) -> Option<Arc<Key>> {
        let keys = locked(&self.0);
        keys.iter()
            .find(|key| key.algorithm == algorithm)
            .map(Arc::clone)
    }

    /// The public keys, as a key set has them.
    pub fn published(&self) -> Vec<Map<String, Value>> {
        locked(&self.0).iter().map(|key| key.published()).collect()
    }
}

const HAS_RANDOMNESS: &str = "the system has a source of randomness";

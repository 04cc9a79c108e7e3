//! Signs ID tokens in tests, with keys that everybody knows: they are in the repository.
//!
//! ```
//! use signpost_openid::{Expected, IdToken, Keys, testing::{Signer, key_set}};
//!
//! let payload = r#"{"iss":"https://id.example","aud":"me","sub":"7","nonce":"n","exp":2000,"iat":1000}"#;
//! let token = Signer::Es256.token(payload);
//! let keys = Keys::parse(key_set().as_bytes()).unwrap();
//! let expected = Expected { issuer: "https://id.example", client_id: "me", nonce: "n", now: 1500 };
//! let user = IdToken::parse(&token).unwrap().verify(&keys).unwrap().check(&expected).unwrap();
//! assert_eq!(user.subject, "7");
//! ```

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
        RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use serde_json::{Value, json};

use crate::keys::Algorithm;

/// Made by `openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048`, as PKCS#8. It protects nothing.
const RSA: &[u8] = include_bytes!("testing/rsa_test_key.der");
/// Made by `openssl ecparam -name prime256v1 -genkey`, as PKCS#8. It protects nothing.
const P256: &[u8] = include_bytes!("testing/p256_test_key.der");
const ED25519_SEED: [u8; 32] = *b"everybody knows this private key";

/// A key for each algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// RSA of 2,048 bits.
    Rs256,
    /// P-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Signer {
    /// Every signer.
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// The algorithm that it signs with.
    #[must_use]
    pub const fn algorithm(self) -> Algorithm {
        match self {
            Self::Rs256 => Algorithm::Rs256,
            Self::Es256 => Algorithm::Es256,
            Self::EdDsa => Algorithm::EdDsa,
        }
    }

    /// The `kid` of its tokens.
    #[must_use]
    pub const fn key_id(self) -> &'static str {
        match self {
            Self::Rs256 => "rsa",
            Self::Es256 => "p256",
            Self::EdDsa => "ed25519",
        }
    }

    /// A token with this payload, and the header that providers write.
    #[must_use]
    pub fn token(self, payload: &str) -> String {
        let algorithm = self.algorithm().name();
        let header = json!({"alg": algorithm, "kid": self.key_id(), "typ": "JWT"});
        self.sign(&header.to_string(), payload)
    }

    /// A token with any header, signed by this key.
    #[must_use]
    pub fn sign(self, header: &str, payload: &str) -> String {
        let input = format!("{}.{}", encoded(header), encoded(payload));
        let signature = self.signature(input.as_bytes());
        format!("{input}.{}", encoded(signature))
    }

    /// The signature of a message.
    ///
    /// # Panics
    ///
    /// When the system has no random numbers.
    #[must_use]
    pub fn signature(self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rs256 => {
                let key = rsa();
                let mut signature = vec![0; key.public().modulus_len()];
                let signed = key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature);
                signed.expect("the buffer has the modulus's length");
                signature
            }
            Self::Es256 => {
                let signature = p256().sign(&random, message);
                let signature = signature.expect("there are random numbers");
                signature.as_ref().to_vec()
            }
            Self::EdDsa => ed25519().sign(message).as_ref().to_vec(),
        }
    }

    /// The public key as a JWK.
    #[must_use]
    pub fn jwk(self) -> Value {
        let mut jwk = match self {
            Self::Rs256 => {
                let public: PublicKeyComponents<Vec<u8>> = rsa().public().into();
                json!({"kty": "RSA", "n": encoded(public.n), "e": encoded(public.e)})
            }
            Self::Es256 => {
                let key = p256();
                // The first byte says that both coordinates follow.
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": encoded(x), "y": encoded(y)})
            }
            Self::EdDsa => {
                let x = encoded(ed25519().public_key());
                json!({"kty": "OKP", "crv": "Ed25519", "x": x})
            }
        };
        jwk["kid"] = self.key_id().into();
        jwk["use"] = "sig".into();
        jwk["alg"] = self.algorithm().name().into();
        jwk
    }
}

/// The JWK set with the public key of each signer.
#[must_use]
pub fn key_set() -> String {
    json!({"keys": Signer::ALL.map(Signer::jwk)}).to_string()
}

/// Base64url, as in tokens and keys.
#[must_use]
pub fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn rsa() -> RsaKeyPair {
    RsaKeyPair::from_pkcs8(RSA).expect("the key is valid")
}

fn p256() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, P256, &random);
    key.expect("the key is valid")
}

fn ed25519() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&ED25519_SEED).expect("the seed has 32 bytes")
}

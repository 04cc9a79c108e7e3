//! ID tokens: the compact JWS and its signature. Source: RFC 7515 sections 3, 4 and 5.2, RFC 8725 section 3.

#[cfg(test)]
mod tests;

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    claims::Claims,
    fault::TokenFault,
    json::Object,
    keys::{Algorithm, Keys, MAX_KEY_ID},
};

/// Longest ID token in bytes.
pub const MAX_TOKEN: usize = 16 * 1024;

/// Registered names of other algorithms, which a log line may show (the registry of RFC 7518 section 7.1).
const OTHER_ALGORITHMS: [&str; 12] = [
    "HS256", "HS384", "HS512", "RS384", "RS512", "ES384", "ES512", "ES256K", "PS256", "PS384",
    "PS512", "Ed25519",
];

/// An ID token whose signature is not verified yet: all that it gives away is which key it asks for.
pub struct IdToken<'a> {
    signing_input: &'a str,
    payload: Vec<u8>,
    signature: Vec<u8>,
    header: Header,
}

impl<'a> IdToken<'a> {
    /// Reads the header of a compact JWS. The payload is decoded, not parsed.
    ///
    /// # Errors
    ///
    /// The token is malformed or not signed, or its header asks for what is not supported.
    pub fn parse(text: &'a str) -> Result<Self, TokenFault> {
        if text.len() > MAX_TOKEN {
            return Err(TokenFault::TooLong);
        }
        let parts: Vec<_> = text.split('.').collect();
        let [header, payload, signature] = parts[..] else {
            return Err(TokenFault::NotCompact);
        };
        let decoded = |part: &str| {
            let decoded = URL_SAFE_NO_PAD.decode(part);
            decoded.map_err(|_| TokenFault::NotBase64)
        };
        Ok(Self {
            signing_input: &text[..header.len() + 1 + payload.len()],
            header: Header::read(&decoded(header)?)?,
            payload: decoded(payload)?,
            signature: decoded(signature)?,
        })
    }

    /// The ID of the key that the token asks for.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.header.key_id.as_deref()
    }

    /// Verifies the signature by the provider's keys, and only then reads the payload.
    ///
    /// A token with a key ID is verified by the keys of this ID and of the token's algorithm, a token without by all
    /// keys of its algorithm. At most ten keys are tried.
    ///
    /// # Errors
    ///
    /// [`TokenFault::UnknownKey`] if there is no such key: the provider may have a new one. Otherwise the signature is
    /// invalid, or the payload is not an object.
    pub fn verify(&self, keys: &Keys) -> Result<Claims<'_>, TokenFault> {
        let message = self.signing_input.as_bytes();
        let (algorithm, key_id) = (self.header.algorithm, self.key_id());
        // Over the text as it was sent, not over what was decoded: the same JSON can be written in many ways.
        keys.verify(algorithm, key_id, message, &self.signature)?;
        Claims::read(&self.payload)
    }
}

/// Without what the token says: it is not proven, and it is private.
impl fmt::Debug for IdToken<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "IdToken({})", self.header.algorithm.name())
    }
}

struct Header {
    algorithm: Algorithm,
    key_id: Option<String>,
}

impl Header {
    fn read(header: &[u8]) -> Result<Self, TokenFault> {
        let malformed = TokenFault::HeaderMalformed;
        let header = Object::read(header, malformed, TokenFault::HeaderAmbiguous)?;
        let algorithm = read_algorithm(&header)?;
        // Both can change how the token is to be read: what is not understood must be rejected (RFC 7515 section
        // 4.1.11).
        if header.has("crit") || header.has("b64") {
            return Err(TokenFault::Extension);
        }
        let media_type: Option<String> = header.get("typ", TokenFault::HeaderMalformed)?;
        if media_type.is_some_and(|name| !is_jwt(&name)) {
            return Err(TokenFault::OtherType);
        }
        let key_id: Option<String> = header.get("kid", TokenFault::KeyIdMalformed)?;
        if key_id.as_ref().is_some_and(|id| id.len() > MAX_KEY_ID) {
            return Err(TokenFault::KeyIdMalformed);
        }
        Ok(Self { algorithm, key_id })
    }
}

fn read_algorithm(header: &Object<'_>) -> Result<Algorithm, TokenFault> {
    let name: Option<String> = header.get("alg", TokenFault::HeaderMalformed)?;
    let name = name.ok_or(TokenFault::HeaderMalformed)?;
    // In any letter case: `nOnE` is rejected below, too, but the log should say what it is.
    if name.eq_ignore_ascii_case("none") {
        return Err(TokenFault::Unsigned);
    }
    Algorithm::from_name(&name).ok_or_else(|| {
        let mut others = OTHER_ALGORITHMS.into_iter();
        match others.find(|other| *other == name) {
            Some(name) => TokenFault::OtherAlgorithm { name },
            None => TokenFault::UnknownAlgorithm,
        }
    })
}

/// Whether a media type says that this is a JWT, in any case and with or without `application/` (RFC 7515 section 4.1.9).
/// Access tokens (`at+jwt`), logout tokens (`logout+jwt`) and others of the same keys have their own.
fn is_jwt(media_type: &str) -> bool {
    let name = media_type.to_ascii_lowercase();
    name.strip_prefix("application/").unwrap_or(&name) == "jwt"
}

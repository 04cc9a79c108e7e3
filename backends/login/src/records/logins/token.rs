//! The two names of a login: the token, which the client keeps, and the `state`, which the browser carries.
//!
//! CONTRACT 8: `token` is `v1.` and 256 random bits; `state` is `v1.` and the SHA-256 of the whole
//! token. Only that hash is stored, so a login cannot be collected with a URL or the database alone.

use std::{fmt, str::FromStr};

use signpost_protocol::{login_state::version_of, version::Version};
use zeroize::Zeroizing;

use crate::{
    records::credentials::{Credential, credential_from},
    secret::{self, Secret, hash_type},
};

hash_type! {
    /// SHA-256 of a whole login token: the content of a `state`, and the key of a stored login.
    StateHash
}

/// A polling client's secret, with which it collects the login.
pub(crate) struct LoginToken(Zeroizing<String>);

impl LoginToken {
    /// Generates a token for a login of `version`.
    #[must_use]
    pub(crate) fn generate(version: &Version) -> Self {
        Self(Zeroizing::new(format!(
            "{version}.{}",
            Secret::generate().encode()
        )))
    }

    /// The token's text, for the response that contains it.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The `state` of the token's login, which can be shown to browsers.
    #[must_use]
    pub(crate) fn state(&self) -> LoginState {
        let version = version_of(&self.0).and_then(|version| version.parse().ok());
        LoginState {
            version: version.expect("generating and parsing both put a version in front"),
            hash: self.hash(),
        }
    }

    /// The hash that is stored.
    #[must_use]
    pub(crate) fn hash(&self) -> StateHash {
        StateHash(secret::sha256(self.0.as_bytes()))
    }

    /// The login's credential, derived from the token: the same in each backend, and unknown to the store. CONTRACT 8.
    #[must_use]
    pub(crate) fn credential(&self) -> Credential {
        credential_from(&Secret::derive_from(self.0.as_bytes(), "authorization"))
    }
}

impl FromStr for LoginToken {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (version, random) = text.rsplit_once('.').ok_or(ParseTokenError)?;
        version.parse::<Version>().map_err(|_| ParseTokenError)?;
        Secret::decode(random).ok_or(ParseTokenError)?;
        Ok(Self(Zeroizing::new(text.to_owned())))
    }
}

impl fmt::Debug for LoginToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LoginToken(…)")
    }
}

/// OAuth's `state` (RFC 6749 section 4.1.1): names the login and the version that issued it.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginState {
    version: Version,
    hash: StateHash,
}

impl LoginState {
    /// The state of a login of `version` that is stored under `hash`.
    #[must_use]
    pub fn new(version: Version, hash: StateHash) -> Self {
        Self { version, hash }
    }

    /// The version that issued it, which is not verified.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The key of the stored login.
    #[must_use]
    pub fn hash(&self) -> &StateHash {
        &self.hash
    }

    /// The state's text, for URLs. There is no `Display`, so that a state is not logged by mistake.
    #[must_use]
    pub fn encode(&self) -> String {
        format!("{}.{}", self.version, secret::encode(self.hash.as_bytes()))
    }
}

impl FromStr for LoginState {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (version, hash) = text.rsplit_once('.').ok_or(ParseTokenError)?;
        Ok(Self {
            version: version.parse().map_err(|_| ParseTokenError)?,
            hash: secret::decode(hash).map(StateHash).ok_or(ParseTokenError)?,
        })
    }
}

impl fmt::Debug for LoginState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LoginState({}.…)", self.version)
    }
}

/// The text does not have the format of a token or a state.
#[derive(Debug, thiserror::Error)]
#[error("a version, a dot and 43 characters of base64url")]
pub struct ParseTokenError;

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> LoginToken {
        LoginToken::generate(&"v1".parse().unwrap())
    }

    #[test]
    fn the_state_is_the_version_and_the_hash_of_the_whole_token() {
        let token = token();
        let expected = secret::encode(&secret::sha256(token.as_str().as_bytes()));
        assert_eq!(token.state().encode(), format!("v1.{expected}"));
    }

    #[test]
    fn token_and_state_read_back() {
        let token = token();
        assert_eq!(
            token.as_str().parse::<LoginToken>().unwrap().hash(),
            token.hash()
        );
        assert_eq!(
            token.state().encode().parse::<LoginState>().unwrap(),
            token.state()
        );
    }

    #[test]
    fn a_token_under_another_version_is_another_login() {
        let token = token();
        let other: LoginToken = token.as_str().replacen("v1", "v2", 1).parse().unwrap();
        assert_ne!(other.hash(), token.hash());
    }

    #[test]
    fn malformed_tokens_and_states_are_rejected() {
        let body = secret::encode(&[1; 32]);
        for bad in [
            "",
            "v1",
            "v1.",
            &body,
            &format!(".{body}"),
            &format!("v1.{body}A"),
            &format!("v 1.{body}"),
        ] {
            assert!(bad.parse::<LoginToken>().is_err(), "{bad}");
            assert!(bad.parse::<LoginState>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_credential_is_derived_from_the_token_and_is_not_in_the_state() {
        let token = token();
        assert_eq!(token.credential().hash(), token.credential().hash());
        assert_ne!(
            token.credential().hash().as_bytes(),
            token.hash().as_bytes()
        );
    }

    #[test]
    fn debug_output_contains_no_secrets() {
        let token = token();
        let printed = format!("{token:?} {:?}", token.state());
        assert!(!printed.contains(token.as_str()) && !printed.contains(&token.state().encode()));
    }
}

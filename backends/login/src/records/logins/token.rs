//! The two names of a login: the token, which the client keeps, and the `state`, which the browser carries.
//!
//! CONTRACT 8: `token` is `v1.` and 256 random bits; `state` is `v1.` and the SHA-256 of the whole
//! token. Only that hash is stored, so a login cannot be collected with a URL or the database alone.

use std::fmt;

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
    pub(crate) fn generate(version: &Version) -> Self {
        Self(Zeroizing::new(format!(
            "{version}.{}",
            Secret::generate().encode()
        )))
    }

    /// Reads a version, a dot and 43 characters of base64url; `None` for anything else.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let (version, random) = text.rsplit_once('.')?;
        version.parse::<Version>().ok()?;
        Secret::decode(random)?;
        Some(Self(Zeroizing::new(text.to_owned())))
    }

    /// The token's text, for the response that contains it.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The `state` of the token's login, which can be shown to browsers.
    pub(crate) fn state(&self) -> LoginState {
        let version = version_of(&self.0).and_then(|version| version.parse().ok());
        LoginState {
            version: version.expect("generating and parsing both put a version in front"),
            hash: self.hash(),
        }
    }

    /// The hash that is stored.
    pub(crate) fn hash(&self) -> StateHash {
        StateHash(secret::sha256(self.0.as_bytes()))
    }

    /// The login's credential, derived from the token: the same in each backend, and unknown to the store. CONTRACT 8.
    pub(crate) fn credential(&self) -> Credential {
        credential_from(&Secret::derive_from(self.0.as_bytes(), "authorization"))
    }
}

signpost_protocol::hide_in_debug!(LoginToken);

/// OAuth's `state` (RFC 6749 section 4.1.1): names the login and the version that issued it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LoginState {
    version: Version,
    hash: StateHash,
}

impl LoginState {
    /// The state of a login of `version` that is stored under `hash`.
    pub(crate) fn new(version: Version, hash: StateHash) -> Self {
        Self { version, hash }
    }

    /// The version that issued it, which is not verified.
    pub(crate) fn version(&self) -> &Version {
        &self.version
    }

    /// The key of the stored login.
    pub(crate) fn hash(&self) -> &StateHash {
        &self.hash
    }

    /// Reads a version, a dot and 43 characters of base64url; `None` for anything else.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let (version, hash) = text.rsplit_once('.')?;
        Some(Self {
            version: version.parse().ok()?,
            hash: secret::decode(hash).map(StateHash)?,
        })
    }

    /// The state's text, for URLs. There is no `Display`, so that a state is not logged by mistake.
    pub(crate) fn encode(&self) -> String {
        format!("{}.{}", self.version, secret::encode(self.hash.as_bytes()))
    }
}

impl fmt::Debug for LoginState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LoginState({}.…)", self.version)
    }
}

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
            LoginToken::decode(token.as_str()).unwrap().hash(),
            token.hash()
        );
        assert_eq!(
            LoginState::decode(&token.state().encode()).unwrap(),
            token.state()
        );
    }

    #[test]
    fn a_token_under_another_version_is_another_login() {
        let token = token();
        let other = LoginToken::decode(&token.as_str().replacen("v1", "v2", 1)).unwrap();
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
            assert!(LoginToken::decode(bad).is_none(), "{bad}");
            assert!(LoginState::decode(bad).is_none(), "{bad}");
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

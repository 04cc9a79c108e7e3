//! The names of a login: the token, which the client keeps, and the `state`, which the browser carries; the ticket, which a
//! redirect login passes to its application; the code that a user compares on two screens.
//!
//! CONTRACT 8: `token` is `v1.` and 256 random bits; `state` is `v1.` and the SHA-256 of the whole
//! token. Only that hash is stored, so a login cannot be collected with a URL or the database alone.

use std::{fmt, str::FromStr};

use signpost_protocol::{
    challenge::Challenge,
    version::{Version, version_of},
};
use zeroize::Zeroizing;

use crate::{
    records::credentials::{Credential, credential_from},
    secret::{self, Secret, hash_type, random, sha256},
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
        // From the end: the name of a version may have dots, base64url has none.
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
        StateHash(sha256(self.0.as_bytes()))
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
        // As a token, from the end.
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

hash_type! {
    /// SHA-256 of a ticket and its challenge, which is what the store has.
    TicketHash
}

/// Redeems one login result, once, within 60 s. CONTRACT 8.
#[derive(Debug)]
pub(crate) struct Ticket(Secret);

impl Ticket {
    /// Generates a random ticket.
    pub(crate) fn generate() -> Self {
        Self(Secret::generate())
    }

    /// Reads 43 characters of base64url; `None` for anything else.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        Secret::decode(text).map(Self)
    }

    /// The ticket's text, for the query of `return_to`.
    pub(crate) fn encode(&self) -> String {
        self.0.encode()
    }

    /// The hash that is stored. The challenge is part of it: only who has the verifier finds the login, and who sends one for a
    /// login without a challenge does not.
    pub(crate) fn hash(&self, challenge: Option<&Challenge>) -> TicketHash {
        let challenge = challenge.map_or(&[][..], |challenge| challenge.as_bytes());
        // Unambiguous without a separator: a ticket always has 32 bytes, and so has a challenge.
        let bound = Zeroizing::new([self.0.as_bytes(), challenge].concat());
        TicketHash(sha256(&bound))
    }
}

/// Consonants only, so that codes contain no words, and no letters that look like digits (RFC 8628 section 6.1).
const ALPHABET: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const LETTERS: usize = 8;

/// Eight letters in two groups: `BCDF-GHJK`. Not a secret: it identifies a login, but gives no access to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserCode(String);

impl UserCode {
    /// Generates a random code.
    pub(crate) fn generate() -> Self {
        // 64 bits over 20 letters: the bias is about 10⁻⁹, and the code is not a secret.
        let mut number = u64::from_le_bytes(random());
        let mut code = String::with_capacity(LETTERS + 1);
        for index in 0..LETTERS {
            if index == LETTERS / 2 {
                code.push('-');
            }
            let letter = usize::try_from(number % 20).expect("less than 20");
            code.push(char::from(ALPHABET[letter]));
            number /= 20;
        }
        Self(code)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserCode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_letter = |letter: u8| ALPHABET.contains(&letter);
        match text.split_once('-') {
            Some((first, second))
                if first.len() == 4
                    && second.len() == 4
                    && first.bytes().chain(second.bytes()).all(is_letter) =>
            {
                Ok(Self(text.to_owned()))
            }
            _ => Err(()),
        }
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
        let expected = secret::encode(&sha256(token.as_str().as_bytes()));
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

    #[test]
    fn a_ticket_reads_back_and_is_not_printed() {
        let ticket = Ticket::generate();
        assert_eq!(
            Ticket::decode(&ticket.encode()).unwrap().hash(None),
            ticket.hash(None)
        );
        assert!(Ticket::decode("x").is_none());
        assert!(!format!("{ticket:?}").contains(&ticket.encode()));
    }

    #[test]
    fn a_ticket_is_found_with_the_verifier_of_its_challenge_only() {
        let [challenge, other] =
            ["a", "b"].map(|one| Challenge::of_verifier(&one.repeat(43)).unwrap());
        let ticket = Ticket::generate();
        let hashes = [None, Some(&challenge), Some(&other)].map(|one| ticket.hash(one).0);
        let different: std::collections::BTreeSet<_> = hashes.iter().collect();
        assert_eq!(different.len(), hashes.len());
    }

    #[test]
    fn a_code_is_two_groups_of_four_consonants() {
        let code = UserCode::generate();
        assert_eq!(code.as_str().parse::<UserCode>().unwrap(), code);
        for bad in ["", "BCDFGHJK", "BCDF-GHJA", "BCD-FGHJK", "bcdf-ghjk"] {
            assert!(bad.parse::<UserCode>().is_err(), "{bad}");
        }
    }
}

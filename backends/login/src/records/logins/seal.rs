//! Redirect logins before their callback: sealed in the browser's cookie, so that beginning one writes nothing to the
//! store.
//!
//! Anyone can begin a redirect login. So all its data is in the browser, encrypted and authenticated with a key that
//! all processes share. The row is inserted when the provider sends the browser back.
//!
//! The 32 bytes of such a login's `state` are its expiry, 80 random bits, and a tag over both. With the tag, a process
//! recognises issued states without reading the store. Each `state` has its own encryption key, so a cookie is valid
//! only with its `state`.
//!
//! An attacker who reads the key in the database can create cookies for their own browser, and so begin a login without
//! the signature that `return_to` requires. They cannot collect the login of another browser.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use sha2::Sha256;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppId, challenge::Challenge, version::Version};
use url::Url;
use zeroize::Zeroizing;

use super::{Hints, LoginCookie, LoginState, StateHash};
use crate::{
    config::ProviderName,
    secret::{LENGTH, Secret, is_same, random},
};

/// Bytes of a state: 6 of time, 10 random, 16 of tag.
const TIME_BYTES: usize = 6;
const TAG_BYTES: usize = 16;
const TAGGED_BYTES: usize = LENGTH - TAG_BYTES;
/// Version of the layout of a sealed login, so that later releases can change it.
const FORMAT: u8 = 1;

/// The key that issues and recognises the states of redirect logins, and seals the logins: 256 random bits, in the store.
#[derive(Clone, Debug)]
pub(crate) struct SealKey(Secret);

/// A redirect login, as sealed in its cookie.
#[derive(Clone, Debug)]
pub(crate) struct SealedRedirect {
    /// The application that begins it.
    pub(crate) application: AppId,
    /// The provider that the user logs in with; `None`: the user has not chosen one.
    pub(crate) provider: Option<ProviderName>,
    /// What goes on to the provider.
    pub(crate) hints: Hints,
    /// Where the browser is redirected to at the end.
    pub(crate) return_to: Option<Url>,
    /// Whom its ticket is for.
    pub(crate) challenge: Option<Challenge>,
    /// The browser's random value, from which PKCE's `code_verifier` is derived.
    pub(crate) cookie: LoginCookie,
}

impl SealKey {
    /// Generates a random key.
    pub(crate) fn generate() -> Self {
        Self(Secret::generate())
    }

    /// Wraps a key from the store.
    pub(crate) fn from_bytes(bytes: [u8; LENGTH]) -> Self {
        Self(Secret::from_bytes(bytes))
    }

    /// The key, for the store.
    pub(crate) fn as_bytes(&self) -> &[u8; LENGTH] {
        self.0.as_bytes()
    }

    /// Issues a new `state` for a redirect login of `version`.
    pub(crate) fn issue_state(&self, version: &Version, expires_at: Timestamp) -> LoginState {
        let millis = u64::try_from(expires_at.as_millis()).unwrap_or(0);
        let mut bytes = [0; LENGTH];
        bytes[..TIME_BYTES].copy_from_slice(&millis.to_be_bytes()[8 - TIME_BYTES..]);
        bytes[TIME_BYTES..TAGGED_BYTES].copy_from_slice(&random::<{ TAGGED_BYTES - TIME_BYTES }>());
        let tag = self.tag(version, &bytes);
        bytes[TAGGED_BYTES..].copy_from_slice(&tag);
        LoginState::new(version.clone(), StateHash(bytes))
    }

    /// Returns when the redirect login of `state` expires; `None` if [`Self::issue_state`] did not issue the state.
    pub(crate) fn expiry_of(&self, state: &LoginState) -> Option<Timestamp> {
        let bytes = state.hash().as_bytes();
        let tag = self.tag(state.version(), bytes);
        // In constant time: anyone can try states, and must not learn how much of a tag is right.
        if !is_same(&tag, &bytes[TAGGED_BYTES..]) {
            return None;
        }
        let mut millis = [0; 8];
        millis[8 - TIME_BYTES..].copy_from_slice(&bytes[..TIME_BYTES]);
        let millis = i64::try_from(u64::from_be_bytes(millis)).ok()?;
        Some(Timestamp::from_millis(millis))
    }

    /// Returns the cookie's value for the login of `state`: base64url. Must be called once only for each state: the
    /// state's key is used with a constant nonce.
    pub(crate) fn seal(&self, state: &LoginState, login: &SealedRedirect) -> String {
        let provider = login.provider.as_ref().map_or("", ProviderName::as_str);
        let hints = login.hints.encode().unwrap_or_default();
        let mut bytes = Zeroizing::new(vec![FORMAT]);
        bytes.extend_from_slice(login.cookie.as_bytes());
        bytes.extend_from_slice(&login.application.get().to_be_bytes());
        let challenge = login.challenge.as_ref().map(Challenge::encode);
        for text in [provider, &hints, challenge.as_deref().unwrap_or_default()] {
            let length = u16::try_from(text.len()).expect("a name or a query is short");
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(login.return_to.as_ref().map_or("", Url::as_str).as_bytes());
        self.cipher(state)
            .seal_in_place_append_tag(Self::nonce(), Aad::empty(), &mut *bytes)
            .expect("a cookie is far shorter than what the cipher takes");
        URL_SAFE_NO_PAD.encode(&*bytes)
    }

    /// Opens what [`Self::seal`] sealed for this state; `None` for anything else.
    pub(crate) fn open(&self, state: &LoginState, value: &str) -> Option<SealedRedirect> {
        let mut bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(value).ok()?);
        let opened = self
            .cipher(state)
            .open_in_place(Self::nonce(), Aad::empty(), &mut bytes)
            .ok()?;
        let (format, rest) = opened.split_first()?;
        let (cookie, rest) = rest.split_first_chunk::<LENGTH>()?;
        let (application, rest) = rest.split_first_chunk::<8>()?;
        let (provider, rest) = text(rest)?;
        let (hints, rest) = text(rest)?;
        let (challenge, rest) = text(rest)?;
        let return_to = std::str::from_utf8(rest).ok()?;
        (*format == FORMAT).then_some(())?;
        Some(SealedRedirect {
            application: AppId::new(i64::from_be_bytes(*application)),
            provider: match provider {
                "" => None,
                name => Some(name.parse().ok()?),
            },
            hints: Hints::decode(hints),
            return_to: match return_to {
                "" => None,
                address => Some(Url::parse(address).ok()?),
            },
            challenge: Challenge::decode(challenge),
            cookie: LoginCookie::from_bytes(*cookie),
        })
    }

    fn tag(&self, version: &Version, state: &[u8; LENGTH]) -> [u8; TAG_BYTES] {
        let mac = self.mac("state", version, &state[..TAGGED_BYTES]);
        *mac.first_chunk().expect("a MAC has 32 bytes")
    }

    fn cipher(&self, state: &LoginState) -> LessSafeKey {
        let key = Zeroizing::new(self.mac("cookie", state.version(), state.hash().as_bytes()));
        let key = UnboundKey::new(&CHACHA20_POLY1305, &*key);
        LessSafeKey::new(key.expect("the cipher's keys have 32 bytes"))
    }

    fn nonce() -> Nonce {
        // Constant: each state has a key of its own, and that key seals once.
        Nonce::assume_unique_for_key([0; 12])
    }

    /// HMAC-SHA256 over purpose, version and bytes. Zero bytes separate the parts, and names of versions contain none,
    /// so different inputs are different bytes.
    fn mac(&self, purpose: &str, version: &Version, bytes: &[u8]) -> [u8; LENGTH] {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes())
            .expect("HMAC takes a key of any length");
        for part in [purpose.as_bytes(), version.as_str().as_bytes()] {
            mac.update(part);
            mac.update(&[0]);
        }
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }
}

/// Reads a text with its length before it.
fn text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (text, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PassedOn;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn seal() -> SealKey {
        SealKey::generate()
    }

    fn state(seal: &SealKey) -> LoginState {
        seal.issue_state(&"v1".parse().unwrap(), NOW)
    }

    fn redirect(return_to: Option<&str>) -> SealedRedirect {
        SealedRedirect {
            application: AppId::new(7),
            provider: Some("sandbox".parse().unwrap()),
            hints: Hints::decode("login_hint=ada"),
            return_to: return_to.map(|address| address.parse().unwrap()),
            challenge: return_to.and_then(|_| Challenge::of_verifier(&"v".repeat(43))),
            cookie: LoginCookie::generate(),
        }
    }

    #[test]
    fn a_sealed_login_opens_unchanged() {
        let seal = seal();
        for return_to in [None, Some("https://app.example/back?x=1")] {
            let (state, login) = (state(&seal), redirect(return_to));
            let opened = seal.open(&state, &seal.seal(&state, &login)).unwrap();
            assert_eq!(opened.application, login.application);
            assert_eq!(opened.provider, login.provider);
            assert!(opened.hints == login.hints);
            assert_eq!(opened.return_to, login.return_to);
            assert_eq!(opened.challenge, login.challenge);
            assert_eq!(opened.cookie.as_bytes(), login.cookie.as_bytes());
        }
    }

    #[test]
    fn a_sealed_login_opens_with_its_state_and_key_only() {
        let seal_a = seal();
        let (one, other) = (state(&seal_a), state(&seal_a));
        let sealed = seal_a.seal(&one, &redirect(None));
        assert!(seal_a.open(&other, &sealed).is_none());
        assert!(seal().open(&one, &sealed).is_none());
        let other_version = LoginState::new("v2".parse().unwrap(), *one.hash());
        assert!(seal_a.open(&other_version, &sealed).is_none());
    }

    #[test]
    fn a_changed_byte_is_detected() {
        let seal = seal();
        let state = state(&seal);
        let sealed = URL_SAFE_NO_PAD
            .decode(seal.seal(&state, &redirect(Some("https://app.example/"))))
            .unwrap();
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            let value = URL_SAFE_NO_PAD.encode(changed);
            assert!(seal.open(&state, &value).is_none(), "{index}");
        }
        for value in ["", "A", "AAAA", &"A".repeat(100), "é"] {
            assert!(seal.open(&state, value).is_none(), "{value}");
        }
    }

    #[test]
    fn only_an_issued_state_has_an_expiry() {
        let seal_a = seal();
        let issued = state(&seal_a);
        assert_eq!(seal_a.expiry_of(&issued), Some(NOW));
        assert_eq!(seal().expiry_of(&issued), None);
        let other_version = LoginState::new("v2".parse().unwrap(), *issued.hash());
        assert_eq!(seal_a.expiry_of(&other_version), None);
        for index in 0..LENGTH {
            let mut bytes = *issued.hash().as_bytes();
            bytes[index] ^= 1;
            let forged = LoginState::new("v1".parse().unwrap(), StateHash(bytes));
            assert_eq!(seal_a.expiry_of(&forged), None, "{index}");
        }
        assert_ne!(state(&seal_a), issued, "each state is different");
    }

    #[test]
    fn the_longest_cookie_is_below_the_limit_of_browsers() {
        let seal = seal();
        let state = state(&seal);
        let room = crate::flow::return_to::MAX_BYTES - "https://app.example/".len();
        let address = format!("https://app.example/{}", "x".repeat(room));
        let mut login = redirect(Some(&address));
        login.provider = Some("p".repeat(32).parse().unwrap());
        login.hints = Hints::default();
        login
            .hints
            .add(PassedOn::Prompt, "select_account".to_owned());
        // Each byte needs an escape.
        let longest = "@".repeat(Hints::MAX_LOGIN_HINT);
        login.hints.add(PassedOn::LoginHint, longest);
        let value = seal.seal(&state, &login);
        let public_url = "https://login.example".parse().unwrap();
        let cookie = super::super::BrowserCookie::of(&state, &public_url).set(&value, 3600);
        assert!(cookie.len() < 4096, "{}", cookie.len());
    }

    #[test]
    fn debug_output_contains_no_secrets() {
        let key = SealKey::from_bytes([0x5a; LENGTH]);
        assert_eq!(format!("{key:?}"), "SealKey(…)");
        let printed = format!("{key:?} {:?}", redirect(None));
        assert!(!printed.contains("90"), "{printed}");
    }
}

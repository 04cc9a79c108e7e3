//! The cookie that binds a login to one browser. CONTRACT 8.
//!
//! Each login has one. A polling login's cookie is a random value, the same one as long as the login lasts: each tab's
//! links work, and a second click is as the first. The page's links and PKCE's `code_verifier` are derived from it, so
//! that none is stored, and only the browser with the cookie can continue. A redirect login's cookie holds the whole
//! login, sealed (`seal`), with such a random value in it; after the login, that value only.
//!
//! An attacker who plants a cookie in a browser has the same value, and can do what that browser can: press the button,
//! and use its callback. The prefix `__Host-` prevents that. With a plain http `public_url`, whoever controls a sibling
//! domain or the network can plant cookies; a further value that the button sets would not stop them, since they can
//! press the button, too.

use http::{HeaderMap, HeaderValue, header::COOKIE};
use signpost_protocol::cookies::{HOST_PREFIX, ID_BYTES, NAME, is_login_cookie};

use crate::{
    config::{ProviderName, PublicUrl},
    records::logins::LoginState,
    secret::{LENGTH, Secret, hash_type, is_same, sha256},
};

hash_type! {
    /// SHA-256 of a login cookie's value, which is what the store has.
    CookieHash
}

impl CookieHash {
    /// Whether this is the hash of `cookie`, in constant time.
    pub(crate) fn is_hash_of(&self, cookie: &LoginCookie) -> bool {
        is_same(&self.0, cookie.hash().as_bytes())
    }
}

/// A login cookie's value: 256 random bits.
#[derive(Clone, Debug)]
pub(crate) struct LoginCookie(Secret);

impl LoginCookie {
    /// Generates a random value.
    pub(crate) fn generate() -> Self {
        Self(Secret::generate())
    }

    pub(super) const fn from_bytes(bytes: [u8; LENGTH]) -> Self {
        Self(Secret::from_bytes(bytes))
    }

    pub(super) const fn as_bytes(&self) -> &[u8; LENGTH] {
        self.0.as_bytes()
    }

    /// Decodes 43 characters of base64url.
    pub(crate) fn decode(value: &str) -> Option<Self> {
        Secret::decode(value).map(Self)
    }

    /// The value as text.
    pub(crate) fn encode(&self) -> String {
        self.0.encode()
    }

    /// The value as text, of a polling login that the user has confirmed in this browser.
    pub(crate) fn encode_confirmed(&self) -> String {
        self.encode() + CONFIRMED
    }

    /// The hash that is stored.
    pub(crate) fn hash(&self) -> CookieHash {
        CookieHash(self.0.sha256())
    }

    /// CSRF token of the page's button, derived from the page's value.
    pub(crate) fn confirm(&self) -> String {
        self.0.derive("confirm").encode()
    }

    /// Whether `confirm` is the CSRF token of this cookie, in constant time.
    pub(crate) fn is_confirmed_by(&self, confirm: &str) -> bool {
        is_same(self.confirm().as_bytes(), confirm.as_bytes())
    }

    /// The value of `confirm` in the page's other link, which cancels the login.
    pub(crate) fn cancel(&self) -> String {
        self.0.derive("cancel").encode()
    }

    /// Whether `confirm` is the link of this cookie's page that cancels the login, in constant time.
    pub(crate) fn is_cancelled_by(&self, confirm: &str) -> bool {
        is_same(self.cancel().as_bytes(), confirm.as_bytes())
    }

    /// PKCE's `code_verifier` for a provider (RFC 7636 section 4.1): 43 characters, derived from the cookie.
    pub(crate) fn code_verifier(&self, provider: &ProviderName) -> String {
        self.0.derive(&format!("code_verifier {provider}")).encode()
    }

    /// The `nonce` for a provider (OpenID Connect Core 1.0 section 3.1.2.1), derived from the cookie.
    pub(crate) fn nonce(&self, provider: &ProviderName) -> String {
        self.0.derive(&format!("nonce {provider}")).encode()
    }
}

/// Ends the value of a confirmed polling login, so that [`remove_oldest`] knows it. No value has a dot otherwise.
const CONFIRMED: &str = ".confirmed";

/// The cookie of one login, as a browser stores and sends it.
pub(crate) struct BrowserCookie {
    name: String,
    scope: &'static str,
}

impl BrowserCookie {
    /// The cookie of the login of `state`. Its name is derived from the `state`, but does not reveal it, since names of
    /// cookies may be logged.
    pub(crate) fn of(state: &LoginState, public_url: &PublicUrl) -> Self {
        let id = hex::encode(&sha256(state.hash().as_bytes())[..ID_BYTES]);
        let (prefix, scope) = prefix_and_scope(public_url);
        let name = format!("{prefix}{NAME}{id}");
        Self { name, scope }
    }

    /// Returns the value that the browser sent.
    ///
    /// `None` if there are several cookies of that name: an attacker on a subdomain can set one, and with its path
    /// determine which of them the browser sends first.
    pub(crate) fn value<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let mut values = pairs(headers).filter(|(name, _)| *name == self.name);
        match (values.next(), values.next()) {
            (Some((_, value)), None) => Some(value.strip_suffix(CONFIRMED).unwrap_or(value)),
            _ => None,
        }
    }

    /// The `Set-Cookie` header that stores a value in the browser for some seconds.
    pub(crate) fn set(&self, value: &str, seconds: u64) -> HeaderValue {
        let Self { name, scope } = self;
        let cookie = format!("{name}={value}; Max-Age={seconds}; {scope}; HttpOnly; SameSite=Lax");
        HeaderValue::try_from(cookie)
            .expect("hex, base64url and our own words are header characters")
    }

    /// The `Set-Cookie` header that removes the cookie.
    pub(crate) fn remove(&self) -> HeaderValue {
        self.set("", 0)
    }
}

/// Login cookies in one browser; when another one is set, older ones are removed. An unfinished redirect login has up to
/// 3 KB, others 150 bytes, and with too many of them a proxy would reject the browser's requests.
const MAX_LOGIN_COOKIES: usize = 8;

/// The `Set-Cookie` headers that remove the oldest login cookies of a browser that has too many, beside the cookie that
/// is `set`. Browsers send older cookies first (RFC 6265 section 5.4). Whatever its age, the login that is furthest goes last.
pub(crate) fn remove_oldest(
    headers: &HeaderMap,
    public_url: &PublicUrl,
    set: &HeaderValue,
) -> Vec<HeaderValue> {
    let (prefix, scope) = prefix_and_scope(public_url);
    let is_set = |name: &str| {
        let rest = set.as_bytes().strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"="))
    };
    // Only names with the present prefix: a browser removes a cookie by its own scope only.
    let is_ours = |(name, _): &(&str, &str)| {
        is_login_cookie(name.as_bytes())
            && name.starts_with(HOST_PREFIX) != prefix.is_empty()
            && !is_set(name)
    };
    let mut sent: Vec<_> = pairs(headers).filter(is_ours).collect();
    let too_many = (sent.len() + 1).saturating_sub(MAX_LOGIN_COOKIES);
    // A page that is not confirmed opens again, and an outcome is stored; a redirect login is in its cookie only.
    let is_sealed = |value: &str| LoginCookie::decode(value).is_none();
    // A stable sort: among equal ones the browser's order decides, the oldest first.
    sent.sort_by_key(|(_, value)| (value.ends_with(CONFIRMED), is_sealed(value)));
    let cookie = |(name, _): &(&str, &str)| BrowserCookie {
        name: (*name).to_owned(),
        scope,
    };
    let oldest = sent[..too_many].iter().map(cookie);
    oldest.map(|cookie| cookie.remove()).collect()
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers
        .get_all(COOKIE)
        .into_iter()
        .filter_map(|header| header.to_str().ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// The prefix of a login cookie's name, and its `Path` and `Secure`. Browsers accept the prefix `__Host-` only with
/// `Secure` and `Path=/`, and not from a subdomain.
fn prefix_and_scope(public_url: &PublicUrl) -> (&'static str, &'static str) {
    if public_url.is_https() {
        (HOST_PREFIX, "Path=/; Secure")
    } else {
        ("", "Path=/login")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::logins::LoginToken;

    fn state() -> LoginState {
        LoginToken::generate(&"v1".parse().unwrap()).state()
    }

    fn plain() -> PublicUrl {
        "http://127.0.0.1:8080".parse().unwrap()
    }

    fn sent(cookies: &[&str]) -> HeaderMap {
        cookies
            .iter()
            .map(|cookie| (COOKIE, HeaderValue::from_str(cookie).unwrap()))
            .collect()
    }

    fn set(cookie: &LoginCookie, state: &LoginState, public_url: &PublicUrl) -> HeaderValue {
        BrowserCookie::of(state, public_url).set(&cookie.encode(), 600)
    }

    fn read(headers: &HeaderMap, state: &LoginState) -> Option<LoginCookie> {
        let value = BrowserCookie::of(state, &plain()).value(headers)?;
        LoginCookie::decode(value)
    }

    fn pair(cookie: &LoginCookie, state: &LoginState, public_url: &PublicUrl) -> String {
        let set = set(cookie, state, public_url);
        set.to_str().unwrap().split(';').next().unwrap().to_owned()
    }

    #[test]
    fn a_cookie_reads_back() {
        let (state, cookie) = (state(), LoginCookie::generate());
        let headers = sent(&[&format!(
            "other=1; {}; more=2",
            pair(&cookie, &state, &plain())
        )]);
        let back = read(&headers, &state).unwrap();
        assert!(cookie.hash().is_hash_of(&back));
    }

    #[test]
    fn another_logins_cookie_is_ignored() {
        let cookie = LoginCookie::generate();
        let headers = sent(&[&pair(&cookie, &state(), &plain())]);
        assert!(read(&headers, &state()).is_none());
    }

    #[test]
    fn two_cookies_of_one_name_are_ignored() {
        let (state, cookie) = (state(), LoginCookie::generate());
        let pair = pair(&cookie, &state, &plain());
        for headers in [sent(&[&pair, &pair]), sent(&[&format!("{pair}; {pair}")])] {
            assert!(read(&headers, &state).is_none());
        }
    }

    #[test]
    fn the_attributes_depend_on_the_scheme() {
        let (state, cookie) = (state(), LoginCookie::generate());
        let plain = set(&cookie, &state, &plain());
        let plain = plain.to_str().unwrap();
        assert!(plain.starts_with("login-"), "{plain}");
        assert!(
            plain.ends_with("; Max-Age=600; Path=/login; HttpOnly; SameSite=Lax"),
            "{plain}"
        );
        let https = "https://login.example".parse().unwrap();
        let secure = set(&cookie, &state, &https);
        let secure = secure.to_str().unwrap();
        assert!(secure.starts_with("__Host-login-"), "{secure}");
        assert!(
            secure.ends_with("; Max-Age=600; Path=/; Secure; HttpOnly; SameSite=Lax"),
            "{secure}"
        );
    }

    #[test]
    fn the_state_is_not_in_the_name() {
        let state = state();
        let hash = hex::encode(state.hash().as_bytes());
        let name = BrowserCookie::of(&state, &plain()).name;
        assert!(!hash.contains(name.strip_prefix("login-").unwrap()));
    }

    #[test]
    fn confirm_matches_its_own_cookie_only() {
        let cookie = LoginCookie::generate();
        assert!(cookie.is_confirmed_by(&cookie.confirm()));
        assert!(!cookie.is_confirmed_by(&LoginCookie::generate().confirm()));
        assert!(!cookie.is_confirmed_by(""));
        let [one, other] = ["one", "other"].map(|name| name.parse().unwrap());
        let derived = [
            cookie.confirm(),
            cookie.cancel(),
            cookie.code_verifier(&one),
            cookie.code_verifier(&other),
            cookie.nonce(&one),
            cookie.nonce(&other),
        ];
        let different: std::collections::BTreeSet<_> = derived.iter().collect();
        assert_eq!(different.len(), derived.len());
    }

    #[test]
    fn the_oldest_of_too_many_login_cookies_are_removed() {
        let public_url = plain();
        let pairs: Vec<_> = (0..10)
            .map(|_| pair(&LoginCookie::generate(), &state(), &public_url))
            .collect();
        let headers = sent(&["other=1; login-x=2", &pairs.join("; ")]);
        let new = set(&LoginCookie::generate(), &state(), &public_url);
        let removed: Vec<_> = remove_oldest(&headers, &public_url, &new)
            .iter()
            .map(|header| {
                header
                    .to_str()
                    .unwrap()
                    .split('=')
                    .next()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        let oldest: Vec<_> = pairs[..3]
            .iter()
            .map(|pair| pair.split('=').next().unwrap())
            .collect();
        assert_eq!(removed, oldest);
        assert!(remove_oldest(&sent(&[&pairs[..7].join("; ")]), &public_url, &new).is_empty());
        let https = "https://login.example".parse().unwrap();
        assert!(remove_oldest(&headers, &https, &new).is_empty());
        // A login that goes on sets its own cookie again: however old it is, it stays.
        let again = HeaderValue::try_from(format!("{}; Max-Age=600", pairs[0])).unwrap();
        let removed = remove_oldest(&headers, &public_url, &again);
        let kept = pairs[0].split('=').next().unwrap();
        let names: Vec<_> = removed.iter().map(|one| one.to_str().unwrap()).collect();
        assert_eq!(names.len(), 2);
        assert!(!names.iter().any(|one| one.starts_with(kept)), "{names:?}");
    }
}

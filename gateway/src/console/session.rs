//! Who has signed in: a session is a cookie with 256 random bits, and what this process knows of it.
//!
//! | what | limit |
//! | --- | --- |
//! | sessions; beyond it, those that were not used for the longest time end | 10,000 |
//! | time from the sign-in to the end | 12 h |
//! | time without a request | 30 min |

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, header};
use moka::sync::Cache;
use zeroize::Zeroizing;

use crate::directory::tokens::Role;

const MAX_SESSIONS: u64 = 10_000;
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// A browser sends a cookie with this prefix only to the host that has set it, and accepts it only over TLS or from the
/// machine itself. RFC 6265bis section 4.1.3.
const COOKIE: &str = "__Host-signpost";

/// Who has signed in, and with what.
pub(super) struct Session {
    /// The token's text: each call of the API is made with it, so that it ends with the token.
    pub token: Zeroizing<String>,
    /// The token's name.
    pub name: String,
    /// What it may do.
    pub role: Role,
}

/// The sessions of this process.
pub(super) struct Sessions(Cache<String, Arc<Session>>);

impl Default for Sessions {
    fn default() -> Self {
        let sessions = Cache::builder()
            .max_capacity(MAX_SESSIONS)
            .time_to_live(LIFETIME)
            .time_to_idle(IDLE_TIMEOUT)
            .build();
        Self(sessions)
    }
}

impl Sessions {
    /// Begins a session, and returns the header that sets its cookie.
    pub(super) fn begin(&self, session: Session) -> Result<HeaderValue, getrandom::Error> {
        let mut random = [0; 32];
        getrandom::fill(&mut random)?;
        let id = hex::encode(random);
        let cookie = set_cookie(&id, LIFETIME);
        self.0.insert(id, Arc::new(session));
        Ok(cookie)
    }

    /// The session that a request belongs to.
    pub(super) fn find(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        self.0.get(id(headers)?)
    }

    /// Ends the session that a request belongs to, and returns the header that removes its cookie.
    pub(super) fn end(&self, headers: &HeaderMap) -> HeaderValue {
        if let Some(id) = id(headers) {
            self.0.invalidate(id);
        }
        set_cookie("", Duration::ZERO)
    }
}

fn set_cookie(id: &str, lifetime: Duration) -> HeaderValue {
    let seconds = lifetime.as_secs();
    let cookie =
        format!("{COOKIE}={id}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Strict");
    let mut cookie =
        HeaderValue::try_from(cookie).expect("hex and our own words are visible ASCII");
    cookie.set_sensitive(true);
    cookie
}

/// The id in the cookie of a request.
fn id(headers: &HeaderMap) -> Option<&str> {
    let fields = headers.get_all(header::COOKIE).into_iter();
    let fields = fields.filter_map(|field| field.to_str().ok());
    let mut pairs = fields.flat_map(|field| field.split("; "));
    pairs.find_map(|pair| pair.strip_prefix(COOKIE)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookies: &[&str]) -> HeaderMap {
        let cookies = cookies.iter();
        cookies
            .map(|cookie| (header::COOKIE, HeaderValue::from_str(cookie).unwrap()))
            .collect()
    }

    fn session() -> Session {
        Session {
            token: Zeroizing::new("sp_x".to_owned()),
            name: "anna".to_owned(),
            role: Role::Viewer,
        }
    }

    #[test]
    fn a_session_is_found_by_its_cookie_until_it_ends() {
        let sessions = Sessions::default();
        let cookie = sessions.begin(session()).unwrap();
        let cookie = cookie.to_str().unwrap();
        for word in ["; Secure", "; HttpOnly", "; SameSite=Strict", "; Path=/"] {
            assert!(cookie.contains(word), "{cookie}");
        }
        assert!(!cookie.contains("Domain"), "{cookie}");
        let pair = cookie.split(';').next().unwrap();
        let sent = headers(&["a=b", &format!("c=d; {pair}")]);
        assert_eq!(sessions.find(&sent).unwrap().name, "anna");
        assert!(sessions.find(&headers(&[])).is_none());
        assert!(sessions.find(&headers(&["__Host-signpost="])).is_none());
        let removed = sessions.end(&sent);
        assert!(removed.to_str().unwrap().contains("Max-Age=0"));
        assert!(sessions.find(&sent).is_none(), "a cookie that was stolen");
    }

    #[test]
    fn two_sessions_have_different_ids() {
        let sessions = Sessions::default();
        let cookies = [session(), session()].map(|one| sessions.begin(one).unwrap());
        assert_ne!(cookies[0], cookies[1]);
    }
}

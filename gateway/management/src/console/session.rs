//! Who has signed in: a session is a cookie with 256 random bits, and what this process knows of it.
//!
//! | what | limit |
//! | --- | --- |
//! | sessions; beyond it, those that were not used for the longest time end | 10,000 |
//! | time from the sign-in to the end | 12 h |
//! | time without a page that its user has asked for | 30 min |

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, header};
use moka::{policy::EvictionPolicy, sync::Cache};
use signpost_protocol::cookies::CONSOLE_SESSION;
use tokio::time::Instant;

use crate::administration::tokens::Role;
pub(super) use crate::api::Proof;

const MAX_SESSIONS: u64 = 10_000;
pub(super) const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Who has signed in, and with what.
pub(super) struct Session {
    /// With what: it authenticates each operation.
    pub proof: Proof,
    /// The token's or the account's name.
    pub name: String,
    /// What they may do.
    pub role: Role,
}

/// The sessions of this process.
pub(super) struct Sessions(Cache<String, Arc<Known>>);

/// A session, and when its user has used it last.
struct Known {
    session: Arc<Session>,
    used_at: Mutex<Instant>,
}

impl Default for Sessions {
    fn default() -> Self {
        let sessions = Cache::builder()
            .max_capacity(MAX_SESSIONS)
            .time_to_live(LIFETIME)
            .time_to_idle(IDLE_TIMEOUT)
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self(sessions)
    }
}

impl Sessions {
    /// Begins a session, and returns the header that sets its cookie.
    pub(super) fn begin(&self, session: Session) -> Result<HeaderValue, getrandom::Error> {
        let id = random_id()?;
        let cookie = set_cookie(&id, LIFETIME);
        let known = Known {
            session: Arc::new(session),
            used_at: Mutex::new(Instant::now()),
        };
        self.0.insert(id, Arc::new(known));
        Ok(cookie)
    }

    /// The session that a request belongs to. What a page asks for by itself does not prolong it.
    pub(super) fn find(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        let known = self.known(headers)?;
        if headers
            .get("sec-fetch-dest")
            .is_none_or(|dest| dest != "empty")
        {
            *known.used_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        Some(Arc::clone(&known.session))
    }

    /// Whether the session that a request belongs to still lives. This does not prolong it.
    pub(super) fn lives(&self, headers: &HeaderMap) -> bool {
        self.known(headers).is_some()
    }

    fn known(&self, headers: &HeaderMap) -> Option<Arc<Known>> {
        let known = self.0.get(id(headers)?)?;
        let used_at = *known.used_at.lock().unwrap_or_else(PoisonError::into_inner);
        (used_at.elapsed() < IDLE_TIMEOUT).then_some(known)
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
    cookie(CONSOLE_SESSION, id, lifetime, "Strict")
}

/// 256 random bits, in hex.
pub(super) fn random_id() -> Result<String, getrandom::Error> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)?;
    Ok(hex::encode(random))
}

/// The header that sets a cookie of the console.
pub(super) fn cookie(name: &str, value: &str, lifetime: Duration, same_site: &str) -> HeaderValue {
    let seconds = lifetime.as_secs();
    let cookie = format!(
        "{name}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite={same_site}"
    );
    let mut cookie =
        HeaderValue::try_from(cookie).expect("hex and our own words are visible ASCII");
    cookie.set_sensitive(true);
    cookie
}

/// The id in the cookie of a request.
fn id(headers: &HeaderMap) -> Option<&str> {
    value(headers, CONSOLE_SESSION)
}

/// The value of a cookie.
pub(super) fn value<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let fields = headers.get_all(header::COOKIE).into_iter();
    let fields = fields.filter_map(|field| field.to_str().ok());
    let mut pairs = fields.flat_map(|field| field.split("; "));
    pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    fn headers(cookies: &[&str]) -> HeaderMap {
        let cookies = cookies.iter();
        cookies
            .map(|cookie| (header::COOKIE, HeaderValue::from_str(cookie).unwrap()))
            .collect()
    }

    fn session() -> Session {
        Session {
            proof: Proof::Token(Zeroizing::new("sp_x".to_owned())),
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

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_without_its_user_also_if_a_page_is_left_open() {
        let sessions = Sessions::default();
        let cookie = sessions.begin(session()).unwrap();
        let pair = cookie.to_str().unwrap().split(';').next().unwrap();
        let user = headers(&[pair]);
        let mut script = user.clone();
        script.insert("sec-fetch-dest", HeaderValue::from_static("empty"));
        let most = IDLE_TIMEOUT - Duration::from_secs(1);
        tokio::time::advance(most).await;
        assert!(sessions.find(&user).is_some());
        tokio::time::advance(most).await;
        assert!(sessions.find(&script).is_some());
        assert!(sessions.lives(&script));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!sessions.lives(&user));
        assert!(sessions.find(&user).is_none());
    }

    #[test]
    fn two_sessions_have_different_ids() {
        let sessions = Sessions::default();
        let cookies = [session(), session()].map(|one| sessions.begin(one).unwrap());
        assert_ne!(cookies[0], cookies[1]);
    }
}

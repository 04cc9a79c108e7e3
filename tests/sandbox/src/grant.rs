//! Authorization codes and access tokens given out, in memory.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::user::User;

/// What a code stands for, as the page left it.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Who pressed Allow.
    pub user: User,
    /// As given to the page; the exchange must repeat it.
    pub redirect_uri: Option<String>,
    /// The S256 challenge, when one was sent (RFC 7636).
    pub code_challenge: Option<String>,
}

/// All codes and tokens.
#[derive(Debug)]
pub struct Grants {
    code_lifetime: Duration,
    codes: Mutex<HashMap<String, (Grant, Instant)>>,
    access_tokens: Mutex<HashMap<String, User>>,
}

impl Grants {
    /// Nothing given out yet.
    #[must_use]
    pub fn new(code_lifetime: Duration) -> Self {
        Self {
            code_lifetime,
            codes: Mutex::default(),
            access_tokens: Mutex::default(),
        }
    }

    /// A new code for a grant. Old ones are dropped on the way.
    pub fn issue_code(&self, grant: Grant) -> String {
        let code = random_name();
        let mut codes = locked(&self.codes);
        codes.retain(|_, (_, issued)| issued.elapsed() < self.code_lifetime);
        codes.insert(code.clone(), (grant, Instant::now()));
        code
    }

    /// What a code stands for: once, and not for long.
    pub fn redeem_code(&self, code: &str) -> Option<Grant> {
        let (grant, issued) = locked(&self.codes).remove(code)?;
        (issued.elapsed() < self.code_lifetime).then_some(grant)
    }

    /// A new access token for a user.
    pub fn issue_access_token(&self, user: User) -> String {
        let access_token = random_name();
        locked(&self.access_tokens).insert(access_token.clone(), user);
        access_token
    }

    /// Whose access token that is.
    pub fn bearer(&self, access_token: &str) -> Option<User> {
        locked(&self.access_tokens).get(access_token).cloned()
    }
}

/// Nothing in here is left half-done by a panic, so a poisoned lock is as good as another.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn random_name() -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the system has a source of randomness");
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

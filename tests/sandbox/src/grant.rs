//! Issued authorization codes and access tokens, in memory.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::user::User;

/// The grant behind a code.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The client that asked.
    pub client_id: String,
    /// The user who pressed Allow.
    pub user: User,
    /// The `redirect_uri` of the authorization request; the exchange must repeat it.
    pub redirect_uri: Option<String>,
    /// The S256 challenge, if one was sent (RFC 7636).
    pub code_challenge: Option<String>,
    /// The requested scopes, separated by spaces.
    pub scope: Option<String>,
    /// The `nonce` of the ID token, if one was sent (`OpenID Connect` Core section 3.1.2.1).
    pub nonce: Option<String>,
}

impl Grant {
    /// The requested scopes.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scope.iter().flat_map(|scope| scope.split(' '))
    }

    /// Whether this scope was requested.
    #[must_use]
    pub fn has_scope(&self, name: &str) -> bool {
        self.scopes().any(|scope| scope == name)
    }
}

/// All codes and tokens.
#[derive(Debug)]
pub struct Grants {
    code_lifetime: Duration,
    codes: Mutex<HashMap<String, (Grant, Instant)>>,
    access_tokens: Mutex<HashMap<String, Grant>>,
}

impl Grants {
    /// No codes and tokens yet.
    #[must_use]
    pub fn new(code_lifetime: Duration) -> Self {
        Self {
            code_lifetime,
            codes: Mutex::default(),
            access_tokens: Mutex::default(),
        }
    }

    /// Issues a code for a grant, and removes expired codes. `form` makes the provider's form of code of a random name.
    pub fn issue_code(&self, grant: Grant, form: impl FnOnce(String) -> String) -> String {
        let code = form(random_name());
        let mut codes = locked(&self.codes);
        codes.retain(|_, (_, issued)| issued.elapsed() < self.code_lifetime);
        codes.insert(code.clone(), (grant, Instant::now()));
        code
    }

    /// Returns the grant of a code that is not expired, and removes the code.
    pub fn redeem_code(&self, code: &str) -> Option<Grant> {
        let (grant, issued) = locked(&self.codes).remove(code)?;
        (issued.elapsed() < self.code_lifetime).then_some(grant)
    }

    /// Issues an access token for a grant.
    pub fn issue_access_token(&self, grant: Grant) -> String {
        let access_token = random_name();
        locked(&self.access_tokens).insert(access_token.clone(), grant);
        access_token
    }

    /// The grant of an access token.
    pub fn bearer(&self, access_token: &str) -> Option<Grant> {
        locked(&self.access_tokens).get(access_token).cloned()
    }
}

/// No panic can leave the maps inconsistent, so a poisoned lock is used like any other.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// 32 random characters of URLs.
pub(crate) fn random_name() -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the system has a source of randomness");
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

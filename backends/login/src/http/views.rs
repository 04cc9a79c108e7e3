//! The responses of the library's endpoints: the values that a [version](crate::Version) writes as JSON, and the library's own
//! JSON of them. CONTRACT 8.

use serde::Serialize;
use signpost_kit::clock::Timestamp;

use crate::{flow, records::accounts::Account};

/// The result of a login. It has a secret, so it cannot be printed.
pub struct LoginResult {
    /// The account.
    pub account: Account,
    /// The credential: the value of the authorization header.
    pub authorization: String,
    /// Seconds until the credential expires.
    pub expires_in: u64,
    /// Whether this login has created the account.
    pub created: bool,
}

impl LoginResult {
    pub(crate) fn new(result: flow::LoginResult, now: Timestamp) -> Self {
        Self {
            authorization: result.credential.encode().to_string(),
            expires_in: result.expires_at.seconds_from(now),
            created: result.created,
            account: result.account,
        }
    }
}

/// The response to `/check`.
pub struct Check {
    /// The status of the login.
    pub status: CheckStatus,
    /// Seconds until the status changes to `expired`.
    pub expires_in: u64,
}

/// The status of a polling login.
pub enum CheckStatus {
    /// Not finished.
    Pending,
    /// The user is logged in.
    Complete(Box<LoginResult>),
    /// The login failed, for this reason of CONTRACT 8, in a word.
    Failed(&'static str),
    /// The login was not finished, or its outcome not claimed, in time.
    Expired,
}

impl Check {
    /// The status in a word.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self.status {
            CheckStatus::Pending => "pending",
            CheckStatus::Complete(_) => "complete",
            CheckStatus::Failed(_) => "failed",
            CheckStatus::Expired => "expired",
        }
    }

    /// The result, once the login is complete.
    #[must_use]
    pub fn login(&self) -> Option<&LoginResult> {
        match &self.status {
            CheckStatus::Complete(result) => Some(result),
            _ => None,
        }
    }

    /// Why the login failed, in a word.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        match self.status {
            CheckStatus::Failed(reason) => Some(reason),
            _ => None,
        }
    }
}

/// A polling login that has begun: the client keeps the token, shows the code, and opens the URL in a browser. No other
/// response contains the token.
#[derive(Serialize)]
pub struct PollingLogin {
    /// The secret by which the client asks for the outcome.
    pub token: String,
    /// What the user opens.
    pub authorize_url: String,
    /// The code that client and page show.
    pub user_code: String,
    /// Seconds until the login expires.
    pub expires_in: u64,
    /// Seconds to wait between two checks without `wait`.
    pub interval: u64,
}

/// A credential that replaces another one. It has a secret, so it cannot be printed.
#[derive(Serialize)]
pub struct RenewedCredential {
    /// The credential: the value of the authorization header.
    pub authorization: String,
    /// Seconds until it expires.
    pub expires_in: u64,
}

/// An event that was stored.
#[derive(Debug, Serialize)]
pub struct SentEvent {
    /// Its id, which grows with time.
    pub id: i64,
    /// Its name.
    pub event: String,
    /// When it was received.
    pub received_at: Timestamp,
}

#[derive(Serialize)]
struct AccountJson<'a> {
    username: &'a str,
    provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<&'a str>,
    created_at: Timestamp,
}

/// The library's JSON of an account.
pub(super) fn account(account: &Account) -> impl Serialize {
    AccountJson {
        username: account.username.as_str(),
        provider: &account.kind,
        display_name: account.display_name.as_deref(),
        created_at: account.created_at,
    }
}

#[derive(Serialize)]
struct LoginResultJson<'a, A> {
    account: A,
    authorization: &'a str,
    expires_in: u64,
    created: bool,
}

/// The library's JSON of a login's result, with the version's account.
pub(super) fn login_result(result: &LoginResult, account: impl Serialize) -> impl Serialize {
    LoginResultJson {
        account,
        authorization: &result.authorization,
        expires_in: result.expires_in,
        created: result.created,
    }
}

#[derive(Serialize)]
struct CheckJson<L> {
    status: &'static str,
    expires_in: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<L>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// The library's JSON of a check, with the version's result of the login.
pub(super) fn check<L: Serialize>(check: &Check, login: Option<L>) -> impl Serialize {
    CheckJson {
        status: check.status(),
        expires_in: check.expires_in,
        login,
        reason: check.reason(),
    }
}

/// `{}`.
#[derive(Serialize)]
pub(super) struct Empty {}

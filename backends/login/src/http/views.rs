//! The responses of the library's endpoints: the values that a [version](crate::Version) writes as JSON, and the library's own
//! JSON of them. CONTRACT 8.

use serde::Serialize;
use signpost_kit::clock::Timestamp;
use utoipa::{
    ToSchema,
    openapi::{Object, ObjectBuilder, schema::Type},
};

use crate::{
    flow,
    records::{accounts::Account, logins::FailureReason},
};

/// A response: what serde can write, and the [description](crate::description) can show.
pub trait View: Serialize + ToSchema {}

impl<T: Serialize + ToSchema> View for T {}

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
    /// What [`Self::status`] can be.
    const STATUSES: [&str; 4] = ["pending", "complete", "failed", "expired"];

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

// It has a secret, so it cannot be printed.
/// A polling login that has begun: the client keeps the token, shows the code, and opens the address in a browser. No other
/// response contains the token.
#[derive(Serialize, ToSchema)]
pub struct PollingLogin {
    /// The secret by which the client asks for the outcome.
    pub token: String,
    /// The address that the user opens.
    pub authorize_url: String,
    /// The code that client and page show.
    pub user_code: String,
    /// Seconds until the login expires.
    pub expires_in: u64,
    /// Seconds to wait between two checks without `wait`.
    pub interval: u64,
}

// It has a secret, so it cannot be printed.
/// A credential that replaces another one.
#[derive(Serialize, ToSchema)]
pub struct RenewedCredential {
    /// The credential: the value of the authorization header.
    pub authorization: String,
    /// Seconds until it expires.
    pub expires_in: u64,
}

/// An event that was stored.
#[derive(Debug, Serialize, ToSchema)]
pub struct SentEvent {
    /// Its id, which grows with time.
    pub id: i64,
    /// Its name.
    pub event: String,
    /// When it was received: UTC milliseconds since 1970.
    #[schema(value_type = u64)]
    pub received_at: Timestamp,
}

/// An account.
#[derive(Serialize, ToSchema)]
#[schema(as = Account)]
struct AccountJson<'a> {
    /// The provider's identifier of the user.
    username: &'a str,
    /// The provider's name.
    provider: &'a str,
    /// The display name, which can change and is not unique. Absent if the provider has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    display_name: Option<&'a str>,
    /// The first login: UTC milliseconds since 1970.
    #[schema(value_type = u64)]
    created_at: Timestamp,
}

/// The library's JSON of an account.
pub(super) fn account(account: &Account) -> impl View {
    AccountJson {
        username: account.username.as_str(),
        provider: &account.provider,
        display_name: account.display_name.as_deref(),
        created_at: account.created_at,
    }
}

/// The result of a login.
#[derive(Serialize, ToSchema)]
#[schema(as = LoginResult)]
struct LoginResultJson<'a, A> {
    /// The account.
    account: A,
    /// The credential: the value of the authorization header.
    authorization: &'a str,
    /// Seconds until the credential expires.
    expires_in: u64,
    /// Whether this login has created the account.
    created: bool,
}

/// The library's JSON of a login's result, with the version's account.
pub(super) fn login_result(result: &LoginResult, account: impl View) -> impl View {
    LoginResultJson {
        account,
        authorization: &result.authorization,
        expires_in: result.expires_in,
        created: result.created,
    }
}

/// The status of a polling login.
#[derive(Serialize, ToSchema)]
#[schema(as = Check)]
struct CheckJson<L> {
    #[schema(schema_with = status)]
    status: &'static str,
    /// Seconds until the status changes to `expired`.
    expires_in: u64,
    /// The result, if the login is `complete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    login: Option<L>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = reason, required = false)]
    reason: Option<&'static str>,
}

fn status() -> Object {
    words("The status.", Check::STATUSES)
}

fn reason() -> Object {
    let reasons = FailureReason::ALL.map(FailureReason::as_str);
    words("Why the login has failed.", reasons)
}

fn words<const N: usize>(what: &str, words: [&'static str; N]) -> Object {
    let object = ObjectBuilder::new().schema_type(Type::String);
    object
        .description(Some(what))
        .enum_values(Some(words))
        .build()
}

/// The library's JSON of a check, with the version's result of the login.
pub(super) fn check<L: View>(check: &Check, login: Option<L>) -> impl View {
    CheckJson {
        status: check.status(),
        expires_in: check.expires_in,
        login,
        reason: check.reason(),
    }
}

/// No members.
#[derive(Serialize, ToSchema)]
pub(super) struct Empty {}

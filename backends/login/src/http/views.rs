//! The responses of the library's endpoints: the values that a [version](crate::Version) writes as JSON, and the library's own
//! JSON of them. CONTRACT 8.

use serde::Serialize;
use signpost_kit::clock::Timestamp;
use utoipa::{
    ToSchema,
    openapi::{Object, ObjectBuilder, schema::Type},
};

pub use crate::flow::{Check, CheckStatus, LoginResult, PollingLogin};
use crate::records::{accounts::Account, logins::FailureReason};

/// A response: what serde can write, and the [description](crate::description) can show.
pub trait View: Serialize + ToSchema {}

impl<T: Serialize + ToSchema> View for T {}

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

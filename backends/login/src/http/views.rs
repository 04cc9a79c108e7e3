//! The part that differs by version: its name, and the JSON of an account.

use serde::Serialize;
use signpost_kit::clock::Timestamp;

use crate::{flow::LoginResult, records::accounts::Account};

/// A version of the service. All else is the same in all versions.
pub trait Views: Send + Sync + 'static {
    /// The version's name, in lower case. Its tokens and states begin with it. CONTRACT 8.
    const VERSION: &'static str;

    /// An account as this version's clients see it.
    type Account: for<'a> From<&'a Account> + Serialize + Send;
}

/// The login result of CONTRACT 8, with the account as the version shows it.
#[derive(Serialize)]
#[serde(bound = "")]
pub(crate) struct LoginResultView<V: Views> {
    account: V::Account,
    authorization: String,
    expires_in: u64,
    created: bool,
}

impl<V: Views> LoginResultView<V> {
    pub(crate) fn new(result: &LoginResult, now: Timestamp) -> Self {
        Self {
            account: (&result.account).into(),
            authorization: result.credential.encode().to_string(),
            expires_in: result.expires_at.seconds_from(now),
            created: result.created,
        }
    }
}

//! The JSON of this version.

use login::{Account, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// An account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub(crate) struct AccountView {
    /// The provider's identifier of the user.
    username: String,
    /// The provider's name.
    provider: String,
    /// The name to show, if the provider has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    display_name: Option<String>,
    /// The first login: UTC milliseconds since 1970.
    #[schema(value_type = u64)]
    registered_at: Timestamp,
}

impl From<&Account> for AccountView {
    fn from(account: &Account) -> Self {
        Self {
            username: account.username.as_str().to_owned(),
            provider: account.provider.clone(),
            display_name: account.display_name.clone(),
            registered_at: account.created_at,
        }
    }
}

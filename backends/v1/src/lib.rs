//! Version 1 of the login service: the shared endpoints, with this version's JSON of an account.

use login::{Account, Timestamp, Version, views::View};
use serde::Serialize;
use utoipa::ToSchema;

/// Version 1. CONTRACT 8.
#[derive(Debug)]
pub struct V1;

impl Version for V1 {
    const NAME: &'static str = "v1";
    type Settings = ();
    type State = ();

    fn account(account: &Account) -> impl View {
        AccountView {
            username: account.username.as_str(),
            provider: &account.provider,
            display_name: account.display_name.as_deref(),
            created_at: account.created_at,
        }
    }
}

/// An account. The member `type` is its provider's name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
struct AccountView<'a> {
    /// The provider's identifier of the user.
    username: &'a str,
    /// The provider's name.
    #[serde(rename = "type")]
    provider: &'a str,
    /// The display name, which can change and is not unique. Absent if the provider has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    display_name: Option<&'a str>,
    /// The first login: UTC milliseconds since 1970.
    #[schema(value_type = u64)]
    created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use login::testing;

    use super::*;

    #[test]
    fn an_account_has_the_fields_of_this_version_and_no_others() {
        let mut account = testing::account("ada");
        assert_eq!(
            serde_json::to_string(&V1::account(&account)).unwrap(),
            r#"{"username":"ada","type":"bitbucket","created_at":5}"#
        );
        account.display_name = Some("Ada".to_owned());
        assert_eq!(
            serde_json::to_string(&V1::account(&account)).unwrap(),
            r#"{"username":"ada","type":"bitbucket","display_name":"Ada","created_at":5}"#
        );
    }

    #[test]
    fn every_endpoint_is_described() {
        let document = testing::description::<V1>();
        let account = &document["components"]["schemas"]["Account"];
        assert!(account["properties"]["type"].is_object(), "{account}");
    }

    #[test]
    fn the_example_configuration_is_valid() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/v1.toml");
        let config = testing::example::<V1>(file);
        assert_eq!(config.providers.all.len(), 1);
    }
}

//! The JSON that version 1 returns.

use login::{Account, Timestamp, Views};
use serde::Serialize;

/// Version 1. CONTRACT 8.
#[derive(Debug)]
pub struct V1;

impl Views for V1 {
    const VERSION: &'static str = "v1";

    type Account = AccountView;
}

/// An account. The member `type` is its provider's kind.
#[derive(Debug, Serialize)]
pub struct AccountView {
    username: String,
    #[serde(rename = "type")]
    kind: String,
    created_at: Timestamp,
}

impl From<&Account> for AccountView {
    fn from(account: &Account) -> Self {
        Self {
            username: account.username.as_str().to_owned(),
            kind: account.kind.clone(),
            created_at: account.created_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use login::accounts::{AccountId, Username};

    use super::*;

    #[test]
    fn an_account_has_the_fields_of_this_version_and_no_others() {
        let account = Account {
            id: AccountId::new(7),
            username: Username::new("{me}".to_owned()).unwrap(),
            kind: "bitbucket".to_owned(),
            created_at: Timestamp::from_millis(5),
        };
        let view = serde_json::to_string(&AccountView::from(&account)).unwrap();
        assert_eq!(
            view,
            r#"{"username":"{me}","type":"bitbucket","created_at":5}"#
        );
    }
}

//! Accounts: one for each user of each provider.

use signpost_kit::clock::Timestamp;
pub use signpost_store::tables::accounts::{Account, AccountId, Username};
use signpost_store::{Store, StoreError, tables::accounts::COLUMNS, values};

use crate::config::ProviderName;

/// A user, as the provider describes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// What identifies the user.
    pub(crate) username: Username,
    /// The name to show, if there is one.
    pub(crate) display_name: Option<String>,
    /// The e-mail address, if the provider has verified it.
    pub(crate) email: Option<String>,
}

/// The stored accounts.
#[derive(Clone, Debug)]
pub(crate) struct Accounts(pub(crate) Store);

impl Accounts {
    /// Returns this user's account with the present display name and e-mail address, creating it if necessary, and whether it was created.
    ///
    /// Atomic: concurrent first logins of one user create exactly one account. CONTRACT 8.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(crate) async fn find_or_create(
        &self,
        provider: &ProviderName,
        user: &User,
        now: Timestamp,
    ) -> Result<(Account, bool), StoreError> {
        // Read first: most users already have an account, and need no write.
        if let Some(account) = self.find(provider, user).await? {
            return Ok((account, false));
        }
        // Waits for a concurrent insert, so exactly one of several callers gets the new row.
        let create = format!(
            "INSERT INTO accounts (provider, username, display_name, email, created_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (provider, username) DO NOTHING RETURNING {COLUMNS}"
        );
        let (username, name) = (user.username.as_str(), user.display_name.as_deref());
        let values = values![
            provider.as_str(),
            username,
            name,
            user.email.as_deref(),
            now
        ];
        if let Some(account) = self.0.write(&create, values).await?.pop() {
            return Ok((account, true));
        }
        // A concurrent login created the account. Accounts are never deleted, so it is found.
        let account = self.find(provider, user).await?;
        Ok((account.ok_or(StoreError::Malformed("username"))?, false))
    }

    /// The account, with its new display name and e-mail address.
    async fn find(
        &self,
        provider: &ProviderName,
        user: &User,
    ) -> Result<Option<Account>, StoreError> {
        let find = format!("SELECT {COLUMNS} FROM accounts WHERE provider = $1 AND username = $2");
        let values = values![provider.as_str(), user.username.as_str()];
        let account: Option<Account> = self.0.row(&find, values).await?;
        match account {
            Some(account)
                if (&account.display_name, &account.email) != (&user.display_name, &user.email) =>
            {
                let update = format!(
                    "UPDATE accounts SET display_name = $2, email = $3 WHERE id = $1 RETURNING {COLUMNS}"
                );
                let (name, email) = (user.display_name.as_deref(), user.email.as_deref());
                let values = values![account.id.get(), name, email];
                Ok(self.0.write(&update, values).await?.pop())
            }
            account => Ok(account),
        }
    }
}

/// Returns the names of providers that have accounts. Reads one row for each.
pub(crate) async fn providers_with_accounts(store: &Store) -> Result<Vec<String>, StoreError> {
    // One step in the index for each name. `SELECT DISTINCT` would read the rows of all accounts.
    let next = "SELECT min(provider) AS provider FROM accounts WHERE provider > $1";
    let mut names = vec![String::new()];
    loop {
        let after = values![&*names[names.len() - 1]];
        let name: Option<(Option<String>,)> = store.row(next, after).await?;
        match name.and_then(|(name,)| name) {
            Some(name) => names.push(name),
            None => return Ok(names.split_off(1)),
        }
    }
}

#[cfg(test)]
mod both_stores {
    use std::collections::HashSet;

    use super::*;
    use crate::testing::{TestStore, user};

    fn provider(name: &str) -> ProviderName {
        name.parse().unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn fifty_concurrent_first_logins_of_one_user_create_one_account() {
        let store = TestStore::new().await;
        // Two processes, each with connections of its own.
        let handles = [
            store.stores().accounts,
            store.of_another_process().await.accounts,
        ];
        let tasks: Vec<_> = (0..50)
            .map(|index| {
                let accounts = handles[index % 2].clone();
                tokio::spawn(async move {
                    let user = user("{user}");
                    accounts
                        .find_or_create(&provider("sandbox"), &user, Timestamp::from_millis(1))
                        .await
                        .unwrap()
                })
            })
            .collect();
        let mut created = 0;
        let mut ids = HashSet::new();
        for task in tasks {
            let (account, is_new) = task.await.unwrap();
            created += usize::from(is_new);
            ids.insert(account.id);
        }
        assert_eq!((ids.len(), created), (1, 1));
    }

    #[tokio::test]
    async fn one_name_at_two_providers_is_two_accounts() {
        let store = TestStore::new().await;
        let accounts = store.stores().accounts;
        let user = user("same");
        let now = Timestamp::from_millis(5);
        let one = accounts
            .find_or_create(&provider("one"), &user, now)
            .await
            .unwrap();
        let two = accounts
            .find_or_create(&provider("two"), &user, now)
            .await
            .unwrap();
        let again = accounts
            .find_or_create(&provider("one"), &user, Timestamp::from_millis(9))
            .await
            .unwrap();
        let names = providers_with_accounts(store.store()).await.unwrap();
        assert_eq!(names, ["one", "two"]);
        assert!(one.1 && two.1 && !again.1);
        assert_ne!(one.0.id, two.0.id);
        assert_eq!(again.0, one.0);
    }

    #[tokio::test]
    async fn a_login_updates_the_display_name_and_the_e_mail_address() {
        let store = TestStore::new().await;
        let accounts = store.stores().accounts;
        let now = Timestamp::from_millis(5);
        let mut ids = HashSet::new();
        for (name, email) in [
            (None, None),
            (Some("Ada"), None),
            (Some("Ada Lovelace"), Some("ada@id.example")),
            (Some("Ada Lovelace"), Some("ada@new.example")),
            (None, None),
        ] {
            let user = User {
                display_name: name.map(str::to_owned),
                email: email.map(str::to_owned),
                ..user("ada")
            };
            let (account, _) = accounts
                .find_or_create(&provider("one"), &user, now)
                .await
                .unwrap();
            assert_eq!(account.display_name.as_deref(), name);
            assert_eq!(account.email.as_deref(), email);
            ids.insert(account.id);
        }
        assert_eq!(ids.len(), 1);
    }

    #[test]
    fn an_identifier_is_1_to_255_bytes_that_every_store_can_hold() {
        for good in ["x", "{A-b}", "é\n\u{7f}", &"x".repeat(255)] {
            assert!(Username::new(good.to_owned()).is_some(), "{good:?}");
        }
        for bad in ["", "a\0b", "\0", &"x".repeat(256)] {
            assert!(Username::new(bad.to_owned()).is_none(), "{bad:?}");
        }
    }
}

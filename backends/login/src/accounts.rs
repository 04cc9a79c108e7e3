//! Accounts: one per person and provider.

mod postgres;
mod row;
mod sqlite;

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_store::StoreError;

pub(crate) use self::row::account_from_row;
pub use self::{postgres::PostgresAccounts, sqlite::SqliteAccounts};
use crate::config::{ProviderKind, ProviderName};

/// The provider's identifier of a person, byte for byte as the provider writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Username(String);

impl Username {
    /// Longer than any provider's identifier.
    const MAX_BYTES: usize = 255;

    /// Takes what a provider says; `None` when it is empty or too long to be an identifier, or has a U+0000, which
    /// Postgres' texts cannot hold.
    #[must_use]
    pub fn new(text: String) -> Option<Self> {
        let has_length = (1..=Self::MAX_BYTES).contains(&text.len());
        (has_length && !text.contains('\0')).then_some(Self(text))
    }

    /// The identifier.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The store's own number of an account; for the store and the log, never on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccountId(i64);

impl AccountId {
    /// Wraps an id as the store has it.
    #[must_use]
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// An account. What a client sees of it is each version's own business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The store's number.
    pub id: AccountId,
    /// The person.
    pub username: Username,
    /// The provider's kind.
    pub kind: String,
    /// When the person first logged in.
    pub created_at: Timestamp,
}

/// Where accounts are kept.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// The account of this person, made now if there is none; and whether it was made now.
    ///
    /// Atomic: any number of concurrent first logins of one person make one account. CONTRACT 8.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn find_or_create(
        &self,
        provider: &ProviderName,
        kind: &ProviderKind,
        username: &Username,
        now: Timestamp,
    ) -> Result<(Account, bool), StoreError>;
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::testing::TestStore;

    fn kind() -> ProviderKind {
        crate::testing::config("")
            .providers()
            .iter()
            .next()
            .unwrap()
            .kind
            .clone()
    }

    fn provider(name: &str) -> ProviderName {
        name.parse().unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn fifty_concurrent_first_logins_of_one_person_make_one_account() {
        let store = TestStore::new().await;
        // As two processes would have it.
        let handles = [store.stores().accounts, store.another().await.accounts];
        let tasks: Vec<_> = (0..50)
            .map(|place| {
                let accounts = handles[place % 2].clone();
                tokio::spawn(async move {
                    let username = Username::new("{person}".to_owned()).unwrap();
                    accounts
                        .find_or_create(
                            &provider("sandbox"),
                            &kind(),
                            &username,
                            Timestamp::from_millis(1),
                        )
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
    async fn a_name_at_another_provider_is_another_person() {
        let store = TestStore::new().await;
        let accounts = store.stores().accounts;
        let username = Username::new("same".to_owned()).unwrap();
        let now = Timestamp::from_millis(5);
        let one = accounts
            .find_or_create(&provider("one"), &kind(), &username, now)
            .await
            .unwrap();
        let two = accounts
            .find_or_create(&provider("two"), &kind(), &username, now)
            .await
            .unwrap();
        let again = accounts
            .find_or_create(
                &provider("one"),
                &kind(),
                &username,
                Timestamp::from_millis(9),
            )
            .await
            .unwrap();
        assert!(one.1 && two.1 && !again.1);
        assert_ne!(one.0.id, two.0.id);
        assert_eq!(again.0, one.0);
    }

    #[tokio::test]
    async fn a_provider_that_becomes_another_kind_takes_its_people_along() {
        let store = TestStore::new().await;
        let accounts = store.stores().accounts;
        let username = Username::new("same".to_owned()).unwrap();
        let (now, later) = (Timestamp::from_millis(5), Timestamp::from_millis(9));
        let (before, _) = accounts
            .find_or_create(&provider("one"), &kind(), &username, now)
            .await
            .unwrap();
        let other = ProviderKind {
            name: "gitea".to_owned(),
            ..kind()
        };
        let (after, is_new) = accounts
            .find_or_create(&provider("one"), &other, &username, later)
            .await
            .unwrap();
        assert!(!is_new);
        let expected = Account {
            kind: "gitea".to_owned(),
            ..before
        };
        assert_eq!(after, expected);
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

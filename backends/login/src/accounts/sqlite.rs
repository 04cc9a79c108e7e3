//! Accounts in SQLite.

use async_trait::async_trait;
use rusqlite::{Row, params};
use signpost_store::{Database, StoreError};

use super::{Account, AccountId, AccountStore, Username};
use crate::{
    clock::Timestamp,
    config::{ProviderKind, ProviderName},
    store_values::invalid,
};

/// Accounts in a SQLite file.
#[derive(Debug)]
pub struct SqliteAccounts(Database);

impl SqliteAccounts {
    /// Over an open database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl AccountStore for SqliteAccounts {
    async fn find_or_create(
        &self,
        provider: &ProviderName,
        kind: &ProviderKind,
        username: &Username,
        now: Timestamp,
    ) -> Result<(Account, bool), StoreError> {
        let values = (
            provider.to_string(),
            kind.name.clone(),
            username.as_str().to_owned(),
            now.as_millis(),
        );
        self.0
            .write(move |transaction| {
                let (provider, kind, username, now) = values;
                // One statement finds or creates. The update changes nothing but makes the row come back;
                // the row is new exactly when the largest id is its own and was not there before.
                let last: i64 = transaction
                    .prepare_cached("SELECT coalesce(max(id), 0) FROM accounts")?
                    .query_row([], |row| row.get(0))?;
                let account = transaction
                    .prepare_cached(
                        "INSERT INTO accounts (provider, kind, username, created_at) VALUES (?1, ?2, ?3, ?4) \
                         ON CONFLICT (provider, username) DO UPDATE SET kind = excluded.kind \
                         RETURNING id AS account_id, username, kind, created_at AS account_created_at",
                    )?
                    .query_row(params![provider, kind, username, now], from_row)?;
                let is_new = account.id.get() > last;
                Ok((account, is_new))
            })
            .await
    }
}

/// Reads the columns `account_id`, `username`, `kind` and `account_created_at`.
pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Account> {
    let username: String = row.get("username")?;
    Ok(Account {
        id: AccountId::new(row.get("account_id")?),
        username: Username::new(username).ok_or_else(|| invalid("username"))?,
        kind: row.get("kind")?,
        created_at: Timestamp::from_millis(row.get("account_created_at")?),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
        let store = TestStore::new();
        let tasks: Vec<_> = (0..50)
            .map(|place| {
                // Two handles, as two processes would have.
                let accounts = Arc::new(SqliteAccounts::new(store.open(place % 2 == 0)));
                tokio::spawn(async move {
                    let username = Username::new("{person}".to_owned()).unwrap();
                    accounts
                        .find_or_create(
                            &provider("sandbox"),
                            &kind(),
                            &username,
                            Timestamp::from_millis(place),
                        )
                        .await
                        .unwrap()
                })
            })
            .collect();
        let mut created = 0;
        let mut ids = std::collections::HashSet::new();
        for task in tasks {
            let (account, is_new) = task.await.unwrap();
            created += usize::from(is_new);
            ids.insert(account.id);
        }
        assert_eq!((ids.len(), created), (1, 1));
    }

    #[tokio::test]
    async fn a_name_at_another_provider_is_another_person() {
        let store = TestStore::new();
        let accounts = SqliteAccounts::new(store.database());
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
}

//! Applications in SQLite.

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use rusqlite::OptionalExtension;
use signpost_store::{Database, StoreError};

use super::{Application, ApplicationStore};
use crate::{config::Origin, store_values::invalid};

/// Applications in a SQLite file; the gateway writes them.
#[derive(Debug)]
pub struct SqliteApplications(Database);

impl SqliteApplications {
    /// Over an open database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl ApplicationStore for SqliteApplications {
    async fn find(&self, id: AppId) -> Result<Option<Application>, StoreError> {
        self.0
            .call(move |connection| {
                connection
                    .prepare_cached(
                        "SELECT name, state, return_to_origins FROM applications WHERE id = ?1",
                    )?
                    .query_row([id.get()], |row| {
                        let origins = row.get_ref("return_to_origins")?.as_str()?;
                        Ok(Application {
                            id,
                            name: row.get("name")?,
                            is_active: row.get_ref("state")?.as_str()? == "active",
                            return_to: origins_of(origins)
                                .ok_or_else(|| invalid("return_to_origins"))?,
                        })
                    })
                    .optional()
            })
            .await
    }
}

fn origins_of(json: &str) -> Option<Vec<Origin>> {
    let origins: Vec<String> = serde_json::from_str(json).ok()?;
    origins.iter().map(|origin| origin.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestStore;

    #[tokio::test]
    async fn an_application_is_found_with_its_origins() {
        let store = TestStore::new();
        let id = store
            .application("Shop", r#"["https://shop.example"]"#)
            .await;
        let found = SqliteApplications::new(store.database())
            .find(id)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.name, "Shop");
        assert!(found.is_active);
        assert_eq!(found.return_to, ["https://shop.example".parse().unwrap()]);
    }

    #[tokio::test]
    async fn an_unknown_id_is_none() {
        let store = TestStore::new();
        let applications = SqliteApplications::new(store.database());
        assert!(applications.find(AppId::new(99)).await.unwrap().is_none());
    }
}

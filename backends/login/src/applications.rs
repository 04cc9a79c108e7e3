//! Applications as logins need them: a name for the page, and where a login may return to.
//!
//! Keys and sign profiles are the gateway's business.

mod postgres;
mod row;
mod sqlite;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use signpost_kit::{
    clock::Clock,
    feed_cache::{FeedCache, FeedCacheSettings, Unknown},
};
use signpost_store::{Change, StoreError, Topic};

pub use self::{postgres::PostgresApplications, sqlite::SqliteApplications};
use crate::config::{Origin, SingleApplication};

/// More applications than that are active at once in few places. The gateway forwards no unknown one.
const CACHE: FeedCacheSettings = FeedCacheSettings {
    topic: Topic::Application,
    entries: 10_000,
    lifetime: Duration::from_secs(5 * 60),
    unknown: Unknown::LookedUp,
};

/// One application.
#[derive(Clone, Debug)]
pub struct Application {
    /// The internal id.
    pub id: AppId,
    /// Its name, for people.
    pub name: String,
    /// Whether it may be used at all.
    pub is_active: bool,
    /// Origins that logins may return to.
    pub return_to: Vec<Origin>,
}

impl Application {
    /// The one of single-application mode.
    pub(crate) fn single(config: &SingleApplication) -> Self {
        Self {
            id: AppId::SINGLE,
            name: config.name.clone(),
            is_active: true,
            return_to: config.return_to.clone(),
        }
    }
}

/// Where applications are kept.
#[async_trait]
pub trait ApplicationStore: Send + Sync {
    /// The application of this id.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    async fn find(&self, id: AppId) -> Result<Option<Application>, StoreError>;
}

/// The store's applications as requests ask for them: remembered, and read through.
pub struct Applications {
    store: Arc<dyn ApplicationStore>,
    cache: FeedCache<AppId, Arc<Application>, StoreError>,
}

impl Applications {
    /// In front of `store`.
    pub fn new(store: Arc<dyn ApplicationStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            cache: FeedCache::new(CACHE, clock),
        }
    }

    /// The application of this id.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn find(&self, id: AppId) -> Result<Option<Arc<Application>>, Arc<StoreError>> {
        let read = async { Ok(self.store.find(id).await?.map(Arc::new)) };
        self.cache.find(id, read).await
    }

    /// Another process changed something.
    pub fn on_change(&self, change: &Change) {
        // Applications are told apart by ident there and by id here, and change seldom: all are invalidated.
        self.cache.on_change(change, |_| None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestStore;

    #[tokio::test]
    async fn an_application_is_found_with_its_origins() {
        let store = TestStore::new().await;
        let id = store
            .application("Shop", r#"["https://shop.example"]"#)
            .await;
        let applications = store.stores().applications;
        let found = applications.find(id).await.unwrap().unwrap();
        assert_eq!(found.name, "Shop");
        assert!(found.is_active);
        assert_eq!(found.return_to, ["https://shop.example".parse().unwrap()]);
    }

    #[tokio::test]
    async fn an_unknown_id_is_none() {
        let store = TestStore::new().await;
        let applications = store.stores().applications;
        assert!(applications.find(AppId::new(99)).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn origins_that_nobody_wrote_are_an_error() {
        let store = TestStore::new().await;
        let id = store.application("Shop", "nonsense").await;
        let applications = store.stores().applications;
        applications.find(id).await.unwrap_err();
    }
}

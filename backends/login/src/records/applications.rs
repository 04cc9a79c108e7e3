//! Applications, as far as logins need them: the name for the page, and the origins that a login may return to.
//!
//! Keys and sign profiles are used by the gateway only.

use std::{sync::Arc, time::Duration};

use signpost_kit::{
    cache::{FeedCache, FeedCacheSettings, UnknownKeys},
    clock::Clock,
};
use signpost_protocol::app::AppId;
use signpost_store::{
    Change, Store, StoreError, Topic,
    tables::applications::{self, ApplicationRow},
};

use crate::config::{Origin, SingleApplication};

/// Few installations have more active applications. Unknown ones need no cache: the gateway forwards none.
const CACHE: FeedCacheSettings = FeedCacheSettings {
    topic: Topic::Application,
    entries: 10_000,
    lifetime: Duration::from_secs(5 * 60),
    unknown_keys: UnknownKeys::LookedUp,
};

/// One application.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    pub(crate) id: AppId,
    /// Its name, shown to users.
    pub(crate) name: String,
    /// Whether it is enabled.
    pub(crate) is_active: bool,
    /// Origins that logins may return to.
    pub(crate) return_to: Vec<Origin>,
}

impl Application {
    /// Creates the application of single-application mode.
    pub(crate) fn single(config: &SingleApplication) -> Self {
        Self {
            id: AppId::SINGLE,
            name: config.name.clone(),
            is_active: true,
            return_to: config.return_to.clone(),
        }
    }
}

async fn find_stored(store: &Store, id: AppId) -> Result<Option<Application>, StoreError> {
    let row = applications::find_by_id(store, id).await?;
    let parse = |row: ApplicationRow| {
        let origins: Vec<String> = serde_json::from_str(&row.settings.return_to_origins).ok()?;
        // All or nothing: if only the unreadable origin were left out, logins to it would fail without a reason in the
        // log.
        let return_to: Option<_> = origins.iter().map(|origin| origin.parse().ok()).collect();
        Some(Application {
            id,
            is_active: row.is_active(),
            name: row.name,
            return_to: return_to?,
        })
    };
    let malformed = StoreError::Malformed("return_to_origins");
    row.map(|row| parse(row).ok_or(malformed)).transpose()
}

/// A read-through cache of the store's applications.
pub(crate) struct Applications {
    store: Store,
    pub(crate) cache: FeedCache<AppId, Arc<Application>, StoreError>,
}

impl Applications {
    /// Creates an empty cache in front of `store`.
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            cache: FeedCache::new(CACHE, clock),
        }
    }

    /// Returns the application with this id.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    pub(crate) async fn find(
        &self,
        id: AppId,
    ) -> Result<Option<Arc<Application>>, Arc<StoreError>> {
        let find = async { Ok(find_stored(&self.store, id).await?.map(Arc::new)) };
        self.cache.find(id, find).await
    }

    /// Invalidates the cache if `change` may concern applications.
    pub(crate) fn on_change(&self, change: &Change) {
        // The change names an ident, but the cache is keyed by id. Changes are rare, so all entries are invalidated.
        self.cache.on_change(change, |_| None::<[AppId; 1]>);
    }
}

#[cfg(test)]
mod both_stores {
    use super::*;
    use crate::testing::TestStore;

    #[tokio::test]
    async fn an_application_is_found_with_its_origins() {
        let store = TestStore::new().await;
        let id = store
            .application("Shop", r#"["https://shop.example"]"#)
            .await;
        let found = find_stored(store.store(), id).await.unwrap().unwrap();
        assert_eq!(found.name, "Shop");
        assert!(found.is_active);
        assert_eq!(found.return_to, ["https://shop.example".parse().unwrap()]);
    }

    #[tokio::test]
    async fn an_unknown_id_is_not_found() {
        let store = TestStore::new().await;
        let found = find_stored(store.store(), AppId::new(99)).await;
        assert!(found.unwrap().is_none());
    }

    #[tokio::test]
    async fn malformed_origins_are_an_error() {
        let store = TestStore::new().await;
        let id = store.application("Shop", "nonsense").await;
        find_stored(store.store(), id).await.unwrap_err();
    }
}

//! Applications as logins need them: a name for the page, and where a login may return to.
//!
//! Keys and sign profiles are the gateway's business.

mod sqlite;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_protocol::app::AppId;
use signpost_store::StoreError;

pub use self::sqlite::SqliteApplications;
use crate::{
    config::{Origin, SingleApplication},
    read_through::ReadThrough,
};

/// More applications than that are active at once in few places.
const REMEMBERED: u64 = 10_000;
/// CONTRACT 4: with the store away, a remembered record serves at most 5 minutes more.
const TRUSTED: Duration = Duration::from_secs(5 * 60);

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

/// Applications as requests ask for them: the configured one under id 0, all others from the store.
pub struct Applications {
    single: Arc<Application>,
    store: Arc<dyn ApplicationStore>,
    remembered: ReadThrough<AppId, Arc<Application>>,
}

impl Applications {
    /// The configured one, and those of `store`.
    pub fn new(single: &SingleApplication, store: Arc<dyn ApplicationStore>) -> Self {
        let single = Application {
            id: AppId::SINGLE,
            name: single.name.clone(),
            is_active: true,
            return_to: single.return_to.clone(),
        };
        Self {
            single: Arc::new(single),
            store,
            remembered: ReadThrough::new(REMEMBERED, TRUSTED),
        }
    }

    /// The application of this id.
    ///
    /// # Errors
    ///
    /// The store cannot be reached.
    pub async fn find(&self, id: AppId) -> Result<Option<Arc<Application>>, StoreError> {
        if id == AppId::SINGLE {
            return Ok(Some(Arc::clone(&self.single)));
        }
        let read = async { Ok(self.store.find(id).await?.map(Arc::new)) };
        self.remembered.find(id, read).await
    }

    /// Some application changed. They are told apart by ident there and by id here, and change seldom.
    pub fn forget_all(&self) {
        self.remembered.forget_all();
    }
}

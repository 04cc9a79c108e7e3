//! The stored applications: converts between applications and rows, and seals and opens their keys.

use std::{sync::Arc, time::Instant};

use async_trait::async_trait;
use signpost_kit::{clock::Timestamp, log::once_a_minute::OnceAMinute};
use signpost_protocol::app::AppIdent;
use signpost_store::{
    Store, StoreError,
    tables::{
        applications::{self, ApplicationRow},
        sealed_keys,
    },
};

use super::{
    App, AppState, AppStore, AppStoreError, PreviousKey,
    seal::{SealError, Sealer, Slot},
};
use crate::config::OwnRate;

/// Connections of the management listener on a server: two calls of the API, its stream of events, and a health check.
const MANAGEMENT_CONNECTIONS: usize = 4;

/// The applications of a database.
#[derive(Clone)]
pub struct StoredApps {
    store: Store,
    sealer: Arc<Sealer>,
    /// Lines about keys under a master key that is not known here.
    other_master_key: Arc<OnceAMinute>,
}

#[async_trait]
impl AppStore for StoredApps {
    async fn find(&self, ident: AppIdent) -> Result<Option<App>, AppStoreError> {
        let row = applications::find(&self.store, ident).await?;
        let opened = row.map(|row| self.open(ident, &row)).transpose();
        if let Err(AppStoreError::Seal(cause @ SealError::OtherMasterKey(_))) = &opened {
            self.log_other_master_key(ident, *cause);
        }
        opened
    }
}

/// Records and their sealed keys, for the management, which decides every change. All
/// functions fail if the store is unavailable.
impl StoredApps {
    /// The applications of this store; their keys are opened by `sealer`.
    pub fn new(store: Store, sealer: Sealer) -> Self {
        Self {
            store,
            sealer: Arc::new(sealer),
            other_master_key: Arc::default(),
        }
    }

    /// That the store has keys under a master key that is not known here, if so. It looks at the oldest and the newest
    /// application: a rotation of the master key begins with the newest, and each new one has the present master key.
    pub async fn unknown_master_key(&self) -> Result<Option<SealError>, StoreError> {
        let samples = sealed_keys::samples(&self.store).await?;
        let mut unknown = samples
            .iter()
            .filter_map(|sealed| self.sealer.unknown_master_key(sealed));
        Ok(unknown.next())
    }

    /// For operators and health checks, on connections that no client's request waits for.
    pub(super) fn for_management(&self) -> Self {
        Self {
            store: self.store.with_own_pool(MANAGEMENT_CONNECTIONS),
            ..self.clone()
        }
    }

    /// The database.
    pub const fn database(&self) -> &Store {
        &self.store
    }

    fn log_other_master_key(&self, ident: AppIdent, cause: SealError) {
        if let Some(lookups) = self.other_master_key.count(Instant::now()) {
            tracing::error!(
                lookups,
                app.ident = %ident,
                %cause,
                "applications' keys cannot be decrypted here, the last one as follows; applications in the cache are served"
            );
        }
    }

    /// The master keys.
    pub fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// Seals the keys of a row under the current master key. Keys that cannot be opened stay as they are.
    pub(super) fn seal_anew(&self, row: &mut ApplicationRow) {
        let previous = row.previous_key.as_deref();
        let anew = |ident| {
            self.anew(ident, &row.key, previous, row.previous_until)
                .ok()
        };
        if let Some((key, previous)) = row.ident.parse().ok().and_then(anew) {
            (row.key, row.previous_key) = (key, previous);
        }
    }

    /// The keys of an application under the current master key.
    pub fn anew(
        &self,
        ident: AppIdent,
        key: &[u8],
        previous: Option<&[u8]>,
        until: Option<Timestamp>,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), SealError> {
        let sealer = self.sealer();
        let previous = previous.map(|sealed| {
            // The end is part of what the seal authenticates: nothing opens the key without it.
            let slot = previous_slot(until.ok_or(SealError::NotOpened)?);
            sealer.seal_anew(sealed, ident, slot)
        });
        let key = sealer.seal_anew(key, ident, Slot::Current)?;
        Ok((key, previous.transpose()?))
    }

    /// Opens the keys of an application.
    pub(super) fn open(&self, ident: AppIdent, row: &ApplicationRow) -> Result<App, AppStoreError> {
        let open = |key: &[u8], slot| self.sealer.open(key, ident, slot);
        let state = AppState::from_word(&row.state).unwrap_or(AppState::Disabled);
        let previous_key = match (&row.previous_key, row.previous_until) {
            (Some(sealed), Some(until)) => Some(PreviousKey {
                key: open(sealed, previous_slot(until))?,
                until: until.into(),
            }),
            _ => None,
        };
        let settings = &row.settings;
        // A malformed setting makes the whole record unusable: the gateway's default could be laxer than what the owner
        // chose.
        let profile = settings.sign_profile.as_deref().map(serde_json::from_str);
        let profile = profile.transpose();
        let default_version = settings.default_version.as_deref();
        let default_version = default_version.map(str::parse);
        let rate_limit = settings.rate_limit.map(|[per_second, burst]| {
            let own = OwnRate::from_numbers(per_second, burst);
            own.ok_or(AppStoreError::Malformed("rate_per_second"))
        });
        let extensions = settings.extensions.as_deref().map(serde_json::from_str);
        let extensions = extensions.transpose();
        let extensions = extensions.map_err(|_| AppStoreError::Malformed("extensions"))?;
        Ok(App {
            id: row.id,
            ident: Some(ident),
            state,
            key: open(&row.key, Slot::Current)?,
            previous_key,
            profile: profile.map_err(|_| AppStoreError::Malformed("sign_profile"))?,
            default_version: default_version
                .transpose()
                .map_err(|_| AppStoreError::Malformed("default_version"))?,
            rate_limit: rate_limit.transpose()?,
            extensions: extensions.unwrap_or_default(),
        })
    }
}

/// The slot of a previous key, by the end of its overlap.
pub fn previous_slot(until: Timestamp) -> Slot {
    Slot::Previous {
        until: until.into(),
    }
}

//! The stored applications: converts between applications and rows, and seals and opens their keys.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use signpost_kit::{clock::Timestamp, log::once_a_minute::OnceAMinute};
use signpost_protocol::{
    app::{AppId, AppIdent},
    sign::{AppKey, SignProfile},
};
use signpost_store::{
    Store, StoreError,
    tables::{
        applications::{self, ApplicationRow, ApplicationSettings},
        audit::Audit,
        sealed_keys,
    },
};

use super::{
    App, AppState, PreviousKey,
    rules::Origin,
    seal::{SealError, Sealer, Slot},
    store::{AppStore, AppStoreError, AppSummary, NewApp},
};
use crate::config::OwnRate;

/// Connections of the management listener on a server: two calls of the API, its stream of events, and a health check.
const MANAGEMENT_CONNECTIONS: usize = 4;

/// The applications of a database.
#[derive(Clone)]
pub(crate) struct StoredApps {
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

/// Records and their sealed keys, for the [administration](super::administration), which decides every change. All
/// functions fail if the store is unavailable.
impl StoredApps {
    pub(crate) fn new(store: Store, sealer: Sealer) -> Self {
        Self {
            store,
            sealer: Arc::new(sealer),
            other_master_key: Arc::default(),
        }
    }

    /// Adds all of these applications; or none of them, and returns the idents that the store already has.
    pub(super) async fn insert(
        &self,
        new: Vec<ApplicationRow>,
        audit: Audit,
    ) -> Result<Vec<AppIdent>, AppStoreError> {
        let idents = new.iter().map(|row| row.ident.parse());
        let idents: Vec<_> = idents.filter_map(Result::ok).collect();
        match applications::insert(&self.store, new, audit).await {
            Err(error) if error.is_duplicate() => match self.taken(&idents).await? {
                // Another process has deleted it again.
                taken if taken.is_empty() => Err(error.into()),
                taken => Ok(taken),
            },
            inserted => Ok(inserted.map(|()| Vec::new())?),
        }
    }

    /// Returns the idents that the store already has.
    pub(super) async fn taken(&self, idents: &[AppIdent]) -> Result<Vec<AppIdent>, AppStoreError> {
        Ok(applications::taken(&self.store, idents).await?)
    }

    /// Deletes previous keys whose overlap ended before `ended_before`. Returns their number.
    pub(crate) async fn delete_previous_keys(
        &self,
        ended_before: Timestamp,
    ) -> Result<usize, AppStoreError> {
        Ok(applications::delete_previous_keys(&self.store, ended_before).await?)
    }

    /// Reads an application's record.
    pub(super) async fn row(&self, ident: AppIdent) -> Result<ApplicationRow, AppStoreError> {
        let row = applications::find(&self.store, ident).await?;
        row.ok_or(AppStoreError::Unknown(ident))
    }

    /// The record of a new application.
    pub(super) fn new_row(&self, app: NewApp) -> Result<ApplicationRow, AppStoreError> {
        Ok(ApplicationRow {
            id: AppId::new(0),
            ident: app.ident.to_string(),
            name: app.name.into(),
            state: app.state.as_str().to_owned(),
            created_at: app.created_at,
            key: self.sealer.seal(&app.key, app.ident, Slot::Current)?,
            previous_key: None,
            previous_until: None,
            revision: 1,
            settings: ApplicationSettings {
                sign_profile: app.profile.as_ref().map(profile_json),
                return_to_origins: origins_json(&app.return_to),
                default_version: app.default_version.map(|version| version.to_string()),
                rate_limit: app.rate_limit.map(OwnRate::numbers),
            },
        })
    }

    /// The record with a new key; the one before stays valid up to `until`.
    pub(crate) fn rotated(
        &self,
        ident: AppIdent,
        mut row: ApplicationRow,
        new: &AppKey,
        until: Timestamp,
    ) -> Result<ApplicationRow, AppStoreError> {
        let key = self.sealer.open(&row.key, ident, Slot::Current)?;
        row.key = self.sealer.seal(new, ident, Slot::Current)?;
        row.previous_key = Some(self.sealer.seal(&key, ident, previous_slot(until))?);
        row.previous_until = Some(until);
        Ok(row)
    }

    /// The record without an overlap from `now` on. The previous key is kept, for hints.
    pub(crate) fn without_overlap(
        &self,
        ident: AppIdent,
        mut row: ApplicationRow,
        now: Timestamp,
    ) -> Result<ApplicationRow, AppStoreError> {
        if let (Some(sealed), Some(until)) = (&row.previous_key, row.previous_until)
            && until >= now
        {
            let key = self.sealer.open(sealed, ident, previous_slot(until))?;
            let ended = now.minus(Duration::from_millis(1));
            row.previous_key = Some(self.sealer.seal(&key, ident, previous_slot(ended))?);
            row.previous_until = Some(ended);
        }
        Ok(row)
    }

    /// That the store has keys under a master key that is not known here, if so. It looks at the oldest and the newest
    /// application: a rotation of the master key begins with the newest, and each new one has the present master key.
    pub(crate) async fn unknown_master_key(&self) -> Result<Option<SealError>, StoreError> {
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
    pub(crate) const fn database(&self) -> &Store {
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
    pub(crate) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// Opens the keys of an application.
    pub(super) fn open(&self, ident: AppIdent, row: &ApplicationRow) -> Result<App, AppStoreError> {
        let open = |key: &[u8], slot| self.sealer.open(key, ident, slot);
        let state = match row.is_active() {
            true => AppState::Active,
            false => AppState::Disabled,
        };
        let previous_key = match (&row.previous_key, row.previous_until) {
            (Some(sealed), Some(until)) => Some(PreviousKey {
                key: open(sealed, previous_slot(until))?,
                until: until.into(),
            }),
            _ => None,
        };
        let settings = &row.settings;
        let profile = settings.sign_profile.as_deref().map(serde_json::from_str);
        let profile = profile.transpose();
        let default_version = settings.default_version.as_deref();
        let default_version = default_version.map(str::parse);
        let rate_limit = settings.rate_limit.map(|[per_second, burst]| {
            let own = OwnRate::from_numbers(per_second, burst);
            own.ok_or(AppStoreError::Malformed("rate_per_second"))
        });
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
        })
    }
}

/// Malformed values are omitted, so that an operator sees the rest.
impl From<ApplicationRow> for AppSummary {
    fn from(row: ApplicationRow) -> Self {
        let settings = row.settings;
        let profile = settings.sign_profile.as_deref();
        Self {
            ident: row.ident,
            name: row.name,
            state: row.state,
            created_at: row.created_at,
            sign_profile: profile.and_then(|json| serde_json::from_str(json).ok()),
            return_to: serde_json::from_str(&settings.return_to_origins).unwrap_or_default(),
            default_version: settings.default_version,
            rate_limit: settings
                .rate_limit
                .and_then(|[per_second, burst]| OwnRate::from_numbers(per_second, burst)),
            previous_key_until: row.previous_until,
            revision: row.revision,
        }
    }
}

pub(crate) fn profile_json(profile: &SignProfile) -> String {
    serde_json::to_string(profile).expect("words and a list of words always serialize")
}

pub(crate) fn origins_json<'o>(origins: impl IntoIterator<Item = &'o Origin>) -> String {
    let origins: Vec<_> = origins.into_iter().map(Origin::to_string).collect();
    serde_json::to_string(&origins).expect("a list of texts always serializes")
}

/// The slot of a previous key, by the end of its overlap.
pub(super) fn previous_slot(until: Timestamp) -> Slot {
    Slot::Previous {
        until: until.into(),
    }
}

//! The stored applications: converts between applications and rows, and seals and opens their keys.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use signpost_kit::{clock::Timestamp, log::once_a_minute::OnceAMinute};
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
};
use signpost_store::{
    Store, StoreError,
    tables::applications::{
        self, ApplicationChanges, ApplicationRow, ApplicationSettings, KeyChange, NewApplication,
    },
};

use super::{
    App, AppState, PreviousKey,
    rules::Origin,
    seal::{SealError, Sealer, Slot, new_app_key},
    store::{AppStore, AppStoreError, AppSummary, NewApp},
};
use crate::config::OwnRate;

/// Limit of a rotation's attempts: one fails if another process rotates the same application concurrently.
const MAX_ROTATION_ATTEMPTS: usize = 8;

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

/// Each change reaches every running gateway within 1 s. All functions fail if the store is unavailable, and those of one
/// application if it is unknown.
impl StoredApps {
    pub(crate) fn new(store: Store, sealer: Sealer) -> Self {
        Self {
            store,
            sealer: Arc::new(sealer),
            other_master_key: Arc::default(),
        }
    }

    /// Adds an application.
    pub async fn create(&self, app: NewApp) -> Result<(), AppStoreError> {
        let new = self.new_row(app)?;
        Ok(applications::insert(&self.store, vec![new]).await?)
    }

    /// Adds all of these applications; or none of them, and returns the idents that the store already has.
    pub(crate) async fn import(&self, apps: Vec<NewApp>) -> Result<Vec<AppIdent>, AppStoreError> {
        let idents: Vec<_> = apps.iter().map(|app| app.ident).collect();
        let new = apps.into_iter().map(|app| self.new_row(app));
        let new = new.collect::<Result<_, _>>()?;
        match applications::insert(&self.store, new).await {
            Err(error) if error.is_duplicate() => match self.taken(&idents).await? {
                // Another process has deleted it again.
                taken if taken.is_empty() => Err(error.into()),
                taken => Ok(taken),
            },
            inserted => Ok(inserted.map(|()| Vec::new())?),
        }
    }

    /// Returns the idents that the store already has.
    pub(crate) async fn taken(&self, idents: &[AppIdent]) -> Result<Vec<AppIdent>, AppStoreError> {
        Ok(applications::taken(&self.store, idents).await?)
    }

    /// Changes an application.
    pub(super) async fn update(
        &self,
        ident: AppIdent,
        changes: ApplicationChanges,
    ) -> Result<(), AppStoreError> {
        let is_known = applications::update(&self.store, ident, changes).await?;
        known(ident, is_known)
    }

    /// Deletes previous keys whose overlap ended before `ended_before`. Returns their number.
    pub(crate) async fn delete_previous_keys(
        &self,
        ended_before: Timestamp,
    ) -> Result<usize, AppStoreError> {
        Ok(applications::delete_previous_keys(&self.store, ended_before).await?)
    }

    /// Returns one application's summary.
    pub(crate) async fn summary(&self, ident: AppIdent) -> Result<AppSummary, AppStoreError> {
        let row = applications::find(&self.store, ident).await?;
        row.map(AppSummary::from)
            .ok_or(AppStoreError::Unknown(ident))
    }

    /// Returns all applications' summaries, oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<AppSummary>, AppStoreError> {
        let rows = applications::all(&self.store).await?;
        Ok(rows.into_iter().map(AppSummary::from).collect())
    }

    /// Replaces an application's key by a new one; the old one stays valid for the overlap. Fails if the key before the
    /// last rotation is still valid, unless `ends_running_overlap`.
    pub(crate) async fn rotate(
        &self,
        ident: AppIdent,
        overlap: Duration,
        ends_running_overlap: bool,
        now: Timestamp,
    ) -> Result<AppKey, AppStoreError> {
        let until = now.plus(overlap);
        let new = new_app_key()?;
        let sealed = self.sealer.seal(&new, ident, Slot::Current)?;
        for _ in 0..MAX_ROTATION_ATTEMPTS {
            let row = applications::find(&self.store, ident).await?;
            let row = row.ok_or(AppStoreError::Unknown(ident))?;
            if let Some(until) = row.previous_until
                && until >= now
                && !ends_running_overlap
            {
                let minutes = until.seconds_from(now).div_ceil(60);
                return Err(AppStoreError::Overlapping { minutes });
            }
            let key = self.sealer.open(&row.key, ident, Slot::Current)?;
            let change = KeyChange {
                current: row.key,
                previous: self.sealer.seal(&key, ident, previous_slot(until))?,
                previous_until: until,
                new: sealed.clone(),
            };
            // If no row changed, another process has rotated the key meanwhile: try again.
            if applications::change_key(&self.store, ident, change).await? {
                return Ok(new);
            }
        }
        Err(StoreError::Busy.into())
    }

    /// Enables or disables an application.
    pub(crate) async fn set_state(
        &self,
        ident: AppIdent,
        state: AppState,
    ) -> Result<(), AppStoreError> {
        let is_known = applications::set_state(&self.store, ident, state.as_str()).await?;
        known(ident, is_known)
    }

    /// Deletes an application.
    pub(crate) async fn delete(&self, ident: AppIdent) -> Result<(), AppStoreError> {
        known(ident, applications::delete(&self.store, ident).await?)
    }

    fn new_row(&self, app: NewApp) -> Result<NewApplication, AppStoreError> {
        Ok(NewApplication {
            ident: app.ident,
            name: app.name.into(),
            created_at: app.created_at,
            key: self.sealer.seal(&app.key, app.ident, Slot::Current)?,
            settings: ApplicationSettings {
                sign_profile: app.profile.as_ref().map(profile_json),
                return_to_origins: origins_json(&app.return_to),
                default_version: app.default_version.map(|version| version.to_string()),
                rate_limit: app.rate_limit.map(OwnRate::numbers),
            },
        })
    }

    /// The database.
    pub(super) const fn database(&self) -> &Store {
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
    pub(super) fn sealer(&self) -> &Sealer {
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
        }
    }
}

fn known(ident: AppIdent, is_known: bool) -> Result<(), AppStoreError> {
    is_known.then_some(()).ok_or(AppStoreError::Unknown(ident))
}

pub(super) fn profile_json(profile: &SignProfile) -> String {
    serde_json::to_string(profile).expect("words and a list of words always serialize")
}

pub(super) fn origins_json(origins: &[Origin]) -> String {
    let origins: Vec<_> = origins.iter().map(Origin::to_string).collect();
    serde_json::to_string(&origins).expect("a list of texts always serializes")
}

/// The slot of a previous key, by the end of its overlap.
pub(super) fn previous_slot(until: Timestamp) -> Slot {
    Slot::Previous {
        until: until.into(),
    }
}

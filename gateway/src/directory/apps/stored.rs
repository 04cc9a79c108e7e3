//! The stored applications: converts between applications and rows, and seals and opens their keys.

use std::sync::Arc;

use async_trait::async_trait;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppIdent, sign::SignProfile};
use signpost_store::{
    Store, StoreError,
    tables::applications::{
        self, ApplicationChanges, ApplicationRow, ApplicationSettings, KeyChange, NewApplication,
    },
};

use super::{
    App, AppState, PreviousKey,
    seal::{Sealer, Slot},
    store::{
        AppStore, AppStoreError, AppSummary, AppUpdate, ImportOutcome, NewApp, Rotation,
        RotationOutcome,
    },
};
use crate::config::OwnRate;

/// Limit of a rotation's attempts: one fails if another process rotates the same application concurrently.
const MAX_ROTATION_ATTEMPTS: usize = 8;

/// The one character that Postgres' texts cannot hold.
const NUL: char = '\0';

/// The applications of a database.
#[derive(Clone)]
pub struct StoredApps {
    store: Store,
    sealer: Arc<Sealer>,
}

#[async_trait]
impl AppStore for StoredApps {
    async fn find(&self, ident: AppIdent) -> Result<Option<App>, AppStoreError> {
        let row = applications::find(&self.store, ident).await?;
        row.map(|row| self.open(ident, row)).transpose()
    }
}

/// Each change reaches every running gateway within 1 s. All functions fail if the store is unavailable.
impl StoredApps {
    pub(crate) fn new(store: Store, sealer: Sealer) -> Self {
        Self {
            store,
            sealer: Arc::new(sealer),
        }
    }

    /// Adds an application. Fails if the name contains U+0000.
    pub async fn create(&self, app: NewApp) -> Result<(), AppStoreError> {
        let new = self.new_row(app)?;
        Ok(applications::insert(&self.store, vec![new]).await?)
    }

    /// Adds all of these applications, or none of them. Fails if a name contains U+0000.
    pub(crate) async fn import(&self, apps: Vec<NewApp>) -> Result<ImportOutcome, AppStoreError> {
        let idents: Vec<_> = apps.iter().map(|app| app.ident).collect();
        let new = apps.into_iter().map(|app| self.new_row(app));
        let new = new.collect::<Result<_, _>>()?;
        let taken = self.taken(&idents).await?;
        if !taken.is_empty() {
            return Ok(ImportOutcome::Taken(taken));
        }
        match applications::insert(&self.store, new).await {
            Ok(()) => Ok(ImportOutcome::Done),
            // Another process has just taken an ident: nothing was written.
            Err(error) if error.is_duplicate() => {
                self.taken(&idents).await.map(ImportOutcome::Taken)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the idents that the store already has.
    pub(crate) async fn taken(&self, idents: &[AppIdent]) -> Result<Vec<AppIdent>, AppStoreError> {
        Ok(applications::taken(&self.store, idents).await?)
    }

    /// Changes an application. `false`: it is unknown. Fails if the name contains U+0000.
    pub(crate) async fn update(&self, update: AppUpdate) -> Result<bool, AppStoreError> {
        update.name.as_deref().map(reject_nul).transpose()?;
        let origins = update.return_to_origins;
        let changes = ApplicationChanges {
            name: update.name,
            return_to_origins: origins.map(|origins| origins_json(&origins)),
            sign_profile: update.profile.map(|profile| profile_json(&profile)).into(),
            default_version: update
                .default_version
                .map(|version| version.to_string())
                .into(),
            rate_limit: update.rate_limit.map(OwnRate::numbers).into(),
        };
        Ok(applications::update(&self.store, update.ident, changes).await?)
    }

    /// Deletes previous keys whose overlap ended before `ended_before`. Returns their number.
    pub(crate) async fn delete_previous_keys(
        &self,
        ended_before: Timestamp,
    ) -> Result<usize, AppStoreError> {
        Ok(applications::delete_previous_keys(&self.store, ended_before).await?)
    }

    /// Returns one application's summary.
    pub(crate) async fn summary(
        &self,
        ident: AppIdent,
    ) -> Result<Option<AppSummary>, AppStoreError> {
        let row = applications::find(&self.store, ident).await?;
        Ok(row.map(AppSummary::from))
    }

    /// Returns all applications' summaries, oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<AppSummary>, AppStoreError> {
        let rows = applications::all(&self.store).await?;
        Ok(rows.into_iter().map(AppSummary::from).collect())
    }

    /// Replaces an application's key; the old one stays valid for the overlap.
    pub(crate) async fn rotate(
        &self,
        rotation: Rotation,
    ) -> Result<RotationOutcome, AppStoreError> {
        let Rotation { ident, now, .. } = rotation;
        let until = now.plus(rotation.overlap);
        let new = self.sealer.seal(&rotation.key, ident, Slot::Current)?;
        for _ in 0..MAX_ROTATION_ATTEMPTS {
            let Some(row) = applications::find(&self.store, ident).await? else {
                return Ok(RotationOutcome::Unknown);
            };
            if let Some(until) = row.previous_until
                && until >= now
                && !rotation.ends_running_overlap
            {
                return Ok(RotationOutcome::Overlapping { until });
            }
            let key = self.sealer.open(&row.key, ident, Slot::Current)?;
            let change = KeyChange {
                current: row.key,
                previous: self.sealer.seal(&key, ident, previous_slot(until))?,
                previous_until: until,
                new: new.clone(),
            };
            // If no row changed, another process has rotated the key meanwhile: try again.
            if applications::change_key(&self.store, ident, change).await? {
                return Ok(RotationOutcome::Done);
            }
        }
        Err(StoreError::Busy.into())
    }

    /// Enables or disables an application. `false`: it is unknown.
    pub(crate) async fn set_state(
        &self,
        ident: AppIdent,
        state: AppState,
    ) -> Result<bool, AppStoreError> {
        Ok(applications::set_state(&self.store, ident, state.as_str()).await?)
    }

    /// Deletes an application. `false`: it is unknown.
    pub(crate) async fn delete(&self, ident: AppIdent) -> Result<bool, AppStoreError> {
        Ok(applications::delete(&self.store, ident).await?)
    }

    fn new_row(&self, app: NewApp) -> Result<NewApplication, AppStoreError> {
        reject_nul(&app.name)?;
        Ok(NewApplication {
            ident: app.ident,
            name: app.name,
            created_at: app.created_at,
            key: self.sealer.seal(&app.key, app.ident, Slot::Current)?,
            settings: ApplicationSettings {
                sign_profile: app.profile.as_ref().map(profile_json),
                return_to_origins: origins_json(&app.return_to_origins),
                default_version: app.default_version.map(|version| version.to_string()),
                rate_limit: None,
            },
        })
    }

    fn open(&self, ident: AppIdent, row: ApplicationRow) -> Result<App, AppStoreError> {
        let open = |key: &[u8], slot| self.sealer.open(key, ident, slot);
        let state = match row.is_active() {
            true => AppState::Active,
            false => AppState::Disabled,
        };
        let previous_key = match (row.previous_key, row.previous_until) {
            (Some(sealed), Some(until)) => Some(PreviousKey {
                key: open(&sealed, previous_slot(until))?,
                until: until.into(),
            }),
            _ => None,
        };
        let settings = row.settings;
        let profile = settings.sign_profile.as_deref().map(serde_json::from_str);
        let profile = profile.transpose();
        let default_version = settings.default_version.map(|name| name.parse());
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

fn reject_nul(name: &str) -> Result<(), AppStoreError> {
    match name.contains(NUL) {
        true => Err(AppStoreError::Name),
        false => Ok(()),
    }
}

fn profile_json(profile: &SignProfile) -> String {
    serde_json::to_string(profile).expect("words and a list of words always serialize")
}

fn origins_json(origins: &[String]) -> String {
    serde_json::to_string(origins).expect("a list of texts always serializes")
}

/// The slot of a previous key, by the end of its overlap.
fn previous_slot(until: Timestamp) -> Slot {
    Slot::Previous {
        until: until.into(),
    }
}

//! Operators' actions on applications.
//!
//! Independent of the command line: `signpost app` is one caller. [`import`](super::import) reads applications from a
//! file.

use std::{collections::BTreeMap, fmt, time::Duration};

use signpost_kit::clock::Timestamp;
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
    version::Version,
};

use super::{
    import::{ImportError, Problem, Problems, read_apps},
    rules::{AppName, BrokenRule, Origin, ProfileChoice, Rules},
    seal::{SealError, new_app_ident, new_app_key},
    store::{
        AppStoreError, AppSummary, AppUpdate, Edit, ImportOutcome, NewApp, Rotation,
        RotationOutcome,
    },
    stored::StoredApps,
};
use crate::config::{OwnRate, weaknesses};

/// Maximum time for which the old key stays valid after a rotation: 30 days. CONTRACT 4.
pub(crate) const MAX_OVERLAP: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Time for which an expired key is kept, so that a client that still signs with it gets a hint (CONTRACT 3).
const PREVIOUS_KEY_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Administers the applications of a store.
pub(crate) struct Administration {
    store: StoredApps,
    rules: Rules,
}

/// An operator's settings of a new application.
#[derive(Clone, Debug)]
pub(crate) struct NewAppSettings {
    /// The display name.
    pub name: AppName,
    /// Origins that a login may return to.
    pub return_to: Vec<Origin>,
    /// Settings of its own sign profile, if any.
    pub profile: ProfileChoice,
    /// The version for requests that name none.
    pub default_version: Option<Version>,
}

/// An operator's changes of an application. `None` and [`Edit::Keep`] change nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct AppChanges {
    /// The display name.
    pub name: Option<AppName>,
    /// Origins that a login may return to; replaces all of them.
    pub return_to: Option<Vec<Origin>>,
    /// Changes of its own sign profile, or its removal.
    pub profile: Edit<ProfileChoice>,
    /// The version for requests that name none.
    pub default_version: Edit<Version>,
    /// Its own rate limit.
    pub rate_limit: Edit<OwnRate>,
}

/// The key of a new application or a rotation. It is returned only once.
#[derive(Debug)]
pub(crate) struct NewKey {
    /// The application's ident.
    pub ident: AppIdent,
    /// The key.
    pub key: AppKey,
}

/// The result of an import.
#[derive(Debug)]
pub(crate) struct ImportSummary {
    /// Number of applications.
    pub applications: usize,
    /// Number of keys under 128 bits.
    pub weak_keys: usize,
    /// Weaknesses of the applications' own profiles, and how many have each.
    pub weaknesses: BTreeMap<&'static str, usize>,
}

impl Administration {
    /// Creates the administration of a store.
    #[must_use]
    pub(crate) fn new(store: StoredApps, rules: Rules) -> Self {
        Self { store, rules }
    }

    /// The store, for actions without rules.
    #[must_use]
    pub(crate) const fn store(&self) -> &StoredApps {
        &self.store
    }

    /// The application's own profile by this choice; `None`: it uses the gateway's.
    #[must_use]
    pub(crate) fn profile_of(&self, choice: &ProfileChoice) -> Option<SignProfile> {
        choice
            .is_any()
            .then(|| choice.apply_to(self.rules.gateway_profile.clone()))
    }

    /// Adds an application, with a new ident and key.
    ///
    /// # Errors
    ///
    /// Its default version is unknown, it has too many origins, or the store is unavailable.
    pub(crate) async fn create(
        &self,
        described: NewAppSettings,
        now: Timestamp,
    ) -> Result<NewKey, AdministrationError> {
        self.rules.check_origins(&described.return_to)?;
        if let Some(version) = &described.default_version {
            self.rules.check_version(version)?;
        }
        let (ident, key) = (new_app_ident()?, new_app_key()?);
        let app = NewApp {
            ident,
            key: key.clone(),
            profile: self.profile_of(&described.profile),
            name: described.name.into(),
            return_to_origins: described.return_to.iter().map(Origin::to_string).collect(),
            default_version: described.default_version,
            created_at: now,
        };
        self.store.create(app).await?;
        Ok(NewKey { ident, key })
    }

    /// Changes an application, and returns its new state. Of two concurrent changes of one setting, the later one wins.
    ///
    /// # Errors
    ///
    /// Nothing is to change, its new default version is unknown, it has too many origins, the application is unknown,
    /// or the store is unavailable.
    pub(crate) async fn update(
        &self,
        ident: AppIdent,
        edit: AppChanges,
    ) -> Result<AppSummary, AdministrationError> {
        if edit.is_empty() {
            return Err(AdministrationError::NothingToChange);
        }
        self.rules
            .check_origins(edit.return_to.as_deref().unwrap_or_default())?;
        if let Some(version) = edit.default_version.value() {
            self.rules.check_version(version)?;
        }
        let profile = match edit.profile {
            // The current profile is needed: settings that were not chosen keep their values.
            Edit::Set(choice) => {
                let own = self.summary(ident).await?.sign_profile;
                let base = own.unwrap_or_else(|| self.rules.gateway_profile.clone());
                Edit::Set(choice.apply_to(base))
            }
            Edit::Keep => Edit::Keep,
            Edit::Unset => Edit::Unset,
        };
        let update = AppUpdate {
            ident,
            name: edit.name.map(String::from),
            return_to_origins: edit
                .return_to
                .map(|all| all.iter().map(Origin::to_string).collect()),
            profile,
            default_version: edit.default_version,
            rate_limit: edit.rate_limit,
        };
        if !self.store.update(update).await? {
            return Err(AdministrationError::Unknown { ident });
        }
        self.summary(ident).await
    }

    /// Adds all applications of a file, or none. [`import`](super::import) documents the format.
    ///
    /// # Errors
    ///
    /// The file has problems, all of which are reported by line, or the store is unavailable.
    pub(crate) async fn import(
        &self,
        file: &[u8],
        allows_weak_keys: bool,
        now: Timestamp,
    ) -> Result<ImportSummary, ImportError> {
        let rules = Rules {
            allows_weak_keys: self.rules.allows_weak_keys || allows_weak_keys,
            ..self.rules.clone()
        };
        let (read, mut problems) = read_apps(file, &rules, now)?;
        // Before the file's own problems are reported, so that all are reported at once.
        let idents: Vec<AppIdent> = read.apps.iter().map(|app| app.ident).collect();
        let taken = self.store.taken(&idents).await?;
        problems.extend(taken.iter().map(|ident| Problem::taken(read.lines[ident])));
        if !problems.is_empty() {
            return Err(ImportError::Problems(Problems::new(problems)));
        }
        let mut imported = ImportSummary {
            applications: read.apps.len(),
            weak_keys: 0,
            weaknesses: BTreeMap::new(),
        };
        for app in &read.apps {
            imported.weak_keys += usize::from(app.key.check_strength().is_err());
            for weakness in app.profile.iter().flat_map(weaknesses) {
                *imported.weaknesses.entry(weakness).or_default() += 1;
            }
        }
        match self.store.import(read.apps).await? {
            ImportOutcome::Done => Ok(imported),
            ImportOutcome::Taken(idents) => {
                let taken = idents.iter().map(|ident| Problem::taken(read.lines[ident]));
                Err(ImportError::Problems(Problems::new(taken.collect())))
            }
        }
    }

    /// Replaces an application's key. The old one stays valid for the overlap.
    ///
    /// # Errors
    ///
    /// The overlap is too long, the key before the last rotation is still valid, the application is unknown, or
    /// the store is unavailable.
    pub(crate) async fn rotate(
        &self,
        ident: AppIdent,
        overlap: Duration,
        ends_running_overlap: bool,
        now: Timestamp,
    ) -> Result<NewKey, AdministrationError> {
        if overlap > MAX_OVERLAP {
            return Err(AdministrationError::OverlapTooLong);
        }
        let key = new_app_key()?;
        let rotation = Rotation {
            ident,
            key: key.clone(),
            overlap,
            ends_running_overlap,
            now,
        };
        match self.store.rotate(rotation).await? {
            RotationOutcome::Done => {}
            RotationOutcome::Unknown => return Err(AdministrationError::Unknown { ident }),
            RotationOutcome::Overlapping { until } => {
                let minutes = until.seconds_from(now).div_ceil(60);
                return Err(AdministrationError::Overlapping { minutes });
            }
        }
        let ended_before = now.minus(PREVIOUS_KEY_RETENTION);
        // The new key must be returned even if this clean-up fails; the next rotation retries it.
        let _ = self.store.delete_previous_keys(ended_before).await;
        Ok(NewKey { ident, key })
    }

    /// One application.
    ///
    /// # Errors
    ///
    /// The application is unknown, or the store is unavailable.
    pub(crate) async fn summary(&self, ident: AppIdent) -> Result<AppSummary, AdministrationError> {
        let summary = self.store.summary(ident).await?;
        summary.ok_or(AdministrationError::Unknown { ident })
    }
}

impl AppChanges {
    const fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.return_to.is_none()
            && !self.profile.is_change()
            && !self.default_version.is_change()
            && !self.rate_limit.is_change()
    }
}

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdministrationError {
    /// No application has that ident.
    #[error("no application has the ident {ident}")]
    Unknown {
        /// The ident.
        ident: AppIdent,
    },
    /// The application breaks a rule.
    #[error(transparent)]
    Rule(#[from] BrokenRule),
    /// The edit is empty.
    #[error("nothing to change: give at least one setting")]
    NothingToChange,
    /// The overlap is longer than [`MAX_OVERLAP`].
    #[error("the overlap must be at most 30 days")]
    OverlapTooLong,
    /// The previous key is still valid: two old keys cannot be valid at once.
    #[error(
        "the previous key is still valid for {} h {} min: wait, or end its validity now with \
         --end-running-overlap",
        minutes / 60,
        minutes % 60
    )]
    Overlapping {
        /// Its remaining validity, rounded up.
        minutes: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] AppStoreError),
    /// The system has no random bytes.
    #[error(transparent)]
    Seal(#[from] SealError),
}

impl fmt::Debug for Administration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Administration(…)")
    }
}

#[cfg(test)]
pub(crate) mod tests;

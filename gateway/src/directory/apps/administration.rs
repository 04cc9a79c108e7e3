//! Operators' actions on applications.
//!
//! Independent of the command line: `signpost app` is one caller. [`import`](super::import) reads applications from a
//! file.

use std::{collections::BTreeMap, time::Duration};

use signpost_kit::clock::Timestamp;
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
    version::Version,
};
use signpost_store::tables::applications::{ApplicationChanges, Change};

use super::{
    import::{ImportError, Problem, Problems, read_apps},
    rules::{AppName, BrokenRule, Origin, ProfileChoice, Rules},
    store::{AppStoreError, AppSummary, NewApp},
    stored::{StoredApps, origins_json, profile_json},
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

/// An operator's changes of an application. `None` changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AppChanges {
    /// The display name.
    pub name: Option<AppName>,
    /// Origins that a login may return to; replaces all of them.
    pub return_to: Option<Vec<Origin>>,
    /// Changes of its own sign profile, or its removal.
    pub profile: Change<ProfileChoice>,
    /// The version for requests that name none.
    pub default_version: Change<Version>,
    /// Its own rate limit.
    pub rate_limit: Change<OwnRate>,
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

    /// Adds an application.
    ///
    /// # Errors
    ///
    /// Its default version is unknown, it has too many origins, or the store is unavailable.
    pub(crate) async fn create(&self, app: NewApp) -> Result<(), AdministrationError> {
        self.rules.check_origins(&app.return_to)?;
        if let Some(version) = &app.default_version {
            self.rules.check_version(version)?;
        }
        Ok(self.store.create(app).await?)
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
        if edit == AppChanges::default() {
            return Err(AdministrationError::NothingToChange);
        }
        self.rules
            .check_origins(edit.return_to.as_deref().unwrap_or_default())?;
        if let Some(Some(version)) = &edit.default_version {
            self.rules.check_version(version)?;
        }
        let sign_profile = match edit.profile {
            // The current profile is needed: settings that were not chosen keep their values.
            Some(Some(choice)) => {
                let own = self.store.summary(ident).await?.sign_profile;
                let base = own.unwrap_or_else(|| self.rules.gateway_profile.clone());
                Some(Some(profile_json(&choice.apply_to(base))))
            }
            removal => removal.map(|_| None),
        };
        let version = edit.default_version;
        let changes = ApplicationChanges {
            name: edit.name.map(String::from),
            return_to_origins: edit.return_to.map(|origins| origins_json(&origins)),
            sign_profile,
            default_version: version.map(|new| new.map(|version| version.to_string())),
            rate_limit: edit.rate_limit.map(|new| new.map(OwnRate::numbers)),
        };
        self.store.update(ident, changes).await?;
        Ok(self.store.summary(ident).await?)
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
        // Another process may have taken an ident just now.
        let taken = self.store.import(read.apps).await?;
        if taken.is_empty() {
            return Ok(imported);
        }
        let taken = taken.iter().map(|ident| Problem::taken(read.lines[ident]));
        Err(ImportError::Problems(Problems::new(taken.collect())))
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
    ) -> Result<AppKey, AdministrationError> {
        if overlap > MAX_OVERLAP {
            return Err(AdministrationError::OverlapTooLong);
        }
        let rotated = self.store.rotate(ident, overlap, ends_running_overlap, now);
        let key = rotated.await?;
        let ended_before = now.minus(PREVIOUS_KEY_RETENTION);
        // The new key must be returned even if this clean-up fails; the next rotation retries it.
        let _ = self.store.delete_previous_keys(ended_before).await;
        Ok(key)
    }
}

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdministrationError {
    /// The application breaks a rule.
    #[error(transparent)]
    Rule(#[from] BrokenRule),
    /// The edit is empty.
    #[error("nothing to change: give at least one setting")]
    NothingToChange,
    /// The overlap is longer than [`MAX_OVERLAP`].
    #[error("the overlap must be at most 30 days")]
    OverlapTooLong,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] AppStoreError),
}

signpost_protocol::hide_in_debug!(Administration);

#[cfg(test)]
pub(crate) mod both_stores;

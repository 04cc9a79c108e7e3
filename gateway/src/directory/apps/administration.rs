//! Operators' actions on applications: every change is decided here, and is written together with what the audit says of
//! it.
//!
//! `signpost app` and the [API](crate::api) are its callers. [`import`](super::import) reads applications from a
//! file.

mod listing;
mod write;

use std::{collections::BTreeMap, mem, time::Duration};

use serde::{Deserialize, Deserializer, Serialize};
use signpost_kit::clock::Timestamp;
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
    version::Version,
};
use signpost_store::tables::{
    applications::ApplicationRow,
    audit::{Action, Author},
};

pub(crate) use self::listing::{Cursor, Listing, MAX_PAGE};
use utoipa::ToSchema;

use super::{
    AppState,
    import::{ImportError, Problem, Problems, read_apps},
    rules::{AppName, BrokenRule, Origin, ProfileChoice, Rules},
    seal::new_app_key,
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
    /// The application that its user may not import.
    pub(crate) reserved: Option<AppIdent>,
}

/// Who changes an application, when, and which revision of it the author has seen.
#[derive(Clone, Debug)]
pub(crate) struct ChangeRequest {
    /// Who, from where, and why.
    pub author: Author,
    /// When.
    pub at: Timestamp,
    /// The change is rejected if the application has another one. `None`: of two concurrent changes the later one wins.
    pub revision: Option<i64>,
}

/// A change of a setting that may be absent. In JSON an absent member, null, or the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Change<T> {
    /// It stays.
    #[default]
    NotGiven,
    /// It is removed.
    None,
    /// It gets this value.
    This(T),
}

impl<T> Change<T> {
    /// Changes a stored setting.
    fn apply<U>(&self, setting: &mut Option<U>, stored: impl FnOnce(&T) -> U) {
        match self {
            Self::NotGiven => {}
            Self::None => *setting = None,
            Self::This(new) => *setting = Some(stored(new)),
        }
    }

    /// The same change with the value that `read` makes of it.
    pub(crate) fn try_map<U, E>(
        self,
        read: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<Change<U>, E> {
        Ok(match self {
            Self::NotGiven => Change::NotGiven,
            Self::None => Change::None,
            Self::This(new) => Change::This(read(new)?),
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::None, Self::This))
    }
}

/// An operator's changes of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AppChanges {
    /// The display name; `None` keeps it.
    pub name: Option<AppName>,
    /// Origins that a login may return to; replaces all of them.
    pub return_to: Change<Vec<Origin>>,
    /// Changes of its own sign profile, or its removal.
    pub profile: Change<ProfileChoice>,
    /// The version for requests that name none.
    pub default_version: Change<Version>,
    /// Its own rate limit.
    pub rate_limit: Change<OwnRate>,
}

impl AppChanges {
    /// Without a profile of which nothing is chosen: that changes nothing.
    fn chosen(&self) -> Self {
        let mut chosen = self.clone();
        if matches!(&chosen.profile, Change::This(new) if !new.is_any()) {
            chosen.profile = Change::NotGiven;
        }
        chosen
    }
}

/// The result of an import.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ImportSummary {
    /// Number of applications.
    #[serde(rename = "imported")]
    pub applications: usize,
    /// Number of keys under 128 bits.
    pub weak_keys: usize,
    /// Weaknesses of the applications' own profiles, and how many have each.
    #[serde(skip)]
    pub weaknesses: BTreeMap<&'static str, usize>,
}

/// Each change reaches every running gateway within 1 s. All functions fail if the store is unavailable, and those of one
/// application if it is unknown.
impl Administration {
    /// Creates the administration of a store.
    #[must_use]
    pub(crate) fn new(store: StoredApps, rules: Rules) -> Self {
        Self {
            store,
            rules,
            reserved: None,
        }
    }

    /// The application's own profile by this choice; `None`: it uses the gateway's.
    #[must_use]
    pub(crate) fn profile_of(&self, choice: &ProfileChoice) -> Option<SignProfile> {
        choice
            .is_any()
            .then(|| choice.apply_to(self.rules.gateway_profile.clone()))
    }

    /// Adds an application, and returns its state.
    ///
    /// # Errors
    ///
    /// Its default version is unknown, it has too many origins, or its ident is taken.
    pub(crate) async fn create(
        &self,
        app: NewApp,
        author: Author,
    ) -> Result<AppSummary, AdministrationError> {
        self.rules.check_origins(&app.return_to)?;
        if let Some(version) = &app.default_version {
            self.rules.check_version(version)?;
        }
        let at = app.created_at;
        let new = self.store.new_row(app)?;
        let rows = vec![new.clone()];
        match self
            .insert(rows, Action::CreateApp, author, at)
            .await?
            .pop()
        {
            Some(taken) => Err(AdministrationError::Taken(taken)),
            None => Ok(new.into()),
        }
    }

    /// Changes an application's settings, and returns its new state.
    ///
    /// # Errors
    ///
    /// Nothing is to change, its new default version is unknown, it has too many origins, or the revision is stale.
    pub(crate) async fn update(
        &self,
        ident: AppIdent,
        edit: &AppChanges,
        request: ChangeRequest,
    ) -> Result<AppSummary, AdministrationError> {
        let edit = &edit.chosen();
        if *edit == AppChanges::default() {
            return Err(AdministrationError::NothingToChange);
        }
        if let Change::This(origins) = &edit.return_to {
            self.rules.check_origins(origins)?;
        }
        if let Change::This(version) = &edit.default_version {
            self.rules.check_version(version)?;
        }
        let edited = |row| Ok(self.edited(row, edit));
        self.change(ident, Action::UpdateApp, &request, edited)
            .await
    }

    fn edited(&self, mut row: ApplicationRow, edit: &AppChanges) -> ApplicationRow {
        let settings = &mut row.settings;
        if let Some(name) = &edit.name {
            row.name = name.clone().into();
        }
        let mut origins = Some(mem::take(&mut settings.return_to_origins));
        (edit.return_to).apply(&mut origins, |origins| origins_json(origins));
        settings.return_to_origins = origins.unwrap_or_else(|| origins_json(&[]));
        // Settings that were not chosen keep their values.
        let own = settings.sign_profile.as_deref();
        let own = own.and_then(|json| serde_json::from_str(json).ok());
        let base = || own.unwrap_or_else(|| self.rules.gateway_profile.clone());
        let profile = |choice: &ProfileChoice| profile_json(&choice.apply_to(base()));
        edit.profile.apply(&mut settings.sign_profile, profile);
        (edit.default_version).apply(&mut settings.default_version, Version::to_string);
        (edit.rate_limit).apply(&mut settings.rate_limit, |rate| rate.numbers());
        row
    }

    /// Adds all applications of a file, or none. [`import`](super::import) documents the format.
    ///
    /// # Errors
    ///
    /// The file has problems, all of which are reported by line.
    pub(crate) async fn import(
        &self,
        file: &[u8],
        allows_weak_keys: bool,
        author: Author,
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
        let reserved = self.reserved.and_then(|ident| read.lines.get(&ident));
        let what = "ident: only an admin may import the console's own application";
        problems.extend(reserved.map(|line| Problem::new(*line, what)));
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
        let rows = read.apps.into_iter().map(|app| self.store.new_row(app));
        let rows = rows.collect::<Result<_, _>>()?;
        // Another process may have taken an ident just now.
        let taken = self.insert(rows, Action::ImportApp, author, now).await?;
        if taken.is_empty() {
            return Ok(imported);
        }
        let taken = taken.iter().map(|ident| Problem::taken(read.lines[ident]));
        Err(ImportError::Problems(Problems::new(taken.collect())))
    }

    /// Replaces an application's key, and returns its new state and the new key. The old one stays valid for the overlap.
    ///
    /// # Errors
    ///
    /// The overlap is too long, the key before the last rotation is still valid, or the revision is stale.
    pub(crate) async fn rotate(
        &self,
        ident: AppIdent,
        overlap: Duration,
        request: ChangeRequest,
    ) -> Result<(AppSummary, AppKey), AdministrationError> {
        if overlap > MAX_OVERLAP {
            return Err(AdministrationError::OverlapTooLong);
        }
        let now = request.at;
        let new = new_app_key().map_err(AppStoreError::from)?;
        let rotated = |row: ApplicationRow| match row.previous_until {
            Some(until) if until >= now => {
                let minutes = until.seconds_from(now).div_ceil(60);
                Err(AdministrationError::Overlapping { minutes })
            }
            _ => Ok(self.store.rotated(ident, row, &new, now.plus(overlap))?),
        };
        let app = self
            .change(ident, Action::RotateApp, &request, rotated)
            .await?;
        let ended_before = now.minus(PREVIOUS_KEY_RETENTION);
        // The new key must be returned even if this clean-up fails; the next rotation retries it.
        let _ = self.store.delete_previous_keys(ended_before).await;
        Ok((app, new))
    }

    /// Ends the overlap of the last rotation: the key before is no longer valid. Without an overlap, nothing changes.
    ///
    /// # Errors
    ///
    /// The revision is stale.
    pub(crate) async fn end_overlap(
        &self,
        ident: AppIdent,
        request: ChangeRequest,
    ) -> Result<AppSummary, AdministrationError> {
        let ended = |row| Ok(self.store.without_overlap(ident, row, request.at)?);
        self.change(ident, Action::EndOverlap, &request, ended)
            .await
    }

    /// Enables or disables an application. If it is so already, nothing changes.
    ///
    /// # Errors
    ///
    /// The revision is stale.
    pub(crate) async fn set_state(
        &self,
        ident: AppIdent,
        state: AppState,
        request: ChangeRequest,
    ) -> Result<AppSummary, AdministrationError> {
        let action = match state {
            AppState::Active => Action::EnableApp,
            AppState::Disabled => Action::DisableApp,
        };
        let set = |row| {
            let state = state.as_str().to_owned();
            Ok(ApplicationRow { state, ..row })
        };
        self.change(ident, action, &request, set).await
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
    /// The previous key is still valid: two old keys cannot be valid at once.
    #[error(
        "the previous key is still valid for {} h {} min: wait, or end its validity now (app end-overlap)",
        minutes / 60,
        minutes % 60
    )]
    Overlapping {
        /// Its remaining validity, rounded up.
        minutes: u64,
    },
    /// The application was changed after the author had seen it.
    #[error(
        "nothing was changed: the application was changed meanwhile, and has revision {present} now"
    )]
    Stale {
        /// The present revision.
        present: i64,
    },
    /// The new application's ident exists.
    #[error("the store already has an application with the ident {0}")]
    Taken(AppIdent),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] AppStoreError),
}

signpost_protocol::hide_in_debug!(Administration);

#[cfg(test)]
pub(crate) mod both_stores;

//! The applications of a store, as the [operations](crate::operations) change them: each change is written together with
//! what the audit says of it. [`import`](super::import) reads applications from a file.

mod listing;
mod write;

use std::collections::BTreeMap;

use serde::Serialize;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppIdent, sign::SignProfile, version::Version};
use signpost_proxy::{AppStoreError, StoredApps, weaknesses};
use signpost_store::tables::{
    applications,
    audit::{Action, Author},
};
use utoipa::ToSchema;

pub(crate) use self::listing::Cursor;
pub use self::listing::{Listing, MAX_PAGE};
use super::{
    import::{ImportError, Problem, Problems, read_apps},
    rules::{BrokenRule, ProfileChoice, Rules},
    summary::{AppSummary, NewApp},
};

/// Administers the applications of a store.
#[derive(Clone)]
pub struct Administration {
    /// The rows.
    pub store: StoredApps,
    /// What applications must satisfy.
    pub rules: Rules,
    /// The application that its user may not import.
    pub(crate) reserved: Option<AppIdent>,
}

/// Who changes an application, when, and which revision of it the author has seen.
#[derive(Clone, Debug)]
pub struct ChangeRequest {
    /// Who, from where, and why.
    pub author: Author,
    /// When.
    pub at: Timestamp,
    /// The change is rejected if the application has another one. `None`: of two concurrent changes the later one wins.
    pub revision: Option<i64>,
}

/// The result of an import.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportSummary {
    /// Number of applications.
    #[serde(rename = "imported")]
    pub applications: usize,
    /// Number of keys under 128 bits.
    pub weak_keys: usize,
    /// Weaknesses of the applications' own profiles, and how many have each.
    #[serde(skip)]
    pub weaknesses: BTreeMap<&'static str, usize>,
}

/// Each change reaches every running gateway within 1 s. All functions fail if the store is unavailable; functions of one
/// application also if it is unknown.
impl Administration {
    /// Creates the administration of a store.
    #[must_use]
    pub fn new(store: StoredApps, rules: Rules) -> Self {
        Self {
            store,
            rules,
            reserved: None,
        }
    }

    /// The application's own profile by this choice; `None`: it uses the gateway's.
    #[must_use]
    pub fn profile_of(&self, choice: &ProfileChoice) -> Option<SignProfile> {
        choice
            .is_any()
            .then(|| choice.apply_to(self.rules.gateway_profile.clone()))
    }

    /// Checks a number of origins, and a default version.
    pub(crate) fn check(
        &self,
        origins: usize,
        version: Option<&Version>,
    ) -> Result<(), AdministrationError> {
        self.rules.check_origins(origins)?;
        Ok(self.rules.check_version(version)?)
    }

    /// Adds an application, and returns its state.
    ///
    /// # Errors
    ///
    /// Its default version is unknown, it has too many origins, or its ident is taken.
    pub async fn create(
        &self,
        app: NewApp,
        author: Author,
    ) -> Result<AppSummary, AdministrationError> {
        self.check(app.return_to.len(), app.default_version.as_ref())?;
        let at = app.created_at;
        let new = self.new_row(app)?;
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

    /// Adds all applications of a file, or none. [`import`](super::import) documents the format.
    ///
    /// # Errors
    ///
    /// The file has problems. The error reports all of them by line.
    pub async fn import(
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
        let (parsed, mut problems) = read_apps(file, &rules, now)?;
        // Before the file's own problems are reported, so that all are reported at once.
        let idents: Vec<AppIdent> = parsed.apps.iter().map(|app| app.ident).collect();
        let taken = applications::taken(self.store.database(), &idents).await;
        let taken = taken.map_err(AppStoreError::from)?;
        problems.extend(
            taken
                .iter()
                .map(|ident| Problem::taken(parsed.lines[ident])),
        );
        let reserved = self.reserved.and_then(|ident| parsed.lines.get(&ident));
        let what = "ident: only an admin may import the console's own application";
        problems.extend(reserved.map(|line| Problem::new(*line, what)));
        if !problems.is_empty() {
            return Err(ImportError::Problems(Problems::new(problems)));
        }
        let mut imported = ImportSummary {
            applications: parsed.apps.len(),
            weak_keys: 0,
            weaknesses: BTreeMap::new(),
        };
        for app in &parsed.apps {
            imported.weak_keys += usize::from(app.key.check_strength().is_err());
            for weakness in app.profile.iter().flat_map(weaknesses) {
                *imported.weaknesses.entry(weakness).or_default() += 1;
            }
        }
        let rows = parsed.apps.into_iter().map(|app| self.new_row(app));
        let rows = rows.collect::<Result<_, _>>()?;
        // Another process may have taken an ident just now.
        let taken = self.insert(rows, Action::ImportApp, author, now).await?;
        if taken.is_empty() {
            return Ok(imported);
        }
        let taken = taken
            .iter()
            .map(|ident| Problem::taken(parsed.lines[ident]));
        Err(ImportError::Problems(Problems::new(taken.collect())))
    }
}

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub enum AdministrationError {
    /// The application breaks a rule.
    #[error(transparent)]
    Rule(#[from] BrokenRule),
    /// The edit is empty.
    #[error("nothing to change: give at least one setting")]
    NothingToChange,
    /// The overlap is too long.
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

//! What operators may do to applications, and by which rules: what is taken, what is refused and why.
//!
//! `signpost app` is one way to ask for it; nothing here knows of command lines. Applications from a file are
//! [`import`](super::import)'s subject.

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc, time::Duration};

use gateway_protocol::{
    app::AppIdent,
    sign::{AppKey, ReplayPolicy, SignAlgorithm, SignCover, SignProfile, TIME},
    version::Version,
};
use signpost_kit::clock::Timestamp;
pub(crate) use signpost_kit::origin::Origin;

use super::{
    import::{ImportError, Problem, Problems, read_apps},
    seal::{SealError, new_app_ident, new_app_key},
    store::{
        AppStore, AppStoreError, AppSummary, AppUpdate, Edit, ImportOutcome, NewApp, Rotated,
        Rotation, UnknownDefault,
    },
};
use crate::config::{Config, weaknesses};

/// The longest overlap of two keys: 30 days. CONTRACT 4.
pub(crate) const MAX_OVERLAP: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long a key is kept after its overlap, so that a client that still signs with it is told so (CONTRACT 3, hints).
const PREVIOUS_KEY_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The longest name, in characters: it stands on a page and in listings.
const MAX_NAME_LENGTH: usize = 64;
/// Origins of one application: each login looks through them.
const MAX_ORIGINS: usize = 100;
/// Applications with an unknown default version that a warning names.
pub(crate) const MAX_NAMED_DEFAULTS: u32 = 10;

/// Administers the applications of a store.
pub(crate) struct Administration {
    store: Arc<dyn AppStore>,
    rules: Rules,
}

/// What the gateway's configuration means for its applications.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The versions that there are.
    pub versions: Vec<Version>,
    /// The sign profile of applications without one of their own.
    pub gateway_profile: SignProfile,
    /// Whether keys under 128 bits are taken.
    pub allows_weak_keys: bool,
}

/// What is said of a new application.
#[derive(Clone, Debug)]
pub(crate) struct AppDescription {
    /// What people call it.
    pub name: AppName,
    /// Origins that a login may return to.
    pub return_to: Vec<Origin>,
    /// A sign profile of its own, if anything of it is chosen.
    pub profile: ProfileChoice,
    /// The version of its requests that name none.
    pub default_version: Option<Version>,
}

/// What is to change of an application. What is not named stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct AppEdit {
    /// What people call it.
    pub name: Option<AppName>,
    /// Origins that a login may return to: all of them.
    pub return_to: Option<Vec<Origin>>,
    /// Its own sign profile: what is chosen of it, or that it has none any more.
    pub profile: Edit<ProfileChoice>,
    /// The version of its requests that name none.
    pub default_version: Edit<Version>,
}

/// A new application, or its new key: the one time that a key is told.
#[derive(Debug)]
pub(crate) struct NewKey {
    /// Whose.
    pub ident: AppIdent,
    /// The key.
    pub key: AppKey,
}

/// What an import brought.
#[derive(Debug)]
pub(crate) struct Imported {
    /// How many applications.
    pub applications: usize,
    /// How many of them have a key under 128 bits.
    pub weak_keys: usize,
    /// What is weak about profiles of their own, and how many have it.
    pub weaknesses: BTreeMap<&'static str, usize>,
}

impl Administration {
    /// Of the applications in a store.
    #[must_use]
    pub(crate) fn new(store: Arc<dyn AppStore>, rules: Rules) -> Self {
        Self { store, rules }
    }

    /// The store, for what needs no rules.
    #[must_use]
    pub(crate) const fn store(&self) -> &Arc<dyn AppStore> {
        &self.store
    }

    /// The profile that an application would have of its own, by what is chosen.
    #[must_use]
    pub(crate) fn profile_of(&self, choice: &ProfileChoice) -> Option<SignProfile> {
        choice
            .is_any()
            .then(|| choice.over(self.rules.gateway_profile.clone()))
    }

    /// Adds an application, with a new ident and key.
    ///
    /// # Errors
    ///
    /// Its default version is unknown, it has too many origins, or the store is away.
    pub(crate) async fn create(
        &self,
        described: AppDescription,
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
            name: described.name.0,
            return_to_origins: texts(described.return_to),
            default_version: described.default_version,
            created_at: now,
        };
        self.store.create(app).await?;
        Ok(NewKey { ident, key })
    }

    /// Changes an application, and gives what it is then. Of two that change the same at once, the later one's is kept.
    ///
    /// # Errors
    ///
    /// Nothing is to change, its new default version is unknown, it has too many origins, there is no such application,
    /// or the store is away.
    pub(crate) async fn update(
        &self,
        ident: AppIdent,
        edit: AppEdit,
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
            // What is not chosen stays as the application has it, so that has to be known.
            Edit::Set(choice) => {
                let own = self.summary(ident).await?.sign_profile;
                let usual = own.unwrap_or_else(|| self.rules.gateway_profile.clone());
                Edit::Set(choice.over(usual))
            }
            Edit::Keep => Edit::Keep,
            Edit::Unset => Edit::Unset,
        };
        let update = AppUpdate {
            ident,
            name: edit.name.map(|name| name.0),
            return_to_origins: edit.return_to.map(texts),
            profile,
            default_version: edit.default_version,
        };
        if !self.store.update(update).await? {
            return Err(AdministrationError::Unknown { ident });
        }
        self.summary(ident).await
    }

    /// Adds all applications of a file, or none. [`import`](super::import) says what a file looks like.
    ///
    /// # Errors
    ///
    /// The file has problems: all of them are told, by line; or the store is away.
    pub(crate) async fn import(
        &self,
        file: &[u8],
        allows_weak_keys: bool,
        now: Timestamp,
    ) -> Result<Imported, ImportError> {
        let rules = Rules {
            allows_weak_keys: self.rules.allows_weak_keys || allows_weak_keys,
            ..self.rules.clone()
        };
        let (read, mut problems) = read_apps(file, &rules, now)?;
        // Before the file's own problems are told, so that all are told at once.
        let idents: Vec<AppIdent> = read.apps.iter().map(|app| app.ident).collect();
        let taken = self.store.taken(idents).await?;
        problems.extend(taken.iter().map(|ident| Problem::taken(read.lines[ident])));
        if !problems.is_empty() {
            return Err(ImportError::Problems(Problems::new(problems)));
        }
        let mut imported = Imported {
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

    /// Gives an application a new key. The old one stays valid for the overlap.
    ///
    /// # Errors
    ///
    /// The overlap is too long, the key before the last rotation is still valid, there is no such application, or the
    /// store is away.
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
            Rotated::Done => {}
            Rotated::Unknown => return Err(AdministrationError::Unknown { ident }),
            Rotated::Overlapping { until } => {
                let minutes = until.seconds_from(now).div_ceil(60);
                return Err(AdministrationError::Overlapping { minutes });
            }
        }
        let ended_before = now.minus(PREVIOUS_KEY_RETENTION);
        // The key is rotated, and has to be told, whatever becomes of others' old ones; the next rotation tries again.
        let _ = self.store.forget_previous(ended_before).await;
        Ok(NewKey { ident, key })
    }

    /// One application.
    ///
    /// # Errors
    ///
    /// There is none of that ident, or the store is away.
    pub(crate) async fn summary(&self, ident: AppIdent) -> Result<AppSummary, AdministrationError> {
        let summary = self.store.summary(ident).await?;
        summary.ok_or(AdministrationError::Unknown { ident })
    }
}

impl Rules {
    /// By a configuration.
    #[must_use]
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            versions: config.versions.names(),
            gateway_profile: config.sign.profile.clone(),
            allows_weak_keys: config.sign.allows_weak_keys,
        }
    }

    /// Whether the gateway has that version.
    pub(super) fn check_version(&self, version: &Version) -> Result<(), AdministrationError> {
        if self.versions.contains(version) {
            return Ok(());
        }
        let known: Vec<_> = self.versions.iter().map(Version::as_str).collect();
        Err(AdministrationError::UnknownVersion {
            known: known.join(", "),
        })
    }

    pub(super) fn check_origins(&self, origins: &[Origin]) -> Result<(), AdministrationError> {
        if origins.len() > MAX_ORIGINS {
            Err(AdministrationError::TooManyOrigins)
        } else {
            Ok(())
        }
    }

    /// Whether an application may sign by a profile that was written by hand.
    pub(super) fn is_allowed(&self, profile: &SignProfile) -> bool {
        // Leaving `time` out would let anybody move an old request into the window.
        profile
            .leave_out
            .iter()
            .all(|key| !key.is_empty() && key != TIME)
    }
}

impl AppEdit {
    const fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.return_to.is_none()
            && !self.profile.is_change()
            && !self.default_version.is_change()
    }
}

/// What is chosen of a sign profile; what is not stays as usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProfileChoice {
    /// A family's way to write the string.
    pub preset: Option<SignProfile>,
    /// The hash.
    pub algorithm: Option<SignAlgorithm>,
    /// What is signed beside the parameters.
    pub cover: Option<SignCover>,
    /// Whether a request may come twice.
    pub replay: Option<ReplayPolicy>,
}

impl ProfileChoice {
    /// A preset and nothing else.
    #[must_use]
    pub(crate) fn of_preset(preset: SignProfile) -> Self {
        Self {
            preset: Some(preset),
            ..Self::default()
        }
    }

    /// Whether anything is chosen.
    #[must_use]
    pub(crate) fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// The chosen profile, starting from `usual`. A preset is a family's way to write the string; it does not undo what
    /// makes the usual profile stronger.
    #[must_use]
    pub(crate) fn over(&self, usual: SignProfile) -> SignProfile {
        let SignProfile {
            algorithm,
            cover,
            replay,
            ..
        } = usual;
        let written = self.preset.clone().unwrap_or(usual);
        SignProfile {
            algorithm: self.algorithm.unwrap_or(algorithm),
            cover: self.cover.unwrap_or(cover),
            replay: self.replay.unwrap_or(replay),
            ..written
        }
    }
}

/// What people call an application: 1 to 64 characters without control characters, none of them white space at an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppName(String);

impl FromStr for AppName {
    type Err = ParseAppNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let name = name.trim();
        let is_long = name.chars().count() > MAX_NAME_LENGTH;
        if name.is_empty() || is_long || name.chars().any(char::is_control) {
            Err(ParseAppNameError)
        } else {
            Ok(Self(name.to_owned()))
        }
    }
}

impl From<AppName> for String {
    fn from(name: AppName) -> Self {
        name.0
    }
}

/// The text is not a name.
#[derive(Debug, thiserror::Error)]
#[error("1 to 64 characters, none of them a control character")]
pub struct ParseAppNameError;

pub(super) fn texts(origins: Vec<Origin>) -> Vec<String> {
    origins
        .into_iter()
        .map(|origin| origin.to_string())
        .collect()
}

/// A warning that names applications whose default version is none that the gateway has: their requests that name no
/// version go to the default route.
#[must_use]
pub(crate) fn unknown_defaults_warning(found: &[UnknownDefault]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let named: Vec<String> = found
        .iter()
        .take(MAX_NAMED_DEFAULTS as usize)
        .map(|app| format!("{} ({})", app.ident, app.version))
        .collect();
    let more = if found.len() > named.len() {
        ", and more"
    } else {
        ""
    };
    Some(format!(
        "applications whose default version has no [versions.NAME], so that their requests go to default_version: \
         {}{more}; signpost app update IDENT --default-version NAME, or --no-default-version",
        named.join(", ")
    ))
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdministrationError {
    /// No application has that ident.
    #[error("no application has the ident {ident}")]
    Unknown {
        /// The ident.
        ident: AppIdent,
    },
    /// The default version is none that the gateway has; its requests would go elsewhere without a word.
    #[error("the default version is none of this gateway's; there are {known}")]
    UnknownVersion {
        /// Those that there are.
        known: String,
    },
    /// There are more origins than one application may have.
    #[error("an application has {MAX_ORIGINS} origins at most")]
    TooManyOrigins,
    /// Nothing was named that is to change.
    #[error("nothing to change: name at least one thing")]
    NothingToChange,
    /// Two keys may be valid for 30 days at most.
    #[error("an overlap lasts 30 days at most")]
    OverlapTooLong,
    /// Two old keys cannot be valid at once.
    #[error(
        "the key before the last rotation is valid for another {minutes} minutes: wait, or end it now with \
         --end-running-overlap"
    )]
    Overlapping {
        /// For so long.
        minutes: u64,
    },
    /// The store did not do it.
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

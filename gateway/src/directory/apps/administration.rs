//! Operators' actions on applications, and the rules that they must satisfy.
//!
//! Independent of the command line: `signpost app` is one caller. [`import`](super::import) reads applications from a
//! file.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use signpost_kit::clock::{Clock, SystemClock, Timestamp};
pub(crate) use signpost_kit::config::origin::Origin;
use signpost_protocol::{
    app::{AppIdent, shown_name},
    sign::{AppKey, ReplayPolicy, SignAlgorithm, SignCover, SignProfile, TIME},
    version::Version,
};

use super::{
    import::{ImportError, Problem, Problems, read_apps},
    seal::{SealError, new_app_ident, new_app_key},
    store::{
        AppStoreError, AppSummary, AppUpdate, Edit, ImportOutcome, NewApp, Rotation,
        RotationOutcome, UnusableDefault,
    },
    stored::StoredApps,
};

use crate::config::{Config, OwnRate, Versions, weaknesses};

/// Maximum time for which the old key stays valid after a rotation: 30 days. CONTRACT 4.
pub(crate) const MAX_OVERLAP: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Time for which an expired key is kept, so that a client that still signs with it gets a hint (CONTRACT 3).
const PREVIOUS_KEY_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Limit of a name's length in characters: pages and listings show it.
const MAX_NAME_LENGTH: usize = 64;
/// Limit of origins per application: each login searches them.
const MAX_ORIGINS: usize = 100;
/// Limit of applications that a warning about their default versions names.
pub(crate) const MAX_NAMED_DEFAULTS: usize = 10;

/// Administers the applications of a store.
pub(crate) struct Administration {
    store: StoredApps,
    rules: Rules,
}

/// The configuration's rules for applications.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The gateway's versions.
    pub versions: Vec<Version>,
    /// The sign profile of applications without their own.
    pub gateway_profile: SignProfile,
    /// Whether keys under 128 bits are accepted.
    pub allows_weak_keys: bool,
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
            name: described.name.0,
            return_to_origins: texts(described.return_to),
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
            name: edit.name.map(|name| name.0),
            return_to_origins: edit.return_to.map(texts),
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

impl Rules {
    /// The rules of a configuration.
    #[must_use]
    pub(crate) fn from_config(config: &Config) -> Self {
        Self {
            versions: config.versions.names_in_service(SystemClock.now()),
            gateway_profile: config.sign.profile.clone(),
            allows_weak_keys: config.sign.allows_weak_keys,
        }
    }

    /// Checks that the gateway has this version.
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

    /// Whether an imported profile is allowed.
    pub(super) fn is_allowed(&self, profile: &SignProfile) -> bool {
        // If `time` were left out, an old request could be moved into the window.
        profile
            .leave_out
            .iter()
            .all(|key| !key.is_empty() && key != TIME)
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

/// Settings of a sign profile; `None` keeps the base profile's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProfileChoice {
    /// How the canonical string is written: one of the presets.
    pub preset: Option<SignProfile>,
    /// The hash algorithm.
    pub algorithm: Option<SignAlgorithm>,
    /// Which parts of a request are signed.
    pub cover: Option<SignCover>,
    /// Whether a repeated request is accepted.
    pub replay: Option<ReplayPolicy>,
}

impl ProfileChoice {
    /// A preset and nothing else.
    #[must_use]
    pub(crate) fn from_preset(preset: SignProfile) -> Self {
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

    /// Applies the choice to `base`. A preset only changes how the canonical string is written; it keeps the settings
    /// that make the base profile stronger.
    #[must_use]
    pub(crate) fn apply_to(&self, base: SignProfile) -> SignProfile {
        let SignProfile {
            algorithm,
            cover,
            replay,
            ..
        } = base;
        let layout = self.preset.clone().unwrap_or(base);
        SignProfile {
            algorithm: self.algorithm.unwrap_or(algorithm),
            cover: self.cover.unwrap_or(cover),
            replay: self.replay.unwrap_or(replay),
            ..layout
        }
    }
}

/// An application's display name: 1 to 64 characters that can be seen, no white space at either end.
///
/// Unicode's control and format characters, and its line separators, would make one name look like another, or reverse
/// the text around it on a login page. That excludes the joiners of some emoji and scripts, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppName(String);

impl FromStr for AppName {
    type Err = ParseAppNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let name = shown_name(name, MAX_NAME_LENGTH).ok_or(ParseAppNameError)?;
        Ok(Self(name.to_owned()))
    }
}

impl From<AppName> for String {
    fn from(name: AppName) -> Self {
        name.0
    }
}

/// The text is not a name.
#[derive(Debug, thiserror::Error)]
#[error("1 to 64 characters, none of them a control or format character")]
pub struct ParseAppNameError;

pub(super) fn texts(origins: Vec<Origin>) -> Vec<String> {
    origins
        .into_iter()
        .map(|origin| origin.to_string())
        .collect()
}

/// Warnings that name applications whose default version is not in service: unknown, or retired.
#[must_use]
pub(crate) fn default_version_warnings(
    found: &[UnusableDefault],
    versions: &Versions,
) -> Vec<String> {
    let is_known = |app: &&UnusableDefault| versions.named(app.version.as_bytes()).is_some();
    let (retired, unknown): (Vec<_>, Vec<_>) = found.iter().partition(is_known);
    let warnings = [
        (
            unknown,
            "has no [versions.NAME], so their requests go to default_version",
        ),
        (
            retired,
            "is retired, so their requests without a version get 410 version_retired",
        ),
    ];
    let warning = |(apps, why): (Vec<&UnusableDefault>, &str)| {
        let named = (!apps.is_empty()).then(|| named(&apps))?;
        Some(format!(
            "applications whose default version {why}: {named}; to change it: signpost app update IDENT \
             --default-version NAME, or --no-default-version"
        ))
    };
    warnings.into_iter().filter_map(warning).collect()
}

/// The first applications, with their default versions.
fn named(found: &[&UnusableDefault]) -> String {
    let named: Vec<String> = found
        .iter()
        .take(MAX_NAMED_DEFAULTS)
        .map(|app| format!("{} ({})", app.ident, app.version))
        .collect();
    let more = if found.len() > named.len() {
        ", and more"
    } else {
        ""
    };
    format!("{}{more}", named.join(", "))
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
    /// The gateway does not have the default version: requests would silently go to another one. Or it is retired: they
    /// would get 410.
    #[error("unknown or retired default version; allowed: {known}")]
    UnknownVersion {
        /// The gateway's versions.
        known: String,
    },
    /// More than [`MAX_ORIGINS`] origins.
    #[error("too many origins; an application may have {MAX_ORIGINS}")]
    TooManyOrigins,
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

//! The rules that applications must satisfy, whether an operator describes one or a file has many.

use std::str::FromStr;

use signpost_kit::clock::{Clock, SystemClock};
pub(crate) use signpost_kit::config::origin::Origin;
use signpost_protocol::{
    app::shown_name,
    sign::{ReplayPolicy, SignAlgorithm, SignCover, SignProfile, TIME},
    version::Version,
};

use crate::config::Config;

/// Limit of a name's length in characters: pages and listings show it.
const MAX_NAME_LENGTH: usize = 64;
/// Limit of origins per application: each login searches them.
const MAX_ORIGINS: usize = 100;
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
    pub(super) fn check_version(&self, version: &Version) -> Result<(), BrokenRule> {
        if self.versions.contains(version) {
            return Ok(());
        }
        let known: Vec<_> = self.versions.iter().map(Version::as_str).collect();
        Err(BrokenRule::UnknownVersion {
            known: known.join(", "),
        })
    }

    pub(super) fn check_origins(&self, origins: &[Origin]) -> Result<(), BrokenRule> {
        if origins.len() > MAX_ORIGINS {
            Err(BrokenRule::TooManyOrigins)
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

/// Limit of a reason's length in characters.
const MAX_REASON_LENGTH: usize = 200;

/// Why an operator changes something: 1 to 200 characters that can be seen, as in a name.
#[derive(Clone, Debug)]
pub(crate) struct Reason(String);

impl FromStr for Reason {
    type Err = ParseReasonError;

    fn from_str(reason: &str) -> Result<Self, Self::Err> {
        let reason = shown_name(reason, MAX_REASON_LENGTH).ok_or(ParseReasonError)?;
        Ok(Self(reason.to_owned()))
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.0
    }
}

/// The text is not a reason.
#[derive(Debug, thiserror::Error)]
#[error("1 to {MAX_REASON_LENGTH} characters, none of them a control or format character")]
pub(crate) struct ParseReasonError;

/// The text is not a name.
#[derive(Debug, thiserror::Error)]
#[error("1 to 64 characters, none of them a control or format character")]
pub struct ParseAppNameError;

/// A rule that an application breaks.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenRule {
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
}

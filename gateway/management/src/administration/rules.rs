//! The rules that applications must satisfy, whether an operator describes one or a file has many.

use std::{fmt, str::FromStr};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use serde::{Deserialize, Deserializer, de, de::DeserializeOwned};
use signpost_kit::clock::{Clock, SystemClock, Timestamp};
pub use signpost_kit::config::origin::Origin;
use signpost_protocol::{
    app::shown_name,
    sign::{ReplayPolicy, SignAlgorithm, SignCarrier, SignCover, SignProfile, TIME},
    version::Version,
};

use utoipa::ToSchema;

use signpost_proxy::Config;

/// Limit of a name's length in characters: pages and listings show it.
const MAX_NAME_LENGTH: usize = 64;
/// Limit of origins per application: each login searches them.
const MAX_ORIGINS: usize = 100;
/// The configuration's rules for applications.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The gateway's versions that are not retired.
    pub versions: Vec<Version>,
    /// All of its versions.
    pub configured: Vec<Version>,
    /// The sign profile of applications without their own.
    pub gateway_profile: SignProfile,
    /// Whether keys under 128 bits are accepted.
    pub allows_weak_keys: bool,
}

impl Rules {
    /// The rules of a configuration.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        Self {
            versions: config.versions.names_in_service(SystemClock.now()),
            configured: config.versions.names(),
            gateway_profile: config.sign.profile.clone(),
            allows_weak_keys: config.sign.allows_weak_keys,
        }
    }

    /// Checks that the gateway has this version.
    pub(crate) fn check_version(&self, version: Option<&Version>) -> Result<(), BrokenRule> {
        if version.is_none_or(|version| self.versions.contains(version)) {
            return Ok(());
        }
        let known: Vec<_> = self.versions.iter().map(Version::as_str).collect();
        Err(BrokenRule::UnknownVersion {
            known: known.join(", "),
        })
    }

    /// Checks that the gateway has a version whose use is extended, retired or not, and that this has an effect.
    pub(crate) fn check_extension(
        &self,
        version: &Version,
        until: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), BrokenRule> {
        let allowed = if !self.configured.contains(version) {
            let known: Vec<_> = self.configured.iter().map(Version::as_str).collect();
            format!("one of {}", known.join(", "))
        } else if until.is_some_and(|until| until <= now) {
            "a time in the future, for example v1=2099-03-01; v1=none ends an extension".to_owned()
        } else {
            return Ok(());
        };
        Err(BrokenRule::Extension { allowed })
    }

    /// Checks a number of origins.
    pub(crate) const fn check_origins(&self, number: usize) -> Result<(), BrokenRule> {
        if number > MAX_ORIGINS {
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

/// Settings of a sign profile of its own; those that are absent stay the gateway's, or as they are.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ProfileInput)]
pub struct ProfileChoice {
    /// How the canonical string is written: plain, decoded, bilibili, alipay, wechat or top.
    #[arg(long, value_parser = preset())]
    #[serde(default, deserialize_with = "given_preset")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub preset: Option<SignProfile>,
    /// The hash algorithm, md5 or hmac-sha256; a preset does not change it.
    #[arg(long, value_parser = word::<SignAlgorithm, 2>(["md5", "hmac-sha256"]))]
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub algorithm: Option<SignAlgorithm>,
    /// What is signed: the parameters, or the request, which is also method and path; a preset does not change it.
    #[arg(long, value_parser = word::<SignCover, 2>(["parameters", "request"]))]
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub cover: Option<SignCover>,
    /// Where the signature is: parameters, headers, or both, as each request has it; headers sign bodies, too.
    #[arg(long, value_parser = word::<SignCarrier, 3>(SignCarrier::ALL.map(|(word, _)| word)))]
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub carrier: Option<SignCarrier>,
    /// Whether the gateway accepts a repeated request, allow or reject; does not change the signature.
    #[arg(long, value_parser = word::<ReplayPolicy, 2>(["allow", "reject"]))]
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub replay: Option<ReplayPolicy>,
}

/// Begins the error of a value: it tells it from an error of the form.
pub(crate) const ALLOWED: &str = "allowed: ";

/// The error of a value that is not what `allowed` describes.
pub(crate) fn not_allowed<E: de::Error>(allowed: impl fmt::Display) -> E {
    E::custom(format_args!("{ALLOWED}{allowed}"))
}

/// Reads a member that may be absent; null is what its type makes of it, or refused.
pub fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn given_preset<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SignProfile>, D::Error> {
    let preset = SignProfile::preset(&String::deserialize(deserializer)?);
    let unknown = || not_allowed(SignProfile::PRESETS.join(", "));
    preset.map(Some).ok_or_else(unknown)
}

fn preset() -> impl TypedValueParser<Value = SignProfile> {
    PossibleValuesParser::new(SignProfile::PRESETS)
        .try_map(|name| SignProfile::preset(&name).ok_or("no such preset"))
}

/// Reads one of these words, as in a sign profile's file.
fn word<T, const N: usize>(words: [&'static str; N]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| serde_json::from_value::<T>(word.into()))
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
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// Applies the choice to `base`. A preset only changes how the canonical string is written; it keeps the settings
    /// that make the base profile stronger.
    #[must_use]
    pub fn apply_to(&self, base: SignProfile) -> SignProfile {
        let carrier = self.carrier.unwrap_or(base.carrier);
        // A convention of its own, which no client is bound to sign by the weak hash.
        let algorithm = match (carrier, base.carrier) {
            (SignCarrier::Headers, SignCarrier::Parameters | SignCarrier::Both) => {
                SignAlgorithm::HmacSha256
            }
            _ => base.algorithm,
        };
        SignProfile {
            algorithm: self.algorithm.unwrap_or(algorithm),
            carrier,
            cover: self.cover.unwrap_or(base.cover),
            replay: self.replay.unwrap_or(base.replay),
            ..self.preset.clone().unwrap_or(base)
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
pub struct Reason(String);

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
pub struct ParseReasonError;

/// The text is not a name.
#[derive(Debug, thiserror::Error)]
#[error("1 to 64 characters, none of them a control or format character")]
pub struct ParseAppNameError;

/// A rule that an application breaks.
#[derive(Debug, thiserror::Error)]
pub enum BrokenRule {
    /// The gateway does not have the default version: requests would silently go to another one. Or it is retired: they
    /// would get 410.
    #[error("unknown or retired default version; allowed: {known}")]
    UnknownVersion {
        /// The gateway's versions.
        known: String,
    },
    /// An extension of a version that the gateway does not have, or that is over already.
    #[error("extend: allowed: {allowed}")]
    Extension {
        /// What is.
        allowed: String,
    },
    /// More than [`MAX_ORIGINS`] origins.
    #[error("too many origins; an application may have {MAX_ORIGINS}")]
    TooManyOrigins,
}

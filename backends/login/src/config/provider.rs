//! The providers that users log in with. CONTRACT 8.

mod label;
mod preset;
mod settings;

use std::{fmt, str::FromStr};

use signpost_kit::config::{Invalid, Read, Section};
use signpost_protocol::language::Language;

pub use self::{
    label::Label,
    preset::ClientAuth,
    settings::{OAuthSettings, PassedOn, Protocol, ProviderConfig},
};

const NAME: &str = "a name of 1 to 32 characters of a-z, 0-9, _ and -";

/// A provider's name in the configuration: `[a-z0-9_-]{1,32}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderName(String);

impl ProviderName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProviderName {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        let is_valid = (1..=32).contains(&name.len()) && name.bytes().all(is_allowed);
        is_valid.then(|| Self(name.to_owned())).ok_or(Invalid)
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// All configured providers, at least one.
#[derive(Clone, Debug)]
pub struct Providers {
    /// Sorted by name.
    pub all: Vec<ProviderConfig>,
    /// The provider of a login that names none: the configured default, or the only provider.
    pub default: Option<ProviderName>,
}

impl Providers {
    /// Reads `default_provider` and `[providers]`.
    pub(super) fn read(root: &mut Section<'_>) -> Read<Self> {
        let default: Read<Option<ProviderName>> = root.optional("default_provider", NAME);
        let all = root.sections("providers", ProviderConfig::read)?;
        if all.is_empty() {
            return Err(root.missing("providers", "at least one section [providers.NAME]"));
        }
        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        let names_valid = check_names(root, &names);
        let default = default?;
        if let Some(default) = &default
            && !names.contains(&default.as_str())
        {
            let unknown = format!("\"{default}\"");
            return Err(root.problem("default_provider", &unknown, &quoted(&names)));
        }
        names_valid?;
        let all: Option<Vec<ProviderConfig>> =
            all.into_iter().map(|(_, provider)| provider).collect();
        let all = all.ok_or(Invalid)?;
        let default = match &*all {
            [only] => Some(only.name.clone()),
            _ => default,
        };
        Ok(Self { all, default })
    }

    /// Returns warnings about providers that can get each other's codes.
    pub(super) fn shared_callbacks(&self) -> impl Iterator<Item = String> {
        let is_one_of_several = |_: &&ProviderConfig| self.all.len() > 1;
        let shared = self.all.iter().filter(is_one_of_several);
        let shared = shared.filter(|provider| !provider.own_callback);
        shared.map(|provider| {
            let name = &provider.name;
            format!(
                "providers.{name}: with several providers, one that is taken over could get the codes of the others \
                 (RFC 9700 section 4.4); register PUBLIC_URL/login?provider={name} as its callback, and set \
                 own_callback = true"
            )
        })
    }

    /// Returns warnings about providers that users cannot tell apart on the page to choose one.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let is_alike = |provider: &ProviderConfig, other: &ProviderConfig| {
            let (label, others) = (&provider.label, &other.label);
            let is_same = |language| label.in_language(language) == others.in_language(language);
            provider.name < other.name && Language::ALL.into_iter().any(is_same)
        };
        // Without a default provider, users choose.
        let all: &[_] = if self.default.is_none() {
            &self.all
        } else {
            &[]
        };
        let pairs = all
            .iter()
            .flat_map(|provider| all.iter().map(move |other| (provider, other)));
        let alike = pairs.filter(move |(provider, other)| is_alike(provider, other));
        alike.map(|(ProviderConfig { name, .. }, other)| {
            let other = &other.name;
            format!(
                "providers.{name} and providers.{other} have the same label: users cannot tell them apart; give one \
                 a label of its own"
            )
        })
    }
}

fn check_names(root: &Section<'_>, names: &[&str]) -> Read<()> {
    let is_invalid = |name: &&&str| name.parse::<ProviderName>().is_err();
    let mut valid = Ok(());
    for name in names.iter().filter(is_invalid) {
        valid = Err(root.problem("providers", &format!("[providers.{name}]"), NAME));
    }
    valid
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

//! The providers that people log in through. Providers differ in data only. CONTRACT 8.

use std::{collections::BTreeMap, fmt, str::FromStr};

use url::{Host, Url};

use super::{
    SecretText,
    problems::Problems,
    raw::{RawProvider, RawProviderKind},
};

/// The client secret of the sandbox provider, as everybody can read it in its source: by it the sandbox is known.
const SANDBOX_SECRET: &str = "sandbox-only-secret";

const PATH: &str = "a path that begins with /";
const BASE: &str = "an http or https address, \"https://provider.example\" say";

/// A provider's name in the configuration: `[a-z0-9_-]{1,32}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProviderName(String);

impl ProviderName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ProviderName {
    type Err = ParseProviderNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_allowed = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
        };
        if (1..=32).contains(&name.len()) && name.bytes().all(is_allowed) {
            Ok(Self(name.to_owned()))
        } else {
            Err(ParseProviderNameError)
        }
    }
}

impl fmt::Display for ProviderName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The name is not one that a provider can have.
#[derive(Debug, thiserror::Error)]
#[error("1 to 32 lower-case letters, digits, underscores or hyphens")]
pub struct ParseProviderNameError;

/// What providers of one kind have in common.
#[derive(Clone, Debug)]
pub struct ProviderKind {
    /// The kind's name: an account's `type`.
    pub name: String,
    /// Below `auth_url`: where browsers are sent.
    pub authorize_path: String,
    /// Below `auth_url`: where codes are exchanged.
    pub token_path: String,
    /// Below `api_url`: who the person is.
    pub user_path: String,
    /// The field of that answer which identifies the person for good.
    pub id_field: String,
    /// Whether PKCE is used with this kind unless a provider says otherwise.
    pub pkce: bool,
}

impl ProviderKind {
    /// Bitbucket Cloud: <https://developer.atlassian.com/cloud/bitbucket/oauth-2/>. It ignores PKCE.
    fn bitbucket() -> Self {
        Self {
            name: "bitbucket".to_owned(),
            authorize_path: "/site/oauth2/authorize".to_owned(),
            token_path: "/site/oauth2/access_token".to_owned(),
            user_path: "/2.0/user".to_owned(),
            id_field: "uuid".to_owned(),
            pkce: false,
        }
    }

    fn read(name: &str, raw: RawProviderKind, problems: &mut Problems) -> Self {
        let key = |field: &str| format!("provider_kinds.{name}.{field}");
        if name.parse::<ProviderName>().is_err() {
            problems.add(
                &format!("provider_kinds.{name}"),
                "this name",
                "1 to 32 of a-z, 0-9, _ and -",
            );
        }
        let mut path = |field: &str, given: Option<String>| {
            let given = given.unwrap_or_default();
            if !given.starts_with('/') || given.contains(['?', '#']) {
                problems.add(&key(field), &format!("{given:?}"), PATH);
            }
            given
        };
        let authorize_path = path("authorize_path", raw.authorize_path);
        let token_path = path("token_path", raw.token_path);
        let user_path = path("user_path", raw.user_path);
        let id_field = raw.id_field.unwrap_or_default();
        if id_field.is_empty() {
            problems.add(
                &key("id_field"),
                "nothing",
                "the name of a field of the profile",
            );
        }
        Self {
            name: name.to_owned(),
            authorize_path,
            token_path,
            user_path,
            id_field,
            pkce: raw.pkce.unwrap_or(true),
        }
    }
}

/// One configured provider.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Its name here.
    pub name: ProviderName,
    /// What it has in common with others.
    pub kind: ProviderKind,
    /// Where browsers are sent.
    pub authorize_url: Url,
    /// Where codes are exchanged.
    pub token_url: Url,
    /// Who the person is.
    pub user_url: Url,
    /// Our name there.
    pub client_id: String,
    /// Our secret there.
    pub client_secret: SecretText,
    /// Whether `redirect_uri` is sent, in both calls; else in neither. Default yes.
    pub sends_redirect_uri: bool,
    /// Whether PKCE (S256) is used; default as the kind.
    pub pkce: bool,
    /// What is sent to the provider, and comes from it, can be read on the way: an http address beyond this machine.
    is_readable: bool,
    /// What `iss` must be when it is sent (RFC 9207); default the origin of `auth_url`.
    pub issuer: String,
}

impl ProviderConfig {
    fn read(
        name: &str,
        raw: RawProvider,
        kinds: &BTreeMap<String, ProviderKind>,
        problems: &mut Problems,
    ) -> Option<Self> {
        let key = |field: &str| format!("providers.{name}.{field}");
        let kind_name = raw.kind.unwrap_or_default();
        let kind = kinds.get(&kind_name);
        if kind.is_none() {
            let known: Vec<&str> = kinds.keys().map(String::as_str).collect();
            problems.add(&key("kind"), &format!("{kind_name:?}"), &known.join(", "));
        }
        let own_name = problems.parse(
            &format!("providers.{name}"),
            name,
            "a name of 1 to 32 of a-z, 0-9, _ and -",
        );
        let auth_url = base_url(&key("auth_url"), raw.auth_url, problems);
        let api_url = base_url(&key("api_url"), raw.api_url, problems);
        let client_id = raw.client_id.filter(|id| !id.is_empty());
        if client_id.is_none() {
            problems.add(
                &key("client_id"),
                "nothing",
                "the id that the provider gave",
            );
        }
        let secret_source = raw.client_secret.unwrap_or_default();
        let client_secret = SecretText::read(&key("client_secret"), &secret_source, problems);
        let (kind, auth_url, api_url) = (kind?, auth_url?, api_url?);
        let is_sandbox = client_secret.as_ref().is_some_and(is_sandboxs);
        let addresses = [("auth_url", &auth_url), ("api_url", &api_url)];
        for (field, url) in addresses {
            if is_sandbox && !is_loopback(url) && !raw.allow_sandbox.unwrap_or(false) {
                problems.add(
                    &key(field),
                    "the sandbox provider, which lets everybody in, on another machine",
                    "a loopback address, or a name below localhost; or allow_sandbox = true beside it",
                );
            }
        }
        let is_readable = |url: &Url| url.scheme() == "http" && !is_loopback(url);
        Some(Self {
            is_readable: addresses.into_iter().any(|(_, url)| is_readable(url)),
            name: own_name?,
            authorize_url: below(&auth_url, &kind.authorize_path),
            token_url: below(&auth_url, &kind.token_path),
            user_url: below(&api_url, &kind.user_path),
            client_id: client_id?,
            client_secret: client_secret?,
            sends_redirect_uri: raw.redirect_uri.unwrap_or(true),
            pkce: raw.pkce.unwrap_or(kind.pkce),
            issuer: raw
                .issuer
                .unwrap_or_else(|| auth_url.origin().ascii_serialization()),
            kind: kind.clone(),
        })
    }
}

impl ProviderConfig {
    /// What a careful operator should know of it.
    fn warnings(&self) -> impl Iterator<Item = String> + use<> {
        let section = format!("providers.{}", self.name);
        let clear_text = self.is_readable.then(|| {
            format!(
                "{section}: auth_url or api_url is http and not on this machine: the client secret, codes and tokens can \
                 be read on the way, and answers changed; prefer https"
            )
        });
        let sandbox = is_sandboxs(&self.client_secret).then(|| {
            format!(
                "{section}: client_secret is the sandbox provider's, which everybody knows, and the sandbox lets \
                 everybody in as anybody: for trying things out only"
            )
        });
        [clear_text, sandbox].into_iter().flatten()
    }
}

fn is_sandboxs(secret: &SecretText) -> bool {
    secret.expose() == SANDBOX_SECRET
}

/// Whether an address is on this machine: a loopback address, or a name that is one (RFC 6761, section 6.3).
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

/// All configured providers, at least one.
#[derive(Clone, Debug)]
pub struct Providers {
    all: Vec<ProviderConfig>,
    default: Option<ProviderName>,
}

impl Providers {
    /// All of them, by name.
    pub fn iter(&self) -> std::slice::Iter<'_, ProviderConfig> {
        self.all.iter()
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.all.iter().flat_map(ProviderConfig::warnings)
    }

    /// The one for a login that names none: the configured default, or the only one there is.
    #[must_use]
    pub fn default_name(&self) -> Option<&ProviderName> {
        self.default.as_ref()
    }

    pub(super) fn read(
        raw: BTreeMap<String, RawProvider>,
        raw_kinds: BTreeMap<String, RawProviderKind>,
        default: Option<String>,
        problems: &mut Problems,
    ) -> Option<Self> {
        let mut kinds = BTreeMap::from([("bitbucket".to_owned(), ProviderKind::bitbucket())]);
        for (name, raw) in raw_kinds {
            let kind = ProviderKind::read(&name, raw, problems);
            kinds.insert(name, kind);
        }
        if raw.is_empty() {
            problems.add("providers", "none", "at least one section [providers.NAME]");
        }
        let names: Vec<String> = raw.keys().cloned().collect();
        let all: Vec<ProviderConfig> = raw
            .into_iter()
            .filter_map(|(name, raw)| ProviderConfig::read(&name, raw, &kinds, problems))
            .collect();
        if let Some(default) = default.as_ref().filter(|default| !names.contains(default)) {
            problems.add(
                "default_provider",
                &format!("{default:?}"),
                &names.join(", "),
            );
        }
        let only = || {
            all.first()
                .filter(|_| all.len() == 1)
                .map(|one| one.name.clone())
        };
        let default = default.and_then(|name| name.parse().ok()).or_else(only);
        Some(Self { all, default })
    }
}

fn base_url(key: &str, given: Option<String>, problems: &mut Problems) -> Option<Url> {
    let given = given.unwrap_or_default();
    let is_base = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.query().is_none()
            && url.fragment().is_none()
    };
    let url = Url::parse(&given).ok().filter(is_base);
    if url.is_none() {
        problems.add(key, &format!("{given:?}"), BASE);
    }
    url
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

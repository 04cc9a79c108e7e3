//! The providers that users log in with. They differ in configuration only. CONTRACT 8.

use std::{collections::BTreeMap, fmt, str::FromStr};

use signpost_kit::{
    config::{Invalid, Read, Section},
    read_all,
    secret::Secret,
};
use url::{Host, Url};

/// The public client secret of the sandbox provider. The sandbox is recognised by it.
const SANDBOX_SECRET: &str = "sandbox-only-secret";

const PATH: &str = "a path that begins with /";
const BASE: &str = "an http or https URL, for example \"https://provider.example\"";
const NAME: &str = "a name of 1 to 32 characters of a-z, 0-9, _ and -";
const TEXT: &str = "a non-empty string";

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

/// Settings shared by providers of one kind.
#[derive(Clone, Debug)]
pub struct ProviderKind {
    /// The kind's name: an account's `type`.
    pub name: String,
    /// Path of the authorization endpoint, below `auth_url`.
    pub authorize_path: String,
    /// Path of the token endpoint, below `auth_url`.
    pub token_path: String,
    /// Path of the user's profile, below `api_url`.
    pub user_path: String,
    /// The profile's field with the user's permanent identifier.
    pub id_field: String,
    /// The profile's field with the name to show, if there is one.
    pub display_name_field: Option<String>,
    /// Default of a provider's `pkce`.
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
            display_name_field: Some("display_name".to_owned()),
            pkce: false,
        }
    }

    fn read(name: &str, section: &mut Section<'_>) -> Read<Self> {
        let is_path = |path: &str| path.starts_with('/') && !path.contains(['?', '#']);
        let mut path =
            |key| section.required_by(key, PATH, |path| is_path(path).then(|| path.to_owned()));
        let field = "the name of a field of the profile";
        read_all!(Self {
            name: Ok(name.to_owned()),
            authorize_path: path("authorize_path"),
            token_path: path("token_path"),
            user_path: path("user_path"),
            id_field: section.required_by("id_field", field, non_empty),
            display_name_field: section.optional_by("display_name_field", field, non_empty),
            pkce: section.flag("pkce", true),
        })
    }
}

/// One configured provider.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Its name in the configuration.
    pub name: ProviderName,
    /// The settings of its kind.
    pub kind: ProviderKind,
    /// The authorization endpoint, where browsers are sent.
    pub authorize_url: Url,
    /// The token endpoint, where codes are exchanged.
    pub token_url: Url,
    /// The endpoint of the user's profile.
    pub user_url: Url,
    /// OAuth's `client_id`.
    pub client_id: String,
    /// OAuth's `client_secret`.
    pub client_secret: Secret,
    /// Whether `redirect_uri` is sent in both calls; if not, in neither. Default true.
    pub sends_redirect_uri: bool,
    /// Whether PKCE (S256) is used; default: the kind's `pkce`.
    pub pkce: bool,
    /// The required value of `iss`, if the provider sends it (RFC 9207); default: the origin of `auth_url`.
    pub issuer: String,
}

impl ProviderConfig {
    /// Reads a provider of one of `kinds`.
    fn read(name: &str, kinds: &Kinds, section: &mut Section<'_>) -> Read<Self> {
        let names: Vec<_> = kinds.keys().map(String::as_str).collect();
        let kind = section.required_by("kind", &quoted(&names), |name| kinds.get(name).cloned());
        let auth_url = section.required_by("auth_url", BASE, base_url);
        let api_url = section.required_by("api_url", BASE, base_url);
        let id = "the id that the provider issued";
        let client_id = section.required_by("client_id", id, non_empty);
        let client_secret = section.required_secret("client_secret");
        let allows_sandbox = section.flag("allow_sandbox", false);
        let is_sandbox = client_secret.as_ref().is_ok_and(is_sandbox_secret);
        if is_sandbox {
            section.note_public("client_secret");
        }
        let is_local_only = is_sandbox && allows_sandbox != Ok(true);
        let mut sandbox_address = Ok(());
        for (key, url) in [("auth_url", &auth_url), ("api_url", &api_url)] {
            if is_local_only && url.as_ref().is_ok_and(|url| !is_loopback(url)) {
                sandbox_address = Err(section.problem(
                    key,
                    "the sandbox provider, which lets anyone log in, on another machine",
                    "a loopback address, a name below localhost, or allow_sandbox = true",
                ));
            }
        }
        let sends_redirect_uri = section.flag("redirect_uri", true);
        let pkce = section.flag("pkce", kind.as_ref().is_ok_and(|kind| kind.pkce));
        let issuer = section.optional_by("issuer", TEXT, non_empty);
        if issuer == Ok(None) {
            section.set("issuer", "the origin of auth_url");
        }
        let (kind, auth_url, api_url) = (kind?, auth_url?, api_url?);
        let origin = || auth_url.origin().ascii_serialization();
        let issuer = issuer.map(|issuer| issuer.unwrap_or_else(origin));
        sandbox_address?;
        read_all!(Self {
            // `Providers` reports an invalid name.
            name: name.parse(),
            authorize_url: Ok(below(&auth_url, &kind.authorize_path)),
            token_url: Ok(below(&auth_url, &kind.token_path)),
            user_url: Ok(below(&api_url, &kind.user_path)),
            client_id,
            client_secret,
            sends_redirect_uri,
            pkce,
            issuer,
            kind: Ok(kind),
        })
    }

    /// Returns warnings about insecure settings.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> + use<> {
        let name = self.name.clone();
        let is_exposed = |url: &Url| url.scheme() == "http" && !is_loopback(url);
        let weaknesses = [
            (
                is_exposed(&self.token_url) || is_exposed(&self.user_url),
                "auth_url or api_url is http and not on this machine: the client secret, codes, tokens and responses can \
                 be read and changed in transit; use https",
            ),
            (
                is_sandbox_secret(&self.client_secret),
                "client_secret is the sandbox provider's public secret: anyone can log in as any user; for development \
                 only",
            ),
        ];
        let weaknesses = weaknesses.into_iter().filter(|(applies, _)| *applies);
        weaknesses.map(move |(_, weakness)| format!("providers.{name}: {weakness}"))
    }
}

fn is_sandbox_secret(secret: &Secret) -> bool {
    secret.expose() == SANDBOX_SECRET
}

/// Whether a URL is on this machine: a loopback address, or a name below `localhost` (RFC 6761 section 6.3).
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
    /// Sorted by name.
    pub all: Vec<ProviderConfig>,
    /// The provider of a login that names none: the configured default, or the only provider.
    pub default: Option<ProviderName>,
}

impl Providers {
    /// Reads `default_provider`, `[provider_kinds]` and `[providers]`.
    pub(super) fn read(root: &mut Section<'_>) -> Read<Self> {
        let default: Read<Option<ProviderName>> = root.optional("default_provider", NAME);
        let (kinds, kinds_read) = read_kinds(root);
        let all = root.sections("providers", |name, section| {
            ProviderConfig::read(name, &kinds, section)
        })?;
        if all.is_empty() {
            return Err(root.missing("providers", "at least one section [providers.NAME]"));
        }
        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        let names_read = check_names(root, "providers", &names);
        let default = default?;
        if let Some(default) = &default
            && !names.contains(&default.as_str())
        {
            let found = format!("\"{default}\"");
            return Err(root.problem("default_provider", &found, &quoted(&names)));
        }
        kinds_read.and(names_read)?;
        let all: Option<Vec<ProviderConfig>> = all.into_iter().map(|(_, one)| one).collect();
        let all = all.ok_or(Invalid)?;
        let default = match &*all {
            [only] => Some(only.name.clone()),
            _ => default,
        };
        Ok(Self { all, default })
    }
}

/// All kinds by name: Bitbucket, and those in the file.
type Kinds = BTreeMap<String, ProviderKind>;

/// Reads `[provider_kinds]`. Returns kinds even if it is invalid, so that problems of providers are reported too.
fn read_kinds(root: &mut Section<'_>) -> (Kinds, Read<()>) {
    let mut kinds = Kinds::from([("bitbucket".to_owned(), ProviderKind::bitbucket())]);
    let Ok(own) = root.sections("provider_kinds", ProviderKind::read) else {
        return (kinds, Err(Invalid));
    };
    let names: Vec<_> = own.iter().map(|(name, _)| name.as_str()).collect();
    let names_read = check_names(root, "provider_kinds", &names);
    for (name, kind) in own {
        // An invalid kind stays known by name, so that its providers are not reported as well.
        kinds.insert(name, kind.unwrap_or_else(ProviderKind::bitbucket));
    }
    (kinds, names_read)
}

fn check_names(root: &Section<'_>, key: &str, names: &[&str]) -> Read<()> {
    let is_invalid = |name: &&&str| name.parse::<ProviderName>().is_err();
    let mut read = Ok(());
    for name in names.iter().filter(is_invalid) {
        read = Err(root.problem(key, &format!("[{key}.{name}]"), NAME));
    }
    read
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn base_url(text: &str) -> Option<Url> {
    let is_base = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.query().is_none()
            && url.fragment().is_none()
            // Credentials in a URL would appear wherever the URL does.
            && url.username().is_empty()
            && url.password().is_none()
    };
    Url::parse(text).ok().filter(is_base)
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

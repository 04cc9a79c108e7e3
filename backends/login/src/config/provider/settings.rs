//! The settings of one provider.

use signpost_kit::{
    config::{Invalid, Read, Section},
    read_all,
    secret::Secret,
};
use signpost_protocol::label_enum;
use url::{Host, Url};

use super::{
    Label, ProviderName,
    preset::{self, ClientAuth, OAuth, PRESETS, Preset},
    quoted,
};
use crate::json::FieldPath;

/// The public client secret of the sandbox provider. The sandbox is recognised by it.
const SANDBOX_SECRET: &str = "sandbox-only-secret";

const BASE: &str = "an http or https URL, for example \"https://provider.example\"";
const ENDPOINT: &str = "an http or https URL, or a path below url that begins with /";
const ISSUER: &str = "a non-empty string";
const FIELD: &str =
    "the name of a field of the user's record, with those of the objects around it: \"data.id\"";
const PROMPT: &str = "words of a-z and _, for example \"select_account\"";
const SCOPES: &str = "scopes, each a string without spaces";

/// A provider, as configured.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Its name in the configuration: an account's `type`.
    pub name: ProviderName,
    /// Its name for people.
    pub label: Label,
    /// Its kind, for example `github`.
    pub kind: &'static str,
    /// How it identifies users.
    pub protocol: Protocol,
    /// OAuth's `client_id`.
    pub client_id: String,
    /// OAuth's `client_secret`.
    pub client_secret: Secret,
    /// How the client authenticates at the token endpoint; `None`: as an OpenID provider's discovery document says.
    pub client_auth: Option<ClientAuth>,
    /// OAuth's `scope`; none is sent if there are none.
    pub scopes: Vec<String>,
    /// Whether `redirect_uri` is sent in both calls; if not, in neither. Default true.
    pub sends_redirect_uri: bool,
    /// Whether its callback names it, so that no other provider's has the same address. Default false.
    pub own_callback: bool,
    /// Whether PKCE (S256) is used. Default true.
    pub pkce: bool,
    /// The `prompt` that is sent.
    pub prompt: Option<String>,
    /// The parameters of `/login` that go on to the provider.
    pub pass_on: Vec<PassedOn>,
}

/// How a provider identifies users.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// OAuth 2.0, and a request for the user's record.
    OAuth(Box<OAuthSettings>),
    /// OpenID Connect, by this issuer.
    OpenId {
        /// The issuer, which its discovery document and ID tokens name.
        issuer: String,
    },
}

/// The settings of a provider that speaks OAuth 2.0.
#[derive(Clone, Debug)]
pub struct OAuthSettings {
    /// The authorization endpoint, where browsers are sent.
    pub authorize_url: Url,
    /// The token endpoint, where codes are exchanged.
    pub token_url: Url,
    /// The endpoint of the user's record.
    pub user_url: Url,
    /// The record's field with the user's permanent identifier.
    pub id_field: FieldPath,
    /// The record's fields with a name to show; the first one with a text counts.
    pub display_name_fields: Vec<FieldPath>,
    /// The required value of `iss`, if the provider sends it (RFC 9207).
    pub issuer: String,
}

label_enum! {
    /// A parameter of `/login` that can go on to a provider. OpenID Connect Core 1.0 section 3.1.2.1.
    pub enum PassedOn {
        /// What the provider asks the user for.
        Prompt = "prompt",
        /// Who is expected to log in.
        LoginHint = "login_hint",
    }
}

/// The values of the keys that depend on the kind, as far as the file has them.
struct Given {
    url: Option<Url>,
    issuer: Option<String>,
    authorize_url: Option<Address>,
    token_url: Option<Address>,
    user_url: Option<Address>,
    id_field: Option<FieldPath>,
    display_name_field: Option<FieldPath>,
}

impl Given {
    fn read(section: &mut Section<'_>) -> Read<Self> {
        read_all!(Self {
            url: section.optional_by("url", BASE, base_url),
            issuer: section.optional_by("issuer", ISSUER, non_empty),
            authorize_url: section.optional_by("authorize_url", ENDPOINT, Address::parse),
            token_url: section.optional_by("token_url", ENDPOINT, Address::parse),
            user_url: section.optional_by("user_url", ENDPOINT, Address::parse),
            id_field: section.optional("id_field", FIELD),
            display_name_field: section.optional("display_name_field", FIELD),
        })
    }
}

impl ProviderConfig {
    pub(super) fn read(name: &str, section: &mut Section<'_>) -> Read<Self> {
        let kinds: Vec<_> = PRESETS.iter().map(|preset| preset.kind).collect();
        let preset = section.required_by("kind", &quoted(&kinds), Preset::named);
        let given = Given::read(section);
        let id = "the id that the provider issued";
        let client_id = section.required_by("client_id", id, non_empty);
        let client_secret = section.required_secret("client_secret");
        let allows_sandbox = section.flag("allow_sandbox", false);
        let is_sandbox = client_secret.as_ref().is_ok_and(is_sandbox_secret);
        if is_sandbox {
            section.note_public("client_secret");
        }
        // Its secret is public: with it, anyone who reaches the sandbox logs in as any user.
        let is_local_only = is_sandbox && allows_sandbox != Ok(true);
        let auths = ClientAuth::ALL.map(ClientAuth::as_str);
        let client_auth =
            section.optional_by("client_auth", &quoted(&auths), ClientAuth::from_word);
        let passed_on = PassedOn::ALL.map(PassedOn::as_str);
        let default = preset.map_or(&[][..], |preset| preset.scopes);
        let label = preset.ok().and_then(|preset| preset.label).unwrap_or(name);
        let scopes = section.list("scopes", default, SCOPES, scope);
        read_all!(Self {
            // `Providers` reports an invalid name.
            name: name.parse(),
            client_id,
            client_secret,
            sends_redirect_uri: section.flag("redirect_uri", true),
            own_callback: section.flag("own_callback", false),
            pkce: section.flag("pkce", true),
            prompt: section.optional_by("prompt", PROMPT, prompt_words),
            pass_on: section.list("pass_on", &[], &quoted(&passed_on), PassedOn::from_word),
            label: Label::read(section, label),
            kind: preset.map(|preset| preset.kind),
            client_auth: client_auth.and_then(|auth| Ok(auth.or(preset?.client_auth()))),
            protocol: protocol(section, preset, given, is_local_only, &scopes),
            scopes,
        })
    }

    /// The configured addresses: where secrets, codes and tokens are sent.
    fn addresses(&self) -> Vec<Url> {
        match &self.protocol {
            Protocol::OAuth(oauth) => {
                let (authorize, token) = (&oauth.authorize_url, &oauth.token_url);
                vec![authorize.clone(), token.clone(), oauth.user_url.clone()]
            }
            Protocol::OpenId { issuer } => Url::parse(issuer).into_iter().collect(),
        }
    }

    /// Returns warnings about insecure settings.
    pub(in crate::config) fn warnings(&self) -> impl Iterator<Item = String> + use<> {
        let name = self.name.clone();
        let is_exposed = |url: &Url| url.scheme() == "http" && !is_loopback(url);
        let weaknesses = [
            (
                self.addresses().iter().any(is_exposed),
                "its address is http and not on this machine: the client secret, codes, tokens and responses can be read \
                 and changed in transit; use https",
            ),
            (
                !self.pkce && matches!(self.protocol, Protocol::OAuth(_)),
                "pkce is false: a stolen code can be used in another browser; keep it, unless the provider rejects PKCE",
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

/// Reports the keys that the kind has no use for.
fn refuse_other_kinds_keys(section: &Section<'_>, preset: &Preset) -> Read<()> {
    let refuse = |keys: &[&str], allowed: &str| {
        let mut refused = Ok(());
        for key in keys.iter().filter(|key| section.has(key)) {
            let value = format!("a value, with kind = \"{}\"", preset.kind);
            refused = Err(section.problem(key, &value, allowed));
        }
        refused
    };
    let addresses = ["url", "authorize_url", "token_url", "user_url"];
    let fields = ["id_field", "display_name_field"];
    match &preset.protocol {
        preset::Protocol::OpenId(_) => refuse(
            &addresses,
            "nothing: the discovery document of the issuer has the addresses",
        )
        .and(refuse(
            &fields,
            "nothing: an OpenID provider's `sub` identifies the user, and `name` is shown",
        )),
        preset::Protocol::OAuth(oauth) if oauth.id_field.is_some() => refuse(
            &fields,
            "nothing: the kind determines it; \"oauth2\" is the kind without defaults",
        ),
        preset::Protocol::OAuth(_) => Ok(()),
    }
}

fn protocol(
    section: &Section<'_>,
    preset: Read<&Preset>,
    given: Read<Given>,
    is_local_only: bool,
    scopes: &Read<Vec<String>>,
) -> Read<Protocol> {
    let (preset, given) = (preset?, given?);
    // Fails below: until then, the other keys report their problems.
    let refused = refuse_other_kinds_keys(section, preset);
    let protocol = match &preset.protocol {
        preset::Protocol::OAuth(oauth) => oauth_settings(section, oauth, given, is_local_only)
            .map(|settings| Protocol::OAuth(Box::new(settings))),
        preset::Protocol::OpenId(default) => {
            let issuer = given.issuer.or_else(|| default.map(str::to_owned));
            openid_issuer(section, preset.kind, issuer, is_local_only)
                .map(|issuer| Protocol::OpenId { issuer })
        }
    };
    refused?;
    match (protocol?, scopes) {
        (Protocol::OpenId { .. }, Ok(scopes)) if !scopes.iter().any(|scope| scope == "openid") => {
            Err(section.problem("scopes", "no \"openid\"", "scopes with \"openid\""))
        }
        (protocol, _) => Ok(protocol),
    }
}

fn openid_issuer(
    section: &Section<'_>,
    kind: &str,
    issuer: Option<String>,
    is_local_only: bool,
) -> Read<String> {
    let is_microsoft = kind == "microsoft";
    let allowed = match is_microsoft {
        true => "\"https://login.microsoftonline.com/TENANT/v2.0\", with the id of the tenant",
        false => "the address of the OpenID provider, for example \"https://id.example\"",
    };
    let issuer = issuer.ok_or_else(|| section.missing("issuer", allowed))?;
    section.set("issuer", format!("{issuer:?}"));
    let fault = match signpost_openid::discovery_url(&issuer) {
        Err(fault) => Some(fault.to_string()),
        // The document then has a placeholder for the issuer, so that a token could be any tenant's.
        Ok(_) if is_microsoft && is_shared_tenant(&issuer) => {
            Some("which accepts accounts of every tenant".to_owned())
        }
        Ok(_) => None,
    };
    if let Some(fault) = fault {
        return Err(section.problem("issuer", &format!("{issuer:?}, {fault}"), allowed));
    }
    if is_local_only && Url::parse(&issuer).is_ok_and(|url| !is_loopback(&url)) {
        return Err(sandbox_elsewhere(section, "issuer"));
    }
    Ok(issuer)
}

/// Whether Microsoft's issuer stands for many tenants.
fn is_shared_tenant(issuer: &str) -> bool {
    let shared = ["/common/", "/organizations/", "/consumers/"];
    shared.iter().any(|tenant| issuer.contains(tenant))
}

fn oauth_settings(
    section: &Section<'_>,
    preset: &OAuth,
    given: Given,
    is_local_only: bool,
) -> Read<OAuthSettings> {
    let addresses = [given.authorize_url, given.token_url, given.user_url];
    let urls = endpoints(section, preset, given.url, addresses, is_local_only)?;
    let parse = |field: &&str| field.parse::<FieldPath>();
    let id_field = match (given.id_field, &preset.id_field) {
        (Some(field), _) => Ok(field),
        (None, Some(field)) => parse(field),
        (None, None) => Err(section.missing("id_field", FIELD)),
    };
    let display_name_fields = match given.display_name_field {
        Some(field) => Ok(vec![field]),
        None => preset.display_name_fields.iter().map(parse).collect(),
    };
    let urls: Vec<_> = urls.into_iter().collect::<Read<_>>()?;
    let [authorize_url, token_url, user_url] = urls.try_into().map_err(|_| Invalid)?;
    let issuer = given.issuer.unwrap_or_else(|| {
        let origin = authorize_url.origin().ascii_serialization();
        let issuer = format!("{origin}{}", preset.issuer_path);
        section.set("issuer", format!("{issuer:?}"));
        issuer
    });
    Ok(OAuthSettings {
        authorize_url,
        token_url,
        user_url,
        id_field: id_field?,
        display_name_fields: display_name_fields?,
        issuer,
    })
}

/// The endpoints for authorization, tokens and the user. A file that lacks several addresses gets a problem for each.
fn endpoints(
    section: &Section<'_>,
    preset: &OAuth,
    url: Option<Url>,
    [authorize, token, user]: [Option<Address>; 3],
    is_local_only: bool,
) -> Read<Vec<Read<Url>>> {
    // GitHub's API has a host of its own, and at a company's server a path.
    let own_user_url = preset.own_user_url.filter(|_| url.is_some());
    let user_url = own_user_url.or(preset.user_url);
    let endpoints = [
        ("authorize_url", authorize, preset.authorize_url),
        ("token_url", token, preset.token_url),
        ("user_url", user, user_url),
    ];
    let endpoints = endpoints
        .map(|(key, given, default)| (key, given.or_else(|| default.and_then(Address::parse))));
    let server = url.or_else(|| preset.url.and_then(base_url));
    // One problem instead of three: every path lacks the same address.
    let mut addresses = endpoints.iter().map(|(_, address)| address);
    if server.is_none() && addresses.any(|address| matches!(address, Some(Address::Path(_)))) {
        return Err(section.missing("url", BASE));
    }
    let url = |(key, address)| {
        let url = match (address, &server) {
            (Some(Address::Url(url)), _) => Ok(url),
            (Some(Address::Path(path)), Some(server)) => Ok(below(server, &path)),
            _ => Err(section.missing(key, ENDPOINT)),
        };
        if is_local_only && url.as_ref().is_ok_and(|url| !is_loopback(url)) {
            let key = if section.has(key) { key } else { "url" };
            return Err(sandbox_elsewhere(section, key));
        }
        Ok(url)
    };
    endpoints.into_iter().map(url).collect()
}

fn sandbox_elsewhere(section: &Section<'_>, key: &str) -> Invalid {
    section.problem(
        key,
        "the sandbox provider, which lets anyone log in, on another machine",
        "a loopback address, a name below localhost, or allow_sandbox = true",
    )
}

/// The address of an endpoint in the file.
enum Address {
    Url(Url),
    /// Below `url`.
    Path(String),
}

impl Address {
    fn parse(text: &str) -> Option<Self> {
        match text.starts_with('/') {
            true => (!text.contains(['?', '#'])).then(|| Self::Path(text.to_owned())),
            false => http_url(text).map(Self::Url),
        }
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

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A scope: RFC 6749 section 3.3.
fn scope(text: &str) -> Option<String> {
    let is_allowed = |byte: u8| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~');
    (!text.is_empty() && text.bytes().all(is_allowed)).then(|| text.to_owned())
}

fn prompt_words(text: &str) -> Option<String> {
    let is_word = |word: &str| {
        let is_letter = |byte| matches!(byte, b'a'..=b'z' | b'_');
        !word.is_empty() && word.bytes().all(is_letter)
    };
    text.split(' ').all(is_word).then(|| text.to_owned())
}

/// An address without user information, which would appear wherever the address does, and without a fragment.
fn http_url(text: &str) -> Option<Url> {
    let is_plain = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    };
    Url::parse(text).ok().filter(is_plain)
}

fn base_url(text: &str) -> Option<Url> {
    http_url(text).filter(|url| url.query().is_none())
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

//! `[management]`: the listener for operators, its TLS, and whether it serves the management API.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::json;
use signpost_kit::{
    config::{
        Invalid, Read, Section,
        shared_keys::{self, ManagementSettings},
    },
    server::health::HealthAddress,
};
use signpost_protocol::{app::AppIdent, label_enum};
use url::Url;

use super::listen::{ListenerSettings, Protocols, read_tls};
use crate::tls::{ClientAuth, Tls};

/// Default of `management.listen`. `conf/README.md`.
const DEFAULT_LISTEN: &str = "127.0.0.1:8081";

/// The management listener.
#[derive(Clone, Debug)]
pub struct Management {
    /// Its address, and the names under which it answers.
    pub settings: ManagementSettings,
    /// TLS; `None`: plain.
    pub tls: Option<Arc<Tls>>,
    /// Whether it serves the management API.
    pub api: bool,
    /// The console, if it serves that, too.
    pub console: Option<ConsoleSettings>,
}

/// `[management.console]`.
#[derive(Clone, Debug, Default)]
pub struct ConsoleSettings {
    /// The application by which the console logs users in; `None` if they sign in with tokens only.
    pub application: Option<AppIdent>,
    /// The name of the provider that they log in with; `None`: the only or the default one.
    pub provider: Option<String>,
    /// Who may sign in by the login service.
    pub accounts: Vec<ConsoleAccount>,
}

/// An account that may sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleAccount {
    /// The actor of what is done, in the audit.
    pub name: String,
    /// The provider's name, as the login result has it.
    pub provider: String,
    /// The provider's identifier of the user.
    pub username: String,
    /// What it may do.
    pub role: Role,
}

label_enum! {
    /// What a user of the management API may do. Each role may do what those before it may.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    #[serde(rename_all = "lowercase")]
    pub enum Role {
        /// See everything but secrets.
        Viewer = "viewer",
        /// Change applications, drain backends, reload.
        Operator = "operator",
        /// Create and revoke tokens.
        Admin = "admin",
    }
}

/// What the file may have for a role.
const ROLES: &str = "\"viewer\", \"operator\" or \"admin\"";

impl FromStr for Role {
    type Err = ParseRoleError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::from_word(word).ok_or(ParseRoleError)
    }
}

/// The text is not a role.
#[derive(Debug, thiserror::Error)]
#[error("{ROLES}")]
pub struct ParseRoleError;

impl Management {
    /// Where `/readyz` is.
    pub const fn health_address(&self) -> HealthAddress {
        HealthAddress {
            listen: self.settings.listen,
            is_tls: self.tls.is_some(),
        }
    }

    /// A host by which browsers reach both the console and clients' listeners: they send each cookie to all ports of it.
    pub(super) fn shared_host(
        &self,
        public_url: &Url,
        listeners: &[ListenerSettings],
    ) -> Option<String> {
        self.console.as_ref()?;
        let (own, public) = (self.settings.listen.ip(), public_url.host_str()?);
        // A URL has brackets around an IPv6 address.
        let is_own = public.trim_matches(['[', ']']) == own.to_string();
        let mut names = self.settings.hosts.names();
        if is_own || names.any(|name| name.eq_ignore_ascii_case(public)) {
            return Some(public.to_owned());
        }
        // Certificates for tests have "localhost", too.
        let is_certified = |name: &&str| {
            let mut tls = listeners
                .iter()
                .filter_map(|listener| listener.tls.as_ref());
            *name != "localhost" && tls.any(|tls| tls.loaded().has_name(name))
        };
        if let Some(name) = self.settings.hosts.names().find(is_certified) {
            return Some(name.to_owned());
        }
        // Behind a proxy on the machine itself, browsers open public_url alone.
        let is_open = |ip: IpAddr| {
            !ip.is_loopback() && (ip == own || ip.is_unspecified() || own.is_unspecified())
        };
        let mut addresses = listeners.iter().map(|listener| listener.address.ip());
        let is_shared = !own.is_loopback() && addresses.any(is_open);
        is_shared.then(|| own.to_string())
    }

    /// Reads `[management]`. `own` are the addresses for clients; `has_store` is whether the store has the applications.
    pub(super) fn read(
        section: &mut Section<'_>,
        own: &[SocketAddr],
        has_store: bool,
    ) -> Read<Self> {
        let has_tls = section.has("tls");
        let settings = shared_keys::management(section, Some(DEFAULT_LISTEN), own);
        let tls = section.optional_section("tls", |section| {
            // Not in the handshake: who asks for /readyz has no certificate.
            read_tls(section, Ok(Protocols::Http1), ClientAuth::ByRequest).map(Arc::new)
        });
        let api = table(section, "api");
        if api == Ok(true) && !has_store {
            let allowed = "with [applications] only: the API changes those of the store";
            return Err(section.problem("api", "a table", allowed));
        }
        let console = read_console(section);
        if matches!(console, Ok(Some(_))) && api == Ok(false) {
            let allowed = "with [management.api] only: the console makes calls of the API";
            return Err(section.problem("console", "a table", allowed));
        }
        let settings = settings?.ok_or(Invalid)?;
        let listen = settings.listen;
        // Tokens of operators would cross the network in clear text.
        if api == Ok(true) && !has_tls && !listen.ip().is_loopback() {
            let allowed = "with [management.api]: a loopback address, or [management.tls]";
            return Err(section.problem("listen", &listen.to_string(), allowed));
        }
        Ok(Self {
            settings,
            tls: tls?,
            api: api?,
            console: console?,
        })
    }
}

/// Whether there is a table without keys.
fn table(section: &mut Section<'_>, key: &'static str) -> Read<bool> {
    let allowed = "a table without keys";
    section.describe(
        key,
        allowed,
        json!({ "type": "object", "maxProperties": 0 }),
    );
    let table = section.find(key, allowed);
    let is_on = table.is_some();
    if let Some(table) = table {
        table.section(|_| Ok(()))?;
    }
    section.set(key, if is_on { "on" } else { "off" });
    Ok(is_on)
}

fn read_console(section: &mut Section<'_>) -> Read<Option<ConsoleSettings>> {
    let console = section.optional_section("console", |section| {
        let ident = "the ident of an application, by which the console logs users in";
        let application = section.optional("application", ident);
        let provider = section.optional("provider", "the name of a provider of the login service");
        let accounts = section.sections("accounts", read_account)?;
        let accounts = accounts.into_iter();
        let accounts = accounts.map(|(_, account)| account.ok_or(Invalid));
        let accounts = accounts.collect::<Read<Vec<_>>>()?;
        let key = |account: &ConsoleAccount| (account.provider.clone(), account.username.clone());
        // An account that is listed twice could have two roles, and the order of the tables would choose.
        for (place, account) in accounts.iter().enumerate() {
            if accounts[..place]
                .iter()
                .any(|other| key(other) == key(account))
            {
                return Err(section.problem("accounts", &account.name, "each account once"));
            }
        }
        let application = application?;
        if application.is_none() && !accounts.is_empty() {
            return Err(section.missing("application", ident));
        }
        Ok(ConsoleSettings {
            application,
            provider: provider?,
            accounts,
        })
    });
    let shown = matches!(console, Ok(Some(_)));
    section.set("console", if shown { "on" } else { "off" });
    console
}

fn read_account(name: &str, section: &mut Section<'_>) -> Read<ConsoleAccount> {
    let provider = section.required(
        "provider",
        "the name of the provider, as the account has it",
    );
    let username = section.required("username", "the provider's identifier of the user");
    let role = section.required("role", ROLES);
    Ok(ConsoleAccount {
        name: name.to_owned(),
        provider: provider?,
        username: username?,
        role: role?,
    })
}

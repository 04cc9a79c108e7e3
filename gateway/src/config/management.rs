//! `[management]`: the listener for operators, its TLS, and whether it serves the management API.

use std::{net::SocketAddr, sync::Arc};

use signpost_kit::{
    config::{Invalid, Read, Section, shared_keys},
    server::{health::HealthAddress, management::ManagementSettings},
};

use super::listen::{Protocols, read_tls};
use crate::tls::{ClientAuth, Tls};

/// Default of `management.listen`. `conf/README.md`.
const DEFAULT_LISTEN: &str = "127.0.0.1:8081";

/// The management listener.
#[derive(Clone, Debug)]
pub(crate) struct Management {
    /// Its address, and the names under which it answers.
    pub settings: ManagementSettings,
    /// TLS; `None`: plain.
    pub tls: Option<Arc<Tls>>,
    /// Whether it serves the management API.
    pub api: bool,
    /// Whether it serves the console, too.
    pub console: bool,
}

impl Management {
    /// Where `/readyz` is.
    pub(crate) const fn health_address(&self) -> HealthAddress {
        HealthAddress {
            listen: self.settings.listen,
            is_tls: self.tls.is_some(),
        }
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
        let console = table(section, "console");
        if console == Ok(true) && api == Ok(false) {
            let allowed = "with [management.api] only: the console makes calls of the API";
            return Err(section.problem("console", "a table", allowed));
        }
        let settings = settings?.ok_or(Invalid)?;
        let listen = settings.listen;
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
    let table = section.find(key, "a table without keys");
    let is_on = table.is_some();
    if let Some(table) = table {
        table.section(|_| Ok(()))?;
    }
    section.set(key, if is_on { "on" } else { "off" });
    Ok(is_on)
}

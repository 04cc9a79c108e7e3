//! Options that hold a store's address or password.

use std::{convert::Infallible, str::FromStr};

use anyhow::{Context, bail};
use signpost_store::{PostgresAddress, StoreAddress};

use signpost_kit::secret::{Secret, SecretSource};

/// An address, or `env:NAME` or `file:PATH` of one. Never printed: it may contain a password.
#[derive(Clone, Debug)]
pub(super) struct AddressSource(SecretSource);

impl FromStr for AddressSource {
    type Err = Infallible;

    fn from_str(setting: &str) -> Result<Self, Self::Err> {
        Ok(Self(SecretSource::from(setting)))
    }
}

impl AddressSource {
    /// Reads and parses the address. Errors name the `option`.
    pub(super) fn read(&self, option: &'static str) -> anyhow::Result<StoreAddress> {
        let address = self.0.clone().read().context(option)?;
        let parsed: Result<StoreAddress, _> = address.expose().parse();
        parsed.map_err(|allowed| {
            anyhow::anyhow!("{option}: found no such address; allowed: {allowed}")
        })
    }

    /// The same address, as a configuration file would name it.
    pub(super) fn as_setting(&self, address: &PostgresAddress) -> String {
        match &self.0 {
            SecretSource::Env(name) => format!("\"env:{name}\""),
            SecretSource::File(path) => format!("\"file:{}\"", path.display()),
            SecretSource::Literal(_) => {
                format!(
                    "\"{address}\", with the user (and the password, or [postgres] password) given here"
                )
            }
        }
    }
}

/// `env:NAME` or `file:PATH`. Never the password itself: other users can see the command line.
#[derive(Clone, Debug)]
pub(super) struct PasswordSource(SecretSource);

impl FromStr for PasswordSource {
    type Err = Infallible;

    fn from_str(setting: &str) -> Result<Self, Self::Err> {
        Ok(Self(SecretSource::from(setting)))
    }
}

impl PasswordSource {
    /// Reads the password. Errors name the `option`.
    pub(super) fn read(&self, option: &'static str) -> anyhow::Result<Secret> {
        if let SecretSource::Literal(_) = self.0 {
            bail!("{option} takes env:NAME or file:PATH, never the password itself");
        }
        self.0.clone().read().context(option)
    }
}

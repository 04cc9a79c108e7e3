//! Where a command takes a store's address and password from.

use std::{convert::Infallible, str::FromStr};

use anyhow::{Context, bail};
use signpost_store::{PostgresAddress, StoreAddress};

use signpost_kit::secret::{Secret, SecretSource};

/// An address, or `env:NAME` or `file:PATH` that holds it. Nothing prints it: it may hold a password.
#[derive(Clone, Debug)]
pub(super) struct AddressSource(SecretSource);

impl FromStr for AddressSource {
    type Err = Infallible;

    fn from_str(setting: &str) -> Result<Self, Self::Err> {
        Ok(Self(SecretSource::from(setting)))
    }
}

impl AddressSource {
    /// `option` is what the command line calls it.
    pub(super) fn read(&self, option: &'static str) -> anyhow::Result<StoreAddress> {
        let address = self.0.clone().read().context(option)?;
        let parsed: Result<StoreAddress, _> = address.expose().parse();
        parsed.map_err(|allowed| {
            anyhow::anyhow!("{option}: found no such address; allowed: {allowed}")
        })
    }

    /// How a configuration would name the same address.
    pub(super) fn in_a_file(&self, address: &PostgresAddress) -> String {
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

/// `env:NAME` or `file:PATH`. Never the password itself: other people see a machine's command lines.
#[derive(Clone, Debug)]
pub(super) struct PasswordSource(SecretSource);

impl FromStr for PasswordSource {
    type Err = Infallible;

    fn from_str(setting: &str) -> Result<Self, Self::Err> {
        Ok(Self(SecretSource::from(setting)))
    }
}

impl PasswordSource {
    /// `option` is what the command line calls it.
    pub(super) fn read(&self, option: &'static str) -> anyhow::Result<Secret> {
        if let SecretSource::Literal(_) = self.0 {
            bail!("{option} takes env:NAME or file:PATH, never the password itself");
        }
        self.0.clone().read().context(option)
    }
}

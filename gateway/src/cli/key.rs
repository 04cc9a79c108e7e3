//! The option that names the application's key.

use std::{convert::Infallible, str::FromStr};

use anyhow::{Context, bail};
use signpost_protocol::sign::AppKey;

use signpost_kit::secret::SecretSource;

/// `env:NAME` or `file:PATH`. Never the key itself: other users can see the command line.
#[derive(Clone, Debug)]
pub(super) struct KeySource(SecretSource);

impl FromStr for KeySource {
    type Err = Infallible;

    fn from_str(setting: &str) -> Result<Self, Self::Err> {
        Ok(Self(SecretSource::from(setting)))
    }
}

impl KeySource {
    pub(super) fn read(self) -> anyhow::Result<AppKey> {
        if let SecretSource::Literal(_) = self.0 {
            bail!("--key takes env:NAME or file:PATH, never the key itself");
        }
        let secret = self.0.read().context("--key")?;
        secret.expose().parse().context("--key: not a valid key")
    }
}

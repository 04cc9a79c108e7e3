//! Options that name a secret: `env:NAME` or `file:PATH`. Other users can see the command line, so it does not have the
//! secret itself.

use anyhow::{Context, anyhow, bail};
use signpost_kit::secret::{Secret, SecretSource};
use signpost_protocol::sign::AppKey;
use signpost_store::{PostgresAddress, StoreAddress};

/// Reads what `option` names, a `what`.
pub(super) fn read_secret(
    source: &SecretSource,
    option: &'static str,
    what: &str,
) -> anyhow::Result<Secret> {
    if let SecretSource::Literal(_) = source {
        bail!("{option} takes env:NAME or file:PATH, never the {what} itself");
    }
    source.clone().read().context(option)
}

/// Reads the application's key that `--key` names.
pub(super) fn read_key(source: &SecretSource) -> anyhow::Result<AppKey> {
    let secret = read_secret(source, "--key", "key")?;
    secret.expose().parse().context("--key: not a valid key")
}

/// Reads a store's address, which the option may also have itself. Never printed: it may contain a password.
pub(super) fn read_address(
    source: &SecretSource,
    option: &'static str,
) -> anyhow::Result<StoreAddress> {
    let address = source.clone().read().context(option)?;
    let parsed: Result<StoreAddress, _> = address.expose().parse();
    parsed.map_err(|error| anyhow!("{option}: found {}; allowed: {error}", error.found()))
}

/// The same address, as a configuration file would name it.
pub(super) fn address_setting(source: &SecretSource, address: &PostgresAddress) -> String {
    match source {
        SecretSource::Env(name) => format!("\"env:{name}\""),
        SecretSource::File(path) => format!("\"file:{}\"", path.display()),
        SecretSource::Literal(_) => format!(
            "\"{address}\", with the user (and the password, or [postgres] password) given here"
        ),
    }
}

//! What `check` examines beside the file: the store, and with `--online` the providers.

use signpost_store::{Store, error::is_encoding};

use crate::{
    config::Config,
    provider::{HttpClient, probe},
    records::accounts::providers_with_accounts,
};

/// Returns warnings about accounts whose provider is not configured: it was renamed or removed, and their users cannot log in.
/// The store is neither created nor migrated.
///
/// # Errors
///
/// No program can use the store.
pub(super) async fn lost_accounts(config: &Config) -> anyhow::Result<Vec<String>> {
    let names = async {
        let Some(store) = Store::open_read_only(&config.store).await? else {
            return anyhow::Ok(Vec::new());
        };
        Ok(providers_with_accounts(&store).await?)
    };
    match names.await {
        Ok(names) => Ok(warnings(config, &names)),
        // An error, not a warning: unlike an outage it does not pass, and the program would not start.
        Err(error) if is_encoding(error.root_cause()) => Err(error),
        Err(error) => Ok(vec![format!(
            "the store cannot be read now, so accounts of unknown providers were not looked for: {error:#}"
        )]),
    }
}

/// The warnings about the providers that have accounts.
pub(super) fn warnings(config: &Config, with_accounts: &[String]) -> Vec<String> {
    let is_known = |name: &String| {
        let mut all = config.providers.all.iter();
        all.any(|provider| provider.name.as_str() == name)
    };
    let lost = with_accounts.iter().filter(|name| !is_known(name));
    let warning = |name| {
        format!(
            "accounts of the provider {name:?} exist, which is not configured: their users cannot log in, and get new \
             accounts under another name; give it its name back, or ignore this if it was removed for good"
        )
    };
    lost.map(warning).collect()
}

/// Asks each provider what would fail at the first login. Returns a line for each, and whether all are well.
///
/// # Errors
///
/// The HTTP client cannot be created.
pub(super) async fn online(config: &Config) -> anyhow::Result<(Vec<String>, bool)> {
    let http = HttpClient::new(&config.outgoing)?;
    let (mut lines, mut is_well) = (Vec::new(), true);
    for provider in &config.providers.all {
        let probed = probe(provider, &config.public_url, &http).await;
        is_well &= probed.is_ok();
        lines.push(probed.unwrap_or_else(|fault| fault));
    }
    Ok((lines, is_well))
}

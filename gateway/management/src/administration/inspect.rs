//! Read-only checks of a store, for `signpost check`: whether the master key fits, and which default versions are
//! unknown or retired. Neither the database nor the key is created or migrated.

use signpost_kit::clock::{Clock, SystemClock};
use signpost_proxy::{
    Config, MultiApplications, Sealer, default_version_warnings, unusable_defaults,
};
use signpost_store::{Store, error::is_encoding, tables::sealed_keys};

/// Checks the configured store, and returns warnings about it. A store that does not exist yet has none: the first start
/// creates it.
///
/// # Errors
///
/// The master key cannot be read, or is not the one that sealed the stored keys: the gateway would not start.
pub async fn inspect(config: &Config, multi: &MultiApplications) -> anyhow::Result<Vec<String>> {
    let known = config.versions.names_in_service(SystemClock.now());
    let contents = async {
        let Some(database) = Store::open_read_only(&config.store).await? else {
            return anyhow::Ok((Vec::new(), Vec::new()));
        };
        let unusable = unusable_defaults(&database, &known).await?;
        Ok((sealed_keys::samples(&database).await?, unusable))
    };
    let (samples, warnings) = match contents.await {
        Ok((samples, unusable)) => (
            samples,
            default_version_warnings(&unusable, &config.versions),
        ),
        // An error, not a warning: unlike an outage it does not pass, and the gateway would not start.
        Err(error) if is_encoding(error.root_cause()) => return Err(error),
        Err(error) => {
            let warning = format!(
                "the store cannot be read now, so the master key and default versions were not checked: {error:#}"
            );
            (Vec::new(), vec![warning])
        }
    };
    check_keys(multi, &samples)?;
    Ok(warnings)
}

/// Checks that the master key is the one that sealed the keys of a database.
///
/// # Errors
///
/// It is not, it cannot be read, or the database cannot.
pub async fn check_master_key(database: &Store, multi: &MultiApplications) -> anyhow::Result<()> {
    check_keys(multi, &sealed_keys::samples(database).await?)
}

fn check_keys(multi: &MultiApplications, samples: &[Vec<u8>]) -> anyhow::Result<()> {
    if let Some(sealer) = Sealer::existing(multi, !samples.is_empty())? {
        for sealed in samples {
            sealer.check(sealed)?;
        }
    }
    Ok(())
}

//! Read-only checks of a store, for `signpost check`: whether the master key fits, and which default versions are
//! unknown or retired. Neither the database nor the key is created or migrated.

use std::time::Duration;

use signpost_kit::clock::{Clock, SystemClock, Timestamp};
use signpost_proxy::{
    Config, Day, KEEP_SHADOW_DAYS, MultiApplications, Sealer, ServedVersion, Stage, Versions,
    default_version_warnings, rfc3339, unusable_defaults,
};
use signpost_store::{
    Store, StoreError,
    error::is_encoding,
    tables::{sealed_keys, usage::count_users},
};

use super::coverage::{Coverage, MAX_SHOWN, shown};

/// Time in which requests count as recent use of a version.
const LATELY: Duration = Duration::from_secs(7 * 86_400);

/// Checks the configured store, and returns warnings about it, and about versions that end although they are used.
/// `before` has the versions of the running gateway. A store that does not exist yet has no warnings: the first start
/// creates it.
///
/// # Errors
///
/// The master key cannot be read, or another one sealed the stored keys: the gateway would not start.
pub async fn inspect(
    config: &Config,
    multi: &MultiApplications,
    before: Option<&Versions>,
) -> anyhow::Result<Vec<String>> {
    let now = SystemClock.now();
    let known = config.versions.names_in_service(now);
    let contents = async {
        let Some(database) = Store::open_read_only(&config.store).await? else {
            return anyhow::Ok((Vec::new(), Vec::new()));
        };
        let unusable = unusable_defaults(&database, &known).await?;
        let mut warnings = default_version_warnings(&unusable, &config.versions);
        for (version, what) in endings(before, &config.versions, now) {
            let users =
                count_users(&database, &version, Day::at(now.minus(LATELY)).number()).await?;
            if users > 0 {
                warnings.push(format!(
                    "versions.{version}: {what}, and {users} applications have sent requests to it in the last 7 days: signpost \
                     versions report --version {version}"
                ));
            }
        }
        for version in config.versions.iter() {
            warnings.extend(uncovered(&database, version, now).await?);
        }
        Ok((sealed_keys::samples(&database).await?, warnings))
    };
    let (samples, warnings) = match contents.await {
        Ok(contents) => contents,
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

/// A warning of a bridge whose version's own backend has served requests lately that have no pair with the present changes.
async fn uncovered(
    store: &Store,
    version: &ServedVersion,
    now: Timestamp,
) -> Result<Option<String>, StoreError> {
    let Some(bridge) = version.bridge() else {
        return Ok(None);
    };
    let kept = Duration::from_secs(u64::from(KEEP_SHADOW_DAYS) * 86_400);
    let since = (now.minus(LATELY), now.minus(kept));
    let coverage = Coverage::read(store, version, &bridge.to, since).await?;
    let uncovered = coverage.uncovered.iter();
    Ok((uncovered.len() > 0).then(|| {
        format!(
            "versions.{}.bridge: requests of the last 7 days without a pair with the present changes: {}. Prove them by a \
             shadow and signpost bridge check, or name them in unproven",
            version.name(),
            shown(uncovered, MAX_SHOWN)
        )
    }))
}

/// The versions that are removed or bridged, or end within a week, and what happens to each.
fn endings(before: Option<&Versions>, after: &Versions, now: Timestamp) -> Vec<(String, String)> {
    let mut endings = Vec::new();
    for old in before.into_iter().flat_map(Versions::iter) {
        let name = old.name().as_str();
        let new = after.named(name.as_bytes());
        let bridge = new.and_then(|new| new.bridge());
        match (new, bridge) {
            (None, _) => endings.push((name.to_owned(), "it is removed".to_owned())),
            (_, Some(bridge)) if old.bridge().is_none() => {
                let what = format!("its requests are bridged to {}", bridge.to);
                endings.push((name.to_owned(), what));
            }
            _ => {}
        }
    }
    for version in after.iter() {
        let name = version.name().as_str();
        let old = before.and_then(|before| before.named(name.as_bytes()));
        let was_retired = old.is_some_and(|old| old.stage(now) == Stage::Retired);
        let sunset = version.life_cycle().and_then(|life| life.gone);
        if let Some(sunset) = sunset.filter(|sunset| *sunset < now.plus(LATELY) && !was_retired) {
            let what = format!("its requests get 410 from {} on", rfc3339(sunset));
            endings.push((name.to_owned(), what));
        }
    }
    endings
}

/// Checks that the configured master key sealed the keys of a database.
///
/// # Errors
///
/// Another master key sealed them, the master key cannot be read, or the database cannot.
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

//! Opens the configured applications, for the gateway and its commands.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use ring::hmac;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::sign::AppKey;
use signpost_store::{
    Change, OpenError, Store, StoreError, StoreSettings, Topic, changes::Watch, tables::sealed_keys,
};
use tokio::sync::Notify;

use super::{
    defaults::{default_version_warnings, unusable_defaults},
    directory::{AppDirectory, CachedApps},
    loader::AppLoader,
    seal::Sealer,
    snapshot::{Snapshot, SnapshotError, SnapshotFile},
    stored::StoredApps,
};
use crate::{
    config::{Applications, Config, MultiApplications, Versions, rfc3339},
    directory::accounts::{
        directory::AccountDirectory,
        open::{OpenAccounts, open_accounts, since_epoch},
    },
};

/// A snapshot may be this much ahead of the clock, which may have been set back.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(60);

/// The applications of a running gateway.
pub struct OpenApps {
    /// Looks up requests' applications.
    pub directory: AppDirectory,
    /// The database; `None` in single-application mode.
    pub store: Option<Store>,
    /// The applications of the store, for the management API; `None` in single-application mode.
    pub stored: Option<StoredApps>,
    /// The accounts; `None` if they would need a store of their own that no request needs.
    pub accounts: Option<OpenAccounts>,
    /// Hashes the keys of shared rate limits; `None` in single-application mode.
    pub rate_key: Option<hmac::Key>,
    /// Keeps the applications in the cache; `None` in single-application mode.
    pub loader: Option<AppLoader>,
    /// Notified when the addresses that operators drain change.
    pub drains_changed: Arc<Notify>,
    /// Notified when an operator asks for a rejected request.
    pub rejection_wanted: Arc<Notify>,
    /// Keeps the subscription to the store's changes alive.
    _watch: Option<Watch>,
}

impl OpenApps {
    /// In single-application mode. Only accounts and the replay memory of all gateways may need a store.
    fn of_one(config: &Config, key: AppKey) -> anyhow::Result<Self> {
        let accounts = config.requests_need_store();
        Ok(Self {
            directory: AppDirectory::single(key),
            store: None,
            stored: None,
            accounts: accounts.then(|| open_accounts(&config.store)).transpose()?,
            rate_key: None,
            loader: None,
            drains_changed: Arc::default(),
            rejection_wanted: Arc::default(),
            _watch: None,
        })
    }
}

/// Opens the applications at the start of a gateway. Blocking.
///
/// # Errors
///
/// As [`open_store`]; or the store cannot be watched.
pub fn open_apps(config: &Config) -> anyhow::Result<OpenApps> {
    let multi = match &config.applications {
        Applications::Single(key) => return OpenApps::of_one(config, key.clone()),
        Applications::Multi(multi) => multi,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (database, store, snapshot) = match runtime.block_on(open_store(config, multi)) {
        Ok((database, store)) => {
            tracing::info!(store = %config.store.address, "using the store");
            (database, store, None)
        }
        Err(error) => open_without_store(config, multi, error)?,
    };
    // The pool's connections would end with this runtime.
    database.disconnect();
    // The key exists now: `open_store` creates a missing one.
    let sealer = Sealer::existing(multi, false)?;
    warn_of_unusable_defaults(&config.store, &config.versions);
    let apps = CachedApps::new(Arc::new(store.clone()), multi.cache_entries);
    if let Some(snapshot) = snapshot {
        let (age, apps_then) = (SystemClock.now().since(snapshot.true_at), snapshot.apps);
        let entries = apps_then
            .into_iter()
            .map(|(ident, app)| (ident, Arc::new(app)));
        apps.cache.restore(age, entries);
    }
    let file = sealer
        .as_ref()
        .and_then(|sealer| snapshot_file(config, multi, sealer));
    let stored = Some(store.for_management());
    let loader = AppLoader::new(store, Arc::clone(&apps.all), file, Arc::new(SystemClock));
    let accounts = Arc::new(AccountDirectory::new(&database));
    let (drains_changed, rejection_wanted) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let on_change = subscriber(&apps, &accounts, &drains_changed, &rejection_wanted);
    let watch = database
        .watch(since_epoch, on_change)
        .context("cannot subscribe to the store's change feed")?;
    Ok(OpenApps {
        directory: AppDirectory::Multi(apps),
        accounts: Some(OpenAccounts::beside_apps(accounts, database.clone())),
        store: Some(database),
        stored,
        rate_key: sealer.map(|sealer| sealer.rate_key()),
        loader: Some(loader),
        drains_changed,
        rejection_wanted,
        _watch: Some(watch),
    })
}

/// What is told of each change in the store.
fn subscriber(
    apps: &CachedApps,
    accounts: &Arc<AccountDirectory>,
    drains: &Arc<Notify>,
    rejections: &Arc<Notify>,
) -> impl Fn(Change) + Send + 'static {
    let (apps, accounts) = (apps.subscriber(), Arc::clone(accounts));
    let (drains, rejections) = (Arc::clone(drains), Arc::clone(rejections));
    move |change| {
        apps(&change);
        accounts.on_change(&change);
        let topic = match &change {
            Change::Item { topic, .. } => Some(*topic),
            _ => None,
        };
        // Also when the feed returns: a drained address may have been missed. `notify_one` leaves a permit if the
        // watcher is busy.
        if topic.is_none_or(|topic| topic == Topic::Drain) {
            drains.notify_one();
        }
        if topic == Some(Topic::Rejection) {
            rejections.notify_one();
        }
    }
}

/// What the gateway starts with although its store does not answer: a store that is opened later, and the applications of
/// the snapshot. Otherwise `error` is returned, with the reason why there are none.
fn open_without_store(
    config: &Config,
    multi: &MultiApplications,
    error: anyhow::Error,
) -> anyhow::Result<(Store, StoredApps, Option<Snapshot>)> {
    // Only an outage: a wrong password or a missing table is the operator's to correct, and a snapshot would hide it.
    if multi.snapshot.is_none() || !is_unavailable(&error) {
        return Err(error);
    }
    let open = || {
        let sealer = Sealer::existing(multi, true)?;
        let sealer = sealer.context("there is no master key")?;
        let file = snapshot_file(config, multi, &sealer).context("there is none")?;
        let database = Store::open_later(&config.store)?;
        let store = StoredApps::new(database.clone(), sealer);
        let snapshot = file.read(multi.cache_entries, &store)?;
        let now = SystemClock.now();
        let age = now.since(snapshot.true_at);
        let time = rfc3339(snapshot.true_at);
        // A time that is still to come would never be too old, so it is refused, too.
        if age > config.stale || snapshot.true_at > now.plus(MAX_CLOCK_DIFFERENCE) {
            return Err(SnapshotError::TooOld(time).into());
        }
        tracing::warn!(
            cause = %format_args!("{error:#}"),
            "the store does not answer: its {} applications are those of the snapshot of {time}, and are served until {}",
            snapshot.apps.len(),
            rfc3339(snapshot.true_at.plus(config.stale)),
        );
        anyhow::Ok((database, store, Some(snapshot)))
    };
    open().map_err(|cause| error.context(format!("the snapshot cannot be used: {cause:#}")))
}

/// Whether the store could not be opened, or did not answer afterwards, since its server is down or overloaded.
fn is_unavailable(error: &anyhow::Error) -> bool {
    let opening = error.downcast_ref::<OpenError>();
    let call = error.downcast_ref::<StoreError>();
    opening.is_some_and(OpenError::is_unavailable) || call.is_some_and(StoreError::is_transient)
}

/// Where the snapshot of a Postgres is. SQLite needs none: its file is as near.
fn snapshot_file(
    config: &Config,
    multi: &MultiApplications,
    sealer: &Sealer,
) -> Option<SnapshotFile> {
    let path = multi.snapshot.as_ref();
    let path = path.filter(|_| config.store.address.file().is_none())?;
    Some(SnapshotFile {
        path: path.clone(),
        keys: sealer.snapshot_keys(),
        store: config.store.address.to_string(),
    })
}

/// Warns of applications whose default version is not in `versions`, or retired. Runs on its own thread: a start or reload does not
/// wait until all applications were read.
pub fn warn_of_unusable_defaults(settings: &StoreSettings, versions: &Versions) {
    let (settings, versions) = (settings.clone(), versions.clone());
    let known = versions.names_in_service(SystemClock.now());
    let check = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // A separate pool: a pooled connection would end with this runtime while requests use it.
        let pinned = runtime.block_on(async {
            match Store::open_read_only(&settings).await? {
                Some(database) => Ok(unusable_defaults(&database, &known).await?),
                None => anyhow::Ok(Vec::new()),
            }
        })?;
        for warning in default_version_warnings(&pinned, &versions) {
            tracing::warn!("{warning}");
        }
        anyhow::Ok(())
    };
    let check = move || {
        if let Err(error) = check() {
            tracing::debug!(
                cause = %format_args!("{error:#}"),
                "default versions of applications were not checked"
            );
        }
    };
    // If the thread cannot be started, the warning is skipped.
    let _ = std::thread::Builder::new()
        .name("default-versions".to_owned())
        .spawn(check);
}

/// Opens the store of applications, and checks that its keys are under these master keys.
///
/// # Errors
///
/// The database cannot be opened, the master key cannot be read, or another master key sealed the stored keys.
pub async fn open_store(
    config: &Config,
    multi: &MultiApplications,
) -> anyhow::Result<(Store, StoredApps)> {
    let database = Store::open(&config.store).await?;
    let samples = sealed_keys::samples(&database).await?;
    let sealer = Sealer::from_config(&multi.master_key, !samples.is_empty())?;
    let sealer = sealer.with_previous(multi.previous_master_key.as_ref())?;
    // At the start: with a wrong master key, each request would otherwise be rejected on its own.
    for sealed in &samples {
        sealer.check(sealed)?;
    }
    Ok((database.clone(), StoredApps::new(database, sealer)))
}

/// Timeout of a statement that writes many applications: 100,000 take about 2 s on an ordinary machine, and only
/// operators wait for it.
const BULK_STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Raises the statement timeout for statements that write many applications.
pub fn raise_statement_timeout(store: &mut StoreSettings) {
    let statement = &mut store.postgres.statement;
    *statement = (*statement).max(BULK_STATEMENT_TIMEOUT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_stops_answering_after_it_was_opened_is_unavailable() {
        assert!(is_unavailable(&StoreError::TimedOut.into()));
        assert!(!is_unavailable(&StoreError::Malformed("a").into()));
        assert!(!is_unavailable(&anyhow::anyhow!("another master key")));
    }
}

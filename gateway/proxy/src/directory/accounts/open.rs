//! Opens the store of accounts: the applications' store, or with a single application, one that only routes with
//! accounts and the replay memory of all gateways need.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_store::{Store, StoreSettings, changes::Watch};

use super::directory::AccountDirectory;

/// The accounts of a running gateway.
pub struct OpenAccounts {
    /// Finds the accounts of requests.
    pub directory: Arc<AccountDirectory>,
    /// The database.
    pub store: Store,
    /// The database, for health checks, on a connection that no client's request waits for.
    pub probed: Store,
    /// Keeps the subscription to the store's changes alive; `None` if the applications' subscription serves both.
    _watch: Option<Watch>,
}

impl OpenAccounts {
    /// The accounts in the store of the applications, whose subscriber notifies `directory`.
    pub(crate) fn beside_apps(directory: Arc<AccountDirectory>, store: Store) -> Self {
        Self {
            directory,
            probed: store.with_own_pool(1),
            store,
            _watch: None,
        }
    }
}

/// Opens the configured store for what requests need besides applications. Blocking, and not on a thread that drives a
/// runtime.
///
/// # Errors
///
/// The store cannot be opened or watched.
pub fn open_accounts(settings: &StoreSettings) -> anyhow::Result<OpenAccounts> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let store = runtime.block_on(Store::open(settings)).context(
        "cannot open the store, which routes with accounts or replay_scope = \"all\" need",
    )?;
    // The pool's connections would end with this runtime.
    store.disconnect();
    let address = &settings.address;
    tracing::info!(store = %address, "using the store for accounts and signatures");
    let directory = Arc::new(AccountDirectory::new(&store));
    let subscriber = Arc::clone(&directory);
    let watch = store
        .watch(since_epoch, move |change| subscriber.on_change(&change))
        .context("cannot subscribe to the store's change feed")?;
    Ok(OpenAccounts {
        directory,
        probed: store.with_own_pool(1),
        store,
        _watch: Some(watch),
    })
}

/// The time since the Unix epoch, for the change feed.
pub(crate) fn since_epoch() -> Duration {
    SystemClock.now().since_epoch()
}

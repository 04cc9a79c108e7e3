//! Reads who still uses the versions that end, every few minutes: for `/metrics`, and for callbacks, which name no
//! application.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use signpost_kit::task::Task;
use signpost_proxy::{Day, Extension, Gateway, program::VersionEnd};
use signpost_store::{Store, StoreError, tables::usage::count_users};

/// Time from one look to the next: it reads each application's counts of a week.
const INTERVAL: Duration = Duration::from_secs(5 * 60);
/// The same after a failure.
const SHORT_INTERVAL: Duration = Duration::from_secs(5);
/// Days in which requests count as use, today included.
const DAYS: u16 = 7;

/// Reads until the process ends, by the current configuration.
pub(crate) async fn run(current: Arc<ArcSwap<Gateway>>, store: Store) {
    let task = Task::quiet("the users of versions that end cannot be read now");
    let turn = || async {
        match read(&current, &store).await {
            Ok(was_called) => (Ok(was_called), INTERVAL),
            Err(error) => (Err(error), SHORT_INTERVAL),
        }
    };
    task.run(turn).await;
}

async fn read(current: &ArcSwap<Gateway>, store: &Store) -> Result<bool, StoreError> {
    let gateway = current.load_full();
    let versions = gateway.policy.backends.versions.iter();
    let ending: Vec<_> = versions.filter(|version| version.ends()).collect();
    let mut ends = Vec::new();
    if !ending.is_empty() {
        let day = Day::at(gateway.state.clock.now()).minus(DAYS - 1);
        let query = "SELECT extensions FROM applications WHERE extensions IS NOT NULL";
        let stored = store.rows::<(String,)>(query, Vec::new()).await?;
        let parse = |(json,): &(String,)| serde_json::from_str(json).unwrap_or_default();
        let extended: Vec<Extension> = stored.iter().flat_map::<Vec<_>, _>(parse).collect();
        for name in ending.into_iter().map(|version| version.name()) {
            let of_it = extended.iter().filter(|one| one.version == **name);
            ends.push(VersionEnd {
                version: Arc::clone(name),
                users: count_users(store, name.as_str(), day.number()).await?,
                extended: of_it.map(|one| one.until).max(),
            });
        }
    }
    let was_called = !ends.is_empty();
    gateway.state.version_ends.store(Arc::new(ends));
    Ok(was_called)
}

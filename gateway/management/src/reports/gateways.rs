//! The gateways of a store: the table `gateways`, in both databases. Each gateway writes its row every few seconds; times of
//! that are the database's, so that gateways' clocks do not matter.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, mem,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::json;
use signpost_kit::clock::Timestamp;
use signpost_protocol::app::shown_name;
use signpost_proxy::as_rfc3339;
use signpost_store::{FromRow, Row, Store, StoreError, values};
use utoipa::ToSchema;

use super::traffic::{Hour, Traffic};

/// Length of a gateway's id.
pub const ID_BYTES: usize = 16;

/// A gateway that was not seen for longer is gone: it misses three rows before.
const MAX_AGE: Duration = Duration::from_secs(20);

/// Rows of gateways that are gone are kept for an hour: their traffic is in them.
const RETENTION_MS: i64 = 60 * 60 * 1000;

/// Limit on rows: of more, those seen last are kept and listed.
const MAX_ROWS: usize = 1000;

/// Gateways whose keys are compared if no configuration is the most common one.
const MAX_COMPARED: usize = 4;

/// Limit of a host's name in characters.
const MAX_HOST_LENGTH: usize = 255;

/// The current time in milliseconds.
const NOW: [&str; 2] = [
    "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)",
    "(extract(epoch FROM now()) * 1000)::bigint",
];

/// What a gateway says of itself: the JSON of its row.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct GatewayState {
    /// The machine's name.
    pub host: String,
    /// The process' number there.
    pub process: u32,
    /// The addresses that it listens on.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// The release.
    pub release: String,
    /// When the process started.
    #[schema(format = DateTime)]
    pub started_at: String,
    /// A hash of the configuration in force, but for `[management]` and the addresses to listen on, which are each machine's own.
    pub config: String,
    /// A short hash of each key in it that the file has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(ignore)]
    pub keys: BTreeMap<String, String>,
    /// When the configuration was loaded.
    #[schema(format = DateTime)]
    pub loaded_at: String,
    /// Whether a later reload was rejected.
    pub is_reload_rejected: bool,
    /// Whether it is ready.
    pub is_ready: bool,
    /// What `/readyz` says.
    pub readiness: String,
    /// The certificates of its listeners.
    pub certificates: Vec<CertificateEnd>,
}

impl GatewayState {
    /// What tells it from others: host, process, addresses.
    pub fn name(&self) -> String {
        let of = [self.host.clone(), self.process.to_string()].into_iter();
        let all: Vec<_> = of.chain(self.addresses.iter().cloned()).collect();
        all.join(" ")
    }
}

/// A certificate of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct CertificateEnd {
    /// The file.
    pub file: String,
    /// The host names that it is valid for.
    pub names: Vec<String>,
    /// When it expires, as RFC 3339 writes it.
    pub expires: String,
}

/// A gateway of the store.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ListedGateway {
    /// Random, of the process.
    pub id: String,
    /// What it says of itself.
    #[serde(flatten)]
    pub state: GatewayState,
    /// When it wrote this, by the database's clock.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub seen_at: Timestamp,
    /// Whether it was seen in the last 20 s.
    pub is_alive: bool,
    /// Whether its configuration is another one than most of those that are alive have; if no configuration is the most common
    /// one, all of them differ.
    pub differs: bool,
    /// The keys that differ then, dotted; of a key that only one file has, too.
    pub different_keys: Vec<String>,
}

impl FromRow for ListedGateway {
    fn from_row(row: &Row<'_>) -> Result<Self, StoreError> {
        let state = serde_json::from_str(&row.get::<String>("state")?);
        let age: i64 = row.get("age")?;
        Ok(Self {
            id: hex::encode(row.get::<[u8; ID_BYTES]>("id")?),
            state: state.map_err(|_| StoreError::Malformed("state"))?,
            seen_at: row.get("seen_at")?,
            // A row that was written while this query ran can have a negative age.
            is_alive: u128::try_from(age).unwrap_or(0) <= MAX_AGE.as_millis(),
            differs: false,
            different_keys: Vec::new(),
        })
    }
}

/// Writes a gateway's row, with its traffic as a [`Recorder`](super::traffic::Recorder) writes it.
///
/// # Errors
///
/// The store is unavailable; the same holds for the other functions.
pub async fn write(
    store: &Store,
    id: [u8; ID_BYTES],
    state: &GatewayState,
    traffic: &str,
) -> Result<(), StoreError> {
    let now = now(store);
    let sql = format!(
        "INSERT INTO gateways (id, state, traffic, seen_at) VALUES ($1, $2, $3, {now}) \
         ON CONFLICT (id) DO UPDATE SET state = excluded.state, traffic = excluded.traffic, seen_at = excluded.seen_at"
    );
    let state = json!(state).to_string();
    let values = values![&id, state, traffic];
    store.execute(&sql, values).await.map(drop)
}

/// Removes a gateway that has stopped from the list.
pub async fn remove(store: &Store, id: [u8; ID_BYTES]) -> Result<(), StoreError> {
    // Not deleted yet: the row still has its part of the last hour's traffic.
    let update = "UPDATE gateways SET state = NULL WHERE id = $1";
    store.execute(update, values![&id]).await.map(drop)
}

/// Deletes the rows of gateways that have long been gone, and the oldest of too many.
pub async fn delete_gone(store: &Store) -> Result<(), StoreError> {
    let now = now(store);
    let delete = format!(
        "DELETE FROM gateways WHERE seen_at < {now} - {RETENTION_MS} \
         OR id NOT IN (SELECT id FROM gateways ORDER BY seen_at DESC LIMIT {MAX_ROWS})"
    );
    store.execute(&delete, Vec::new()).await.map(drop)
}

/// The requests of the last hour, also of gateways that are gone.
pub async fn traffic(store: &Store, now: Timestamp) -> Result<Traffic, StoreError> {
    let query = format!("SELECT traffic FROM gateways ORDER BY seen_at DESC LIMIT {MAX_ROWS}");
    let rows: Vec<(String,)> = store.rows(&query, Vec::new()).await?;
    // Another release may write its traffic in another way.
    let hours = rows
        .iter()
        .filter_map(|(hour,)| serde_json::from_str::<Hour>(hour).ok());
    Ok(Traffic::of(hours, now))
}

/// All gateways, by host and start.
pub async fn list(store: &Store) -> Result<Vec<ListedGateway>, StoreError> {
    let now = now(store);
    let query = format!(
        "SELECT id, state, seen_at, {now} - seen_at AS age FROM gateways WHERE state IS NOT NULL ORDER BY seen_at DESC LIMIT {MAX_ROWS}"
    );
    let mut all: Vec<ListedGateway> = store.rows(&query, Vec::new()).await?;
    all.sort_by_cached_key(|gateway| {
        let state = gateway.state.clone();
        (state.host, state.started_at, gateway.id.clone())
    });
    mark_others(&mut all);
    Ok(all)
}

/// Marks those that are alive and do not have the most common configuration.
fn mark_others(all: &mut [ListedGateway]) {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for gateway in all.iter().filter(|gateway| gateway.is_alive) {
        *numbers.entry(gateway.state.config.clone()).or_default() += 1;
    }
    let most = numbers.values().max().copied();
    let mut common = numbers.iter().filter(|(_, number)| Some(**number) == most);
    // None of several is the most common one.
    let common = match (common.next(), common.next()) {
        (Some((config, _)), None) => Some(config),
        _ => None,
    };
    let is_other = |gateway: &ListedGateway| {
        let is_common = common.is_none_or(|common| gateway.state.config == *common);
        gateway.is_alive && is_common
    };
    // Those of the common configuration have the same keys; without one, a few are enough to see what differs.
    let others = all.iter().filter(|gateway| is_other(gateway));
    let others = others.take(if common.is_some() { 1 } else { MAX_COMPARED });
    let others: Vec<_> = others.map(|gateway| gateway.state.keys.clone()).collect();
    for gateway in all {
        let keys = mem::take(&mut gateway.state.keys);
        gateway.differs = gateway.is_alive && common != Some(&gateway.state.config);
        if gateway.differs {
            let names = keys.keys().chain(others.iter().flat_map(BTreeMap::keys));
            let different: BTreeSet<_> = names
                .filter(|name| {
                    others
                        .iter()
                        .any(|other| other.get(*name) != keys.get(*name))
                })
                .collect();
            gateway.different_keys = different.into_iter().cloned().collect();
        }
    }
}

/// The current time, in ms, by the database's clock.
pub(super) fn now(store: &Store) -> &'static str {
    store.dialect(NOW[0], NOW[1])
}

/// The machine's name, if it can be shown.
pub fn host_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = shown_name(&host, MAX_HOST_LENGTH);
    host.unwrap_or("unknown host").to_owned()
}

#[cfg(test)]
mod both_stores {
    use signpost_store::testing::TestStore;

    use super::*;

    /// Writes the row of a gateway with this configuration.
    async fn write_with(store: &Store, number: u8, config: &str) {
        write(store, [number; ID_BYTES], &state(config), "[]")
            .await
            .unwrap();
    }

    fn state(config: &str) -> GatewayState {
        GatewayState {
            host: "host".to_owned(),
            process: 7,
            addresses: vec!["127.0.0.1:8080".to_owned()],
            keys: [("default_version", "1"), ("public_url", config)]
                .map(|(key, hash)| (key.to_owned(), hash.to_owned()))
                .into(),
            release: "1.0.0".to_owned(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            config: config.to_owned(),
            loaded_at: "2026-01-01T00:00:00Z".to_owned(),
            is_reload_rejected: false,
            is_ready: true,
            readiness: "ready".to_owned(),
            certificates: vec![CertificateEnd {
                file: "a.pem".to_owned(),
                names: vec!["api.example".to_owned()],
                expires: "2027-01-01T00:00:00Z".to_owned(),
            }],
        }
    }

    /// Which are alive, and which differ.
    async fn marks(store: &Store) -> String {
        let all = list(store).await.unwrap();
        let mark = |one: &ListedGateway| match (one.is_alive, one.differs) {
            (true, true) => 'd',
            (true, false) => 'a',
            (false, true) => '!',
            (false, false) => '-',
        };
        all.iter().map(mark).collect()
    }

    async fn age(store: &Store, number: u8, milliseconds: i64) {
        let update = "UPDATE gateways SET seen_at = seen_at - $2 WHERE id = $1";
        let values = values![&[number; ID_BYTES], milliseconds];
        store.execute(update, values).await.unwrap();
    }

    #[tokio::test]
    async fn gateways_are_listed_with_those_that_are_gone_or_have_another_configuration() {
        let test = TestStore::chosen();
        let store = test.open().await;
        write_with(&store, 1, "a").await;
        assert_eq!(marks(&store).await, "a");
        write_with(&store, 2, "b").await;
        assert_eq!(marks(&store).await, "dd", "neither is the most common one");
        write_with(&store, 3, "b").await;
        assert_eq!(marks(&store).await, "daa");
        let listed = list(&store).await.unwrap();
        assert_eq!(listed[0].different_keys, ["public_url"]);
        assert!(listed[1].different_keys.is_empty());
        assert_eq!(listed[0].state.name(), "host 7 127.0.0.1:8080");
        // One that is gone has no part in it.
        age(&store, 3, 21_000).await;
        assert_eq!(marks(&store).await, "dd-");
        age(&store, 1, 21_000).await;
        assert_eq!(marks(&store).await, "-a-");
        // A later row replaces the one before.
        let changed = GatewayState {
            is_ready: false,
            readiness: "stopping".to_owned(),
            ..state("b")
        };
        write(&store, [1; ID_BYTES], &changed, "[]").await.unwrap();
        assert_eq!(marks(&store).await, "aa-");
        let first = list(&store).await.unwrap().swap_remove(0).state;
        assert_eq!((first.is_ready, &*first.readiness), (false, "stopping"));
        assert_eq!(first.certificates, changed.certificates);
        age(&store, 3, RETENTION_MS).await;
        delete_gone(&store).await.unwrap();
        remove(&store, [2; ID_BYTES]).await.unwrap();
        assert_eq!(marks(&store).await, "a");
    }

    #[tokio::test]
    async fn of_too_many_rows_the_newest_are_listed_and_kept() {
        let test = TestStore::chosen();
        let store = test.open().await;
        for number in 0..MAX_ROWS + 2 {
            let mut id = [1; ID_BYTES];
            id[..8].copy_from_slice(&number.to_be_bytes());
            write(&store, id, &state("a"), "[]").await.unwrap();
        }
        write_with(&store, 2, "a").await;
        let update = "UPDATE gateways SET seen_at = seen_at - 1000 WHERE id <> $1";
        store
            .execute(update, values![&[2; ID_BYTES]])
            .await
            .unwrap();
        let all = list(&store).await.unwrap();
        assert_eq!(all.len(), MAX_ROWS);
        assert!(all.iter().any(|one| one.id == hex::encode([2; ID_BYTES])));
        delete_gone(&store).await.unwrap();
        let left: Vec<(i64,)> = store
            .rows("SELECT count(*) FROM gateways", Vec::new())
            .await
            .unwrap();
        assert_eq!(left[0].0, 1000);
    }
}

//! This gateway's row in the store, every few seconds: what `signpost gateways` and the management API show of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Context;
use arc_swap::ArcSwap;
use ring::hmac;
use signpost_kit::{
    clock::{Clock, SystemClock, Timestamp},
    config::{Settings, ValueSource},
    reload::ReloadHandle,
    task::Task,
};
use signpost_release::RELEASE;
use signpost_store::{Store, StoreError};
use tokio::{
    sync::Mutex,
    time::{sleep, timeout},
};

use signpost_management::{
    readiness::GatewayReadiness,
    reports::{
        gateways::{CertificateEnd, GatewayState, ID_BYTES, delete_gone, host_name, remove, write},
        traffic::Recorder,
    },
};
use signpost_proxy::{Gateway, StoredApps, rfc3339};

/// Time from one row to the next.
const INTERVAL: Duration = Duration::from_secs(5);

/// The same while the gateway is not ready.
const SHORT_INTERVAL: Duration = Duration::from_secs(1);

/// Rows that are written between two deletions of gone gateways' rows: about five minutes.
const ROWS_PER_DELETION: u32 = 60;

/// Length of the hash of one key.
const KEY_HASH_BYTES: usize = 6;

/// Limit of a stop's wait for the deletion of the row.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Writes the row of this gateway.
pub(crate) struct Presence {
    current: Arc<ArcSwap<Gateway>>,
    readiness: GatewayReadiness,
    /// Hashes the configuration: secrets are in it.
    key: hmac::Key,
    started_at: Timestamp,
    host: String,
    row: Arc<OwnRow>,
}

/// The row, and what a stop needs of it.
pub(crate) struct OwnRow {
    store: Store,
    id: [u8; ID_BYTES],
    /// Whether it was removed. Held while it is written.
    is_removed: Mutex<bool>,
}

impl Presence {
    /// The presence of this process in the store of these applications.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub(crate) fn new(apps: &StoredApps, readiness: GatewayReadiness) -> anyhow::Result<Self> {
        // Random: names of hosts and numbers of processes are the same in many containers.
        let mut id = [0; ID_BYTES];
        getrandom::fill(&mut id).context("the system has no random numbers")?;
        Ok(Self {
            current: Arc::clone(&readiness.current),
            readiness,
            key: apps.sealer().config_key(),
            started_at: SystemClock.now(),
            host: host_name(),
            row: Arc::new(OwnRow {
                store: apps.database().clone(),
                id,
                is_removed: Mutex::new(false),
            }),
        })
    }

    /// What deletes the row at a stop.
    pub(crate) fn row(&self) -> Arc<OwnRow> {
        Arc::clone(&self.row)
    }

    /// Writes until the process ends. `reloads` knows the settings in force.
    pub(crate) async fn run(self, reloads: ReloadHandle) {
        let mut rows: u32 = 0;
        // The records outlive each configuration.
        let state = Arc::clone(&self.current.load().state);
        let (metrics, watch) = (&state.records.metrics, state.records.watch.as_deref());
        let mut traffic = Recorder::new(metrics, SystemClock.now());
        let mut task = Task::quiet("the gateway's row cannot be written now");
        loop {
            let state = self.state(&reloads).await;
            let traffic = traffic.record(metrics, watch, SystemClock.now());
            let interval = match state.is_ready {
                true => INTERVAL,
                false => SHORT_INTERVAL,
            };
            let is_deletion_due = rows.is_multiple_of(ROWS_PER_DELETION);
            let written = self.row.write(&state, &traffic, is_deletion_due).await;
            rows = rows.wrapping_add(u32::from(written.is_ok()));
            task.log(written.map(|()| true));
            sleep(interval).await;
        }
    }

    async fn state(&self, reloads: &ReloadHandle) -> GatewayState {
        let response = self.readiness.state().await;
        let gateway = self.current.load_full();
        let ends = gateway.certificates().map(|certificate| CertificateEnd {
            file: certificate.file.display().to_string(),
            names: certificate.names,
            expires: rfc3339(certificate.validity.expires),
        });
        let last_reload = &gateway.state.last_reload;
        let settings = reloads.settings();
        let (config, keys) = hashes(&self.key, &settings);
        let addresses = settings.iter().filter(|setting| is_address(&setting.key));
        GatewayState {
            host: self.host.clone(),
            process: std::process::id(),
            release: RELEASE.to_owned(),
            started_at: rfc3339(self.started_at),
            addresses: addresses
                .map(|setting| setting.shown.trim_matches(['"', '\'']).to_owned())
                .collect(),
            config,
            keys,
            loaded_at: rfc3339(last_reload.loaded_at()),
            is_reload_rejected: last_reload.is_rejected(),
            is_ready: response.status().is_success(),
            readiness: response.body().trim_end().to_owned(),
            certificates: ends.collect(),
        }
    }
}

impl OwnRow {
    async fn write(
        &self,
        state: &GatewayState,
        traffic: &str,
        is_deletion_due: bool,
    ) -> Result<(), StoreError> {
        let is_removed = self.is_removed.lock().await;
        if !*is_removed {
            write(&self.store, self.id, state, traffic).await?;
            if is_deletion_due {
                delete_gone(&self.store).await?;
            }
        }
        Ok(())
    }

    /// Deletes the row for good, within 5 s. Otherwise it is seen that it is no longer written.
    pub(crate) async fn remove(&self) {
        let removed = async {
            // Waits for a write that has begun: otherwise that write could bring the row back after the deletion.
            *self.is_removed.lock().await = true;
            remove(&self.store, self.id).await
        };
        // Nothing is left to do if it fails.
        let _ = timeout(REMOVE_TIMEOUT, removed).await;
    }
}

/// A hash of all settings but those that are each machine's own, and a short one of each that the file has.
fn hashes(key: &hmac::Key, settings: &Settings) -> (String, BTreeMap<String, String>) {
    let mut all = hmac::Context::with_key(key);
    let mut set = BTreeMap::new();
    for (setting, value) in settings.exposed() {
        if is_address(&setting.key) || setting.key.starts_with("management.") {
            continue;
        }
        // HMAC, not a plain hash: the settings have secrets, and whoever reads the table could try guesses of weak ones.
        let mut one = hmac::Context::with_key(key);
        one.update(setting.key.as_bytes());
        one.update(b"\0");
        one.update(value.as_bytes());
        let one = one.sign();
        all.update(one.as_ref());
        if setting.source != ValueSource::Default {
            set.insert(
                setting.key.clone(),
                hex::encode(&one.as_ref()[..KEY_HASH_BYTES]),
            );
        }
    }
    (hex::encode(all.sign()), set)
}

/// Whether a key is an address to listen on.
fn is_address(key: &str) -> bool {
    key == "listen" || key.starts_with("listen") && key.ends_with(".address")
}

#[cfg(test)]
mod tests {
    use super::*;
    use signpost_proxy::{Config, testing::MINIMAL};

    #[test]
    fn what_is_each_machines_own_does_not_make_a_configuration_another_one() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"key");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        let hash_of = |first: &str, tables: &str| {
            std::fs::write(&file, format!("{first}{MINIMAL}{tables}")).unwrap();
            hashes(&key, &Config::load_settings(&file).unwrap().settings).0
        };
        let plain = hash_of("", "");
        let management = "[management]\nlisten = '127.0.0.1:9'\nhosts = ['gateway-a.internal']\n";
        assert_eq!(hash_of("listen = '127.0.0.1:9000'\n", management), plain);
        let table = "[[listen]]\naddress = '127.0.0.1:9000'\n";
        assert_eq!(
            hash_of("", table),
            hash_of("", &table.replace("9000", "9001"))
        );
        assert_ne!(hash_of("watch = true\n", ""), plain);
    }
}

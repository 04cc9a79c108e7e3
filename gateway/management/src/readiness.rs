//! What `/readyz` of the gateway's management listener says. `conf/guides/operate.md`. The listener is
//! `signpost_kit::server::management`.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use http::{Response, StatusCode};
use signpost_kit::server::{
    listener::HttpTimeouts,
    management::{Readiness, text},
};
use signpost_store::{Store, StoreError};
use tokio::net::TcpStream;

use signpost_proxy::{Gateway, SealError, StoredApps, Timeouts, availability, rfc3339};

/// Timeout of the readiness check's connection to `listen`: a local connect is immediate, unless the port is not
/// served.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Time from one look at the master keys of the store to the next.
const MASTER_KEY_INTERVAL: Duration = Duration::from_secs(30);

/// What decides whether the gateway is ready.
#[derive(Clone)]
pub struct GatewayReadiness {
    /// The store of applications; `None` in single-application mode.
    pub store: Option<Store>,
    /// The gateway with the current configuration.
    pub current: Arc<ArcSwap<Gateway>>,
    /// Whether its keys can be opened; `None` as the store.
    pub master_keys: Option<Arc<MasterKeyCheck>>,
}

impl GatewayReadiness {
    /// Of a gateway with these applications of a store.
    #[must_use]
    pub fn new(stored: Option<&StoredApps>, current: &Arc<ArcSwap<Gateway>>) -> Self {
        Self {
            store: stored.map(|stored| stored.database().clone()),
            current: Arc::clone(current),
            master_keys: stored.cloned().map(MasterKeyCheck::new).map(Arc::new),
        }
    }
}

/// Looks for keys in the store whose master key is not known here.
pub struct MasterKeyCheck {
    apps: StoredApps,
    last: Mutex<LastCheck>,
}

/// When it looked last, and what it found.
#[derive(Default)]
struct LastCheck {
    at: Option<Instant>,
    unknown: Option<SealError>,
}

impl MasterKeyCheck {
    /// Looks at the keys of these applications.
    #[must_use]
    pub fn new(apps: StoredApps) -> Self {
        Self {
            apps,
            last: Mutex::default(),
        }
    }

    /// The key that is not known, as last seen.
    async fn unknown(&self) -> Option<SealError> {
        let now = Instant::now();
        let is_due = {
            let mut last = self.last();
            let is_due = last.at.is_none_or(|at| now - at >= MASTER_KEY_INTERVAL);
            if is_due {
                // Set before the look: of concurrent calls only one looks, and no lock is held while it waits for the
                // store.
                last.at = Some(now);
            }
            is_due
        };
        if is_due {
            let looked = tokio::time::timeout(CONNECT_TIMEOUT, self.apps.unknown_master_key());
            // Otherwise the result of the last look holds: an outage of the store is reported by its own probe.
            if let Ok(Ok(unknown)) = looked.await {
                self.last().unknown = unknown;
            }
        }
        self.last().unknown
    }

    fn last(&self) -> MutexGuard<'_, LastCheck> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GatewayReadiness {
    /// The store that requests need, if any.
    fn store_of<'a>(&'a self, gateway: &'a Gateway) -> Option<&'a Store> {
        let accounts = || {
            gateway
                .state
                .accounts
                .get()
                .map(|accounts| &accounts.probed)
        };
        let policy = &gateway.policy;
        let is_needed = policy.backends.versions.check_accounts()
            || policy.verifier.config().replay_outage().is_some();
        let of_requests = || is_needed.then(accounts).flatten();
        self.store.as_ref().or_else(of_requests)
    }
}

/// Which backends have no address that serves requests.
fn unavailable(gateway: &Gateway) -> Option<String> {
    let targets = gateway.policy.backends.targets();
    let down = targets.filter(|target| availability(&target.address_status()) == Some(false));
    let down: Vec<_> = down.map(|target| target.backend.name.to_string()).collect();
    (!down.is_empty()).then(|| format!("no backend is available for {}", down.join(", ")))
}

/// What a gateway says while its store does not answer: as a detail if it can serve requests, otherwise as an error.
fn outage(gateway: &Gateway, error: &StoreError) -> Result<String, String> {
    // A store that can only be read suffices for applications and accounts.
    if let StoreError::NotWritable(reason) = error {
        return Ok(reason.to_string());
    }
    let state = format!("the store does not answer: {}", error.in_short());
    let until = |left| rfc3339(gateway.state.clock.now().plus(left));
    match gateway.policy.apps.time_without_store() {
        Some(Duration::ZERO) => Err(format!("{state}; no cached application may be used\n")),
        Some(left) => Ok(format!(
            "{state}; cached applications are served until {}",
            until(left)
        )),
        // Only signatures that are valid once need the store.
        None if !gateway.policy.backends.versions.check_accounts() => Ok(state),
        None => Ok(match gateway.state.accounts.get() {
            Some(accounts) if !accounts.directory.time_without_store().is_zero() => format!(
                "{state}; cached credentials are accepted until {}",
                until(accounts.directory.time_without_store())
            ),
            _ => format!("{state}; no cached credential may be used"),
        }),
    }
}

/// Whether the gateway accepts connections at this address.
async fn accepts(address: SocketAddr) -> bool {
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    matches!(connected, Ok(Ok(_)))
}

impl Readiness for GatewayReadiness {
    fn timeouts(&self) -> HttpTimeouts {
        let Timeouts {
            head, idle, send, ..
        } = self.current.load().policy.bounds.timeouts;
        HttpTimeouts { head, idle, send }
    }

    async fn readiness(&self) -> Response<String> {
        let gateway = self.current.load_full();
        let generation = gateway.policy.generation;
        // The management listener may be up before the clients' listener. A reload may have closed that one meanwhile.
        if !gateway.state.drain.is_draining()
            && !accepts(gateway.policy.listeners[0].address).await
            && self.current.load().policy.generation == generation
        {
            return text(StatusCode::SERVICE_UNAVAILABLE, "not listening yet\n");
        }
        self.state().await
    }
}

impl GatewayReadiness {
    /// As `/readyz`, without a connection to the listener.
    pub async fn state(&self) -> Response<String> {
        let gateway = self.current.load_full();
        let drain = &gateway.state.drain;
        if !drain.is_draining() {
            let state = self.state_while_serving(&gateway).await;
            // Looked at once more: a stop can begin while the store answers.
            if !drain.is_draining() {
                return state;
            }
        }
        text(StatusCode::SERVICE_UNAVAILABLE, "stopping\n")
    }

    async fn state_while_serving(&self, gateway: &Gateway) -> Response<String> {
        let mut details = Vec::new();
        if let Some(store) = self.store_of(gateway)
            && let Err(error) = store.probe().await
        {
            match outage(gateway, &error) {
                Ok(detail) => {
                    details.push(detail);
                    let replay_outage = gateway.policy.verifier.config().replay_outage();
                    details.extend(replay_outage.map(str::to_owned));
                }
                Err(reason) => return text(StatusCode::SERVICE_UNAVAILABLE, reason),
            }
        }
        if let Some(master_keys) = &self.master_keys
            && let Some(unknown) = master_keys.unknown().await
        {
            details.push(format!("the store has keys of applications {unknown}"));
        }
        // Routes and canaries are reported, too, but do not decide: logins need the versions' own backends.
        let backends = gateway.policy.backends.versions.iter().map(|version| {
            let backend = version.own();
            let balancer = gateway.policy.backends.target(backend).balancer.as_ref();
            let addresses = balancer.map_or(1, |balancer| balancer.address_count());
            (&backend.name, addresses)
        });
        let rejections = &gateway.state.secret_rejections;
        let report = rejections.report(Instant::now(), backends);
        if let Some(report) = report.as_ref().filter(|report| report.is_down) {
            return text(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{}\n", report.text),
            );
        }
        let now = gateway.state.clock.now();
        let expiring = gateway
            .certificates()
            .filter_map(|certificate| certificate.expiry_warning(now));
        details.extend(report.map(|report| report.text));
        details.extend(unavailable(gateway));
        details.extend(expiring);
        if details.is_empty() {
            return text(StatusCode::OK, "ready\n");
        }
        text(
            StatusCode::OK,
            format!("ready, but {}\n", details.join("; ")),
        )
    }
}

#[cfg(test)]
mod both_stores {
    use signpost_kit::secret::SecretSource;
    use signpost_store::testing::TestStore;

    use super::*;
    use crate::administration::apps::both_stores::{import, new_app};
    use signpost_proxy::{MasterKey, Sealer};

    fn apps(store: &Store, digits: &str) -> StoredApps {
        let key = SecretSource::from(&*digits.repeat(32)).read().unwrap();
        let sealer = Sealer::from_config(&MasterKey::Given(key), false).unwrap();
        StoredApps::new(store.clone(), sealer)
    }

    #[tokio::test]
    async fn a_master_key_that_is_not_known_is_seen_at_the_next_look() {
        let test = TestStore::chosen();
        let store = test.open().await;
        let (own, other) = (apps(&store, "ab"), apps(&store, "cd"));
        let check = MasterKeyCheck::new(own.clone());
        import(&own, vec![new_app("one")]).await;
        assert_eq!(check.unknown().await, None);
        import(&other, vec![new_app("two")]).await;
        assert_eq!(check.unknown().await, None, "it looks every 30 s");
        check.last().at = Instant::now().checked_sub(MASTER_KEY_INTERVAL);
        let unknown = check.unknown().await.unwrap();
        assert!(matches!(unknown, SealError::OtherMasterKey(_)), "{unknown}");
    }
}

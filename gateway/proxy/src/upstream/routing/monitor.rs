//! Resolves names and checks addresses while the gateway runs.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use super::{Balancer, discovery::Name};

/// Interval between two lookups of a name: DNS records change by the minute, not by the second.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(10);
/// Shortest interval, if an address is missing: services that start together are ready in any order, and a recreated
/// container has another address.
const MIN_RESOLVE_INTERVAL: Duration = Duration::from_secs(1);

/// Resolves names and checks addresses for the balancers in use.
#[derive(Default)]
pub struct BackendMonitor(Vec<(Arc<Balancer>, MonitorTask)>);

/// The task of one balancer; it is aborted when this is dropped.
struct MonitorTask(JoinHandle<()>);

impl Drop for MonitorTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl BackendMonitor {
    /// Monitors exactly these balancers from now on. Must be called within a runtime.
    pub fn follow(&mut self, balancers: impl Iterator<Item = Arc<Balancer>>) {
        // What is left in it at the end is dropped, which aborts the tasks of balancers that are gone.
        let mut running = std::mem::take(&mut self.0);
        for balancer in balancers {
            let known = running
                .iter()
                .position(|(known, _)| Arc::ptr_eq(known, &balancer));
            self.0.push(match known {
                Some(index) => running.swap_remove(index),
                None => {
                    let monitored = Arc::clone(&balancer);
                    let task = tokio::spawn(async move {
                        tokio::join!(
                            resolve_periodically(&monitored),
                            check_periodically(&monitored)
                        );
                    });
                    (balancer, MonitorTask(task))
                }
            });
        }
    }
}

/// Resolves the names of all balancers concurrently.
pub async fn resolve_all(balancers: &[Arc<Balancer>]) {
    join_all(balancers.iter().map(|balancer| balancer.resolve())).await;
}

/// Resolves a balancer's names regularly. The first lookup was before the balancer was used.
async fn resolve_periodically(balancer: &Balancer) {
    let names = balancer.discovery.names();
    if names.is_empty() {
        return;
    }
    loop {
        // First of all: however often requests find no address, there is one lookup a second at most.
        sleep(MIN_RESOLVE_INTERVAL).await;
        if !names.iter().any(Name::is_unresolved) {
            let requested = balancer.resolve_requested.notified();
            // Both outcomes mean that it is time for the next lookup.
            let _ = timeout(RESOLVE_INTERVAL - MIN_RESOLVE_INTERVAL, requested).await;
        }
        balancer.resolve().await;
    }
}

async fn check_periodically(balancer: &Balancer) {
    let Some(checks) = &balancer.checks else {
        return;
    };
    let mut turns = interval(checks.interval);
    // A round that took longer than the interval is not made up for: a burst of checks would hit a slow backend.
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        balancer.check().await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::time::Instant;

    use super::*;
    use crate::{config::tests::versions, upstream::routing::attempts::Attempts};

    /// A balancer with an outdated address for its name.
    fn outdated() -> Arc<Balancer> {
        let versions = versions("[versions.v1]\nbackend = 'localhost:1'\n");
        let balancer = Balancer::new(versions.default().own(), None).unwrap();
        let elsewhere: SocketAddr = "127.9.9.9:1".parse().unwrap();
        balancer.discovery.names()[0].note(Ok(vec![elsewhere]), &balancer.name);
        balancer
    }

    fn is_current(balancer: &Balancer) -> bool {
        balancer
            .addresses
            .load()
            .iter()
            .any(|address| address.socket().ip().is_loopback() && address.socket().port() == 1)
    }

    async fn seconds_until_current(balancer: &Arc<Balancer>) -> u64 {
        let (start, monitored) = (Instant::now(), Arc::clone(balancer));
        let task = tokio::spawn(async move { resolve_periodically(&monitored).await });
        while !is_current(balancer) {
            sleep(Duration::from_millis(10)).await;
        }
        task.abort();
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn names_are_resolved_soon_after_a_request_finds_no_address() {
        let balancer = outdated();
        assert_eq!(balancer.choose(b"", &mut Attempts::default()), None);
        assert!(seconds_until_current(&balancer).await < 5);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unresolved_name_is_retried_soon() {
        let versions = versions("[versions.v1]\nbackend = 'localhost:1'\n");
        let balancer = Balancer::new(versions.default().own(), None).unwrap();
        assert!(seconds_until_current(&balancer).await < 5);
    }
}

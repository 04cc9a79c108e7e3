//! Resolves names and checks addresses while the gateway runs.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use super::{Balancer, discovery::Name};

/// Time between two look-ups of a name: a DNS server's answers change by the minute, not by the second.
const LOOK_UP_INTERVAL: Duration = Duration::from_secs(10);
/// The shortest such time, if an address is missing: what is started together is not ready in any order, and a container
/// that is created anew has another address.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// Watches over the addresses of the balancers that are in use.
#[derive(Default)]
pub(crate) struct Monitor(Vec<(Arc<Balancer>, Watch)>);

/// The task that watches over one balancer; it ends when this is dropped.
struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Monitor {
    /// Watches over these from now on, and over no others. Only within a runtime.
    pub(crate) fn follow(&mut self, balancers: impl Iterator<Item = Arc<Balancer>>) {
        let mut running = std::mem::take(&mut self.0);
        for balancer in balancers {
            let known = running
                .iter()
                .position(|(known, _)| Arc::ptr_eq(known, &balancer));
            self.0.push(match known {
                Some(index) => running.swap_remove(index),
                None => {
                    let watched = Arc::clone(&balancer);
                    let watch = tokio::spawn(async move {
                        tokio::join!(keep_looking_up(&watched), keep_checking(&watched));
                    });
                    (balancer, Watch(watch))
                }
            });
        }
    }
}

/// Finds out which addresses there are, of all of these at once.
pub(crate) async fn look_up(balancers: &[Arc<Balancer>]) {
    join_all(balancers.iter().map(|balancer| balancer.look_up())).await;
}

/// The first look-up was before the balancer was used.
async fn keep_looking_up(balancer: &Balancer) {
    let names = balancer.discovery.names();
    if names.is_empty() {
        return;
    }
    loop {
        sleep(SHORTEST_INTERVAL).await;
        if !names.iter().any(Name::is_unknown) {
            let is_wanted = balancer.wants_look_up.notified();
            // Time to look again, whether anybody wants it or not.
            let _ = timeout(LOOK_UP_INTERVAL - SHORTEST_INTERVAL, is_wanted).await;
        }
        balancer.look_up().await;
    }
}

async fn keep_checking(balancer: &Balancer) {
    let Some(checks) = &balancer.checks else {
        return;
    };
    let mut turns = interval(checks.interval);
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
    use crate::{config::tests::versions, routing::attempts::Attempts};

    /// One whose name is believed to stand for another address than it does.
    fn mistaken() -> Arc<Balancer> {
        let versions = versions("[versions.v1]\nbackend = 'localhost:1'\n");
        let balancer = Balancer::new(versions.default(), None).unwrap();
        let elsewhere: SocketAddr = "127.9.9.9:1".parse().unwrap();
        balancer.discovery.names()[0].note(Ok(vec![elsewhere]), &balancer.version);
        balancer
    }

    fn is_right(balancer: &Balancer) -> bool {
        balancer
            .addresses
            .load()
            .iter()
            .any(|address| address.socket().ip().is_loopback() && address.socket().port() == 1)
    }

    async fn seconds_until_right(balancer: &Arc<Balancer>) -> u64 {
        let (start, watched) = (Instant::now(), Arc::clone(balancer));
        let watching = tokio::spawn(async move { keep_looking_up(&watched).await });
        while !is_right(balancer) {
            sleep(Duration::from_millis(10)).await;
        }
        watching.abort();
        start.elapsed().as_secs()
    }

    #[tokio::test]
    async fn what_a_request_misses_is_looked_up_soon() {
        let balancer = mistaken();
        assert_eq!(balancer.choose(b"", &mut Attempts::default()), None);
        assert!(seconds_until_right(&balancer).await < 5);
    }

    #[tokio::test]
    async fn a_name_that_was_never_found_is_looked_up_soon() {
        let versions = versions("[versions.v1]\nbackend = 'localhost:1'\n");
        let balancer = Balancer::new(versions.default(), None).unwrap();
        assert!(seconds_until_right(&balancer).await < 5);
    }
}

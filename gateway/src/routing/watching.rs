//! Looks names up and checks addresses, for as long as the server runs.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use pingora::{server::ShutdownWatch, services::background::BackgroundService};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use super::{Balancer, discovery::Name};

/// Names are looked up again so often: a name service's answers change by the minute, not by the second.
const LOOK_UP_INTERVAL: Duration = Duration::from_secs(10);
/// And so often at most, where something is missing: what is started together is not ready in any order, and a
/// container that is made anew has another address.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// Watches over the addresses of these.
pub struct Watching(pub Vec<Arc<Balancer>>);

#[async_trait]
impl BackgroundService for Watching {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut tasks = JoinSet::new();
        for balancer in &self.0 {
            let balancer = Arc::clone(balancer);
            tasks.spawn(async move {
                tokio::join!(keep_looking_up(&balancer), keep_checking(&balancer));
            });
        }
        // What is left ends with the set.
        let _ = shutdown.wait_for(|is_ending| *is_ending).await;
    }
}

/// Finds out which addresses there are, of all of these at once.
pub async fn look_up(balancers: &[Arc<Balancer>]) {
    let mut tasks = JoinSet::new();
    for balancer in balancers {
        let balancer = Arc::clone(balancer);
        tasks.spawn(async move { balancer.look_up().await });
    }
    while tasks.join_next().await.is_some() {}
}

/// The first look-up was before the start.
async fn keep_looking_up(balancer: &Balancer) {
    if balancer.names.is_empty() {
        return;
    }
    loop {
        sleep(SHORTEST_INTERVAL).await;
        if !balancer.names.iter().any(Name::is_unknown) {
            let is_wanted = balancer.wants_look_up.notified();
            // Time to look again, whether anybody wants it or not.
            let _ = timeout(LOOK_UP_INTERVAL - SHORTEST_INTERVAL, is_wanted).await;
        }
        balancer.look_up().await;
    }
}

async fn keep_checking(balancer: &Balancer) {
    let Some(period) = balancer.check_interval else {
        return;
    };
    let mut turns = interval(period);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        balancer.backends.run_health_check(true).await;
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
        let balancer = Balancer::of(versions.default()).unwrap();
        let elsewhere: SocketAddr = "127.9.9.9:1".parse().unwrap();
        balancer.names[0].note(Ok(vec![elsewhere]), &balancer.version);
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
        let balancer = Balancer::of(versions.default()).unwrap();
        assert!(seconds_until_right(&balancer).await < 5);
    }
}

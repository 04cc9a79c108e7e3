//! Clients that call all the time, below the rate limit of the front.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use end_to_end::{signed_client::SignedClient, waiting::until};
use tokio::task::JoinSet;

/// Clients that call at the same time.
pub(super) const CLIENTS: usize = 8;

/// Pause of a client after a response: all of them together stay below the front's 500 requests a second for one address.
const PAUSE: Duration = Duration::from_millis(20);

/// Requests of each client until [`Load::more`] returns.
const REQUESTS: usize = 25;

/// Clients that ask for a logged-in user, in turn at version 1 and 2.
pub(super) struct Load {
    clients: JoinSet<Sent>,
    count: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

/// What clients sent, and how it ended.
#[derive(Default)]
pub(super) struct Sent {
    requests: usize,
    pub(super) failed: usize,
    failures: Vec<String>,
    slowest: Duration,
}

impl Load {
    pub(super) fn start(client: &SignedClient, credential: &str) -> Self {
        let mut load = Self {
            clients: JoinSet::new(),
            count: Arc::default(),
            is_over: Arc::default(),
        };
        for number in 0..CLIENTS {
            let (client, credential) = (client.clone(), credential.to_owned());
            let (count, is_over) = (Arc::clone(&load.count), Arc::clone(&load.is_over));
            load.clients.spawn(async move {
                let mut sent = Sent::default();
                while !is_over.load(Ordering::Relaxed) {
                    let version = ["v1", "v2"][(number + sent.requests) % 2];
                    let call = client.get("/user").version(version).param("n", "1");
                    let start = Instant::now();
                    let response = call.authorization(&credential).try_send().await;
                    sent.add(
                        start.elapsed(),
                        response.map(|response| response.status.as_u16()),
                    );
                    count.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(PAUSE).await;
                }
                sent
            });
        }
        load
    }

    /// Waits until many more requests have been answered.
    pub(super) async fn more(&self) {
        let enough = self.count.load(Ordering::Relaxed) + CLIENTS * REQUESTS;
        until("more responses", || async {
            (self.count.load(Ordering::Relaxed) > enough).then_some(())
        })
        .await;
    }

    /// Ends the load, and returns what was sent.
    pub(super) async fn finish(self) -> Sent {
        self.is_over.store(true, Ordering::Relaxed);
        let all = self.clients.join_all().await;
        all.into_iter().fold(Sent::default(), Sent::with)
    }
}

impl Sent {
    fn add(&mut self, took: Duration, status: reqwest::Result<u16>) {
        self.requests += 1;
        self.slowest = self.slowest.max(took);
        match status {
            Ok(200) => {}
            Ok(status) => self.fail(status.to_string()),
            Err(error) => self.fail(format!("{error:?}")),
        }
    }

    fn fail(&mut self, failure: String) {
        self.failed += 1;
        self.failures.push(failure);
    }

    fn with(mut self, other: Self) -> Self {
        self.requests += other.requests;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.slowest = self.slowest.max(other.slowest);
        self
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            requests,
            failed,
            slowest,
            ..
        } = self;
        write!(
            f,
            "{requests} requests, {failed} failed, the slowest took {slowest:?}"
        )?;
        self.failures
            .iter()
            .take(5)
            .try_for_each(|failure| write!(f, "\n  {failure}"))
    }
}

//! Clients that send requests without a pause while the gateway reloads.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use end_to_end::waiting::until;
use tokio::task::JoinSet;

/// How many clients send at the same time.
const CLIENTS: usize = 8;

/// Clients that send requests until they are stopped. Each ends with an `R`.
pub(super) struct Load<R> {
    progress: Arc<Progress>,
    clients: JoinSet<R>,
}

/// What the clients of a load share.
#[derive(Default)]
pub(super) struct Progress {
    is_stopping: AtomicBool,
    served: AtomicUsize,
}

impl Progress {
    pub(super) fn goes_on(&self) -> bool {
        !self.is_stopping.load(Ordering::Relaxed)
    }

    pub(super) fn served_one(&self) {
        self.served.fetch_add(1, Ordering::Relaxed);
    }
}

impl<R: Send + 'static> Load<R> {
    /// Starts clients, each with its number.
    pub(super) fn start<C: Future<Output = R> + Send + 'static>(
        client: impl Fn(usize, Arc<Progress>) -> C,
    ) -> Self {
        let progress = Arc::<Progress>::default();
        let clients = (0..CLIENTS).map(|number| client(number, Arc::clone(&progress)));
        Self {
            clients: clients.collect(),
            progress,
        }
    }

    /// Waits until `more` further requests are served.
    pub(super) async fn serve(&self, more: usize) {
        let served = || self.progress.served.load(Ordering::Relaxed);
        let goal = served() + more;
        until("requests to be served", || async {
            (served() >= goal).then_some(())
        })
        .await;
    }

    /// Stops the clients, and fails if one has. Returns their results, and the number of requests that were served.
    pub(super) async fn stop(self) -> (Vec<R>, usize) {
        self.progress.is_stopping.store(true, Ordering::Relaxed);
        let results = self.clients.join_all().await;
        (results, self.progress.served.load(Ordering::Relaxed))
    }
}

//! The replay memory of all gateways on one store. A signature that is new to this gateway is inserted into the store
//! before its request is forwarded. CONTRACT 3.
//!
//! One statement at a time inserts all signatures that wait: the slower the store, the more of them. [`rows`] has the
//! statements, and says how a loss of the store's rows is noticed.

mod rows;

use std::{
    io,
    net::IpAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use ring::digest;
use signpost_kit::{
    clock::{Clock, SystemClock},
    counted_label, label_enum,
    task::Task,
};
use signpost_protocol::{
    app::AppId,
    sign::{Sign, SignTime, Window},
};
use signpost_store::{Store, StoreError};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    time::timeout,
};

use self::rows::{Hash, MAX_DELETED, Rows, delete_expired};
use crate::limits::places::{Place, Places};

/// Limit of the requests that wait for the store; a network has a quarter.
const MAX_WAITING: usize = 4096;
/// Limit of the signatures in a statement.
const MAX_BATCH: usize = 256;
/// Timeout of the statements for the signatures that wait. In unit tests, a busy machine may delay them.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 20 } else { 1 });
/// Timeout of a request: for the signatures before its own, and for its own.
const MAX_WAIT: Duration = TIMEOUT.saturating_mul(2);
/// After a failure, the store is not asked for so long.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Connections to the store: for the signatures, for the mark, and to delete expired rows.
const CONNECTIONS: usize = 3;
/// Interval of deletions, and the same while more is due: 20,000 a second for each gateway, in small pieces, since
/// signatures wait for the same disk and processors.
const DELETE_INTERVALS: [Duration; 2] = [Duration::from_secs(1), Duration::from_millis(100)];

label_enum! {
    /// What the store said of a signature that was new to this gateway: the label `outcome`.
    pub enum ShareOutcome {
        /// It was new to all gateways.
        Accepted = "accepted",
        /// Another gateway has accepted it.
        Replayed = "replayed",
        /// Nothing: it failed, or does not know.
        Unavailable = "unavailable",
        /// It was not asked: too many signatures wait.
        Full = "full",
    }
}

counted_label!(ShareOutcome);

/// Why a signature is not in the store by this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ShareError {
    /// Another gateway has accepted it.
    #[error("another gateway has accepted the signature")]
    Replayed,
    /// The store failed, or did not answer in time.
    #[error("the store of the replay memory does not answer")]
    NoAnswer,
    /// Too many signatures wait: of all clients, or of the client's network.
    #[error("too many signatures wait for the store of the replay memory")]
    Full,
    /// It was made before the store lost its rows, so it may have been used.
    #[error("the store has lost its replay memory, which may have had the signature")]
    Lost,
}

/// A verified signature, as the store has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsedSign {
    hash: Hash,
    /// UTC milliseconds.
    signed_at: i64,
    /// Milliseconds after that time in which it is valid.
    window: i64,
}

impl UsedSign {
    /// A signature of this application.
    pub(crate) fn new(app: AppId, sign: &Sign, time: SignTime, window: Window) -> Self {
        // A reader of the store learns no signature.
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&app.get().to_be_bytes());
        context.update(sign.as_bytes());
        let mut hash = Hash::default();
        let length = hash.len();
        hash.copy_from_slice(&context.finish().as_ref()[..length]);
        Self {
            hash,
            signed_at: i64::try_from(time.as_millis()).unwrap_or(i64::MAX),
            window: i64::try_from(window.duration().as_millis()).unwrap_or(i64::MAX),
        }
    }
}

/// A request that waits for the store.
struct Waiting {
    sign: UsedSign,
    verdict: oneshot::Sender<Result<(), ShareError>>,
    _place: Place,
}

/// The queue to the thread that inserts signatures.
#[derive(Debug)]
pub(crate) struct SharedReplays {
    /// Bounded by the places.
    queue: UnboundedSender<Waiting>,
    places: Arc<Places>,
}

impl SharedReplays {
    /// Starts the thread, which lives as long as the process.
    pub(crate) fn start(store: &Store) -> Self {
        let (queue, waiting) = unbounded_channel();
        // Of its own: a connection is driven by its thread, and requests must not wait for others' work.
        let store = store.with_own_pool(CONNECTIONS);
        let started = thread::Builder::new()
            .name("replay".to_owned())
            .spawn(|| serve(waiting, store));
        if let Err(cause) = started {
            log_no_thread(&cause);
        }
        Self {
            queue,
            places: Places::new(MAX_WAITING),
        }
    }

    /// Inserts the signature of a client's request.
    ///
    /// # Errors
    ///
    /// Another gateway has accepted it, or the store does not say.
    pub(crate) async fn insert(&self, sign: UsedSign, client: IpAddr) -> Result<(), ShareError> {
        let place = self.places.take(client).ok_or(ShareError::Full)?;
        let (verdict, inserted) = oneshot::channel();
        let waiting = Waiting {
            sign,
            verdict,
            _place: place,
        };
        // Fails only if the thread has ended, and `inserted` with it.
        let _ = self.queue.send(waiting);
        match timeout(MAX_WAIT, inserted).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) | Err(_) => Err(ShareError::NoAnswer),
        }
    }
}

fn serve(waiting: UnboundedReceiver<Waiting>, store: Store) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(async {
            tokio::spawn(delete_old(store.clone()));
            insert_waiting(waiting, Rows::new(store)).await;
        }),
        Err(cause) => log_no_thread(&cause),
    }
}

/// The queue is closed then, so each signature is judged as if the store were down.
fn log_no_thread(cause: &io::Error) {
    tracing::error!(%cause, "the replay memory of all gateways has no thread, and does not answer");
}

/// Inserts what waits, until the process ends.
async fn insert_waiting(mut queue: UnboundedReceiver<Waiting>, mut rows: Rows) {
    let mut task = Task::new(
        "the replay memory of all gateways does not answer",
        "the replay memory of all gateways answers again",
    );
    let mut retry_at = Instant::now();
    let mut waiting: Vec<Waiting> = Vec::new();
    while queue.recv_many(&mut waiting, MAX_BATCH).await > 0 {
        // Of requests that were cancelled, or that have waited too long, nothing is inserted.
        waiting.retain(|waiting| !waiting.verdict.is_closed());
        let mut verdicts = vec![Err(ShareError::NoAnswer); waiting.len()];
        if Instant::now() >= retry_at {
            let signs: Vec<_> = waiting.iter().map(|waiting| waiting.sign).collect();
            let inserted = timeout(TIMEOUT, rows.insert(&signs, SystemClock.now())).await;
            let inserted = inserted.unwrap_or(Err(StoreError::TimedOut));
            task.log(inserted.map(|inserted| {
                verdicts = inserted;
                true
            }));
            if verdicts.contains(&Err(ShareError::NoAnswer)) {
                retry_at = Instant::now() + RETRY_INTERVAL;
            }
        }
        for (waiting, verdict) in waiting.drain(..).zip(verdicts) {
            // The request may have ended meanwhile.
            let _ = waiting.verdict.send(verdict);
        }
    }
}

/// Deletes expired signatures, until the process ends.
async fn delete_old(store: Store) {
    let task = Task::quiet("expired signatures cannot be deleted now");
    let turn = || async {
        let deleted = delete_expired(&store, SystemClock.now()).await;
        let has_more = deleted
            .as_ref()
            .is_ok_and(|deleted| *deleted >= MAX_DELETED);
        (
            deleted.map(|_| true),
            DELETE_INTERVALS[usize::from(has_more)],
        )
    };
    task.run(turn).await;
}

#[cfg(test)]
mod both_stores;
